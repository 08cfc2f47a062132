"""Broker configs of fetching and replication."""

from ottla.metadata.configs.declare import ConfigValues, integer, long, string
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH, READ_ONLY
from ottla.metadata.configs.rules import Range


class BrokerReplicationConfigs(ConfigValues):
    """Broker configs of fetching and replication."""

    delete_records_purgatory_purge_interval_requests = integer(
        "delete.records.purgatory.purge.interval.requests",
        1,
        update=READ_ONLY,
        inert=True,
        doc="After how many finished requests Kafka clears its list of waiting DeleteRecords.",
    )
    fetch_max_bytes = integer(
        "fetch.max.bytes", 57_671_680, Range(1024), update=READ_ONLY, doc="Largest answer to a fetch."
    )
    fetch_purgatory_purge_interval_requests = integer(
        "fetch.purgatory.purge.interval.requests",
        1000,
        update=READ_ONLY,
        inert=True,
        doc="After how many finished requests Kafka clears its list of waiting fetches.",
    )
    max_incremental_fetch_session_cache_slots = integer(
        "max.incremental.fetch.session.cache.slots",
        1000,
        Range(0),
        update=READ_ONLY,
        doc="How many fetch sessions are kept.",
    )
    num_replica_alter_log_dirs_threads = integer(
        "num.replica.alter.log.dirs.threads",
        None,
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How many threads move replicas between directories.",
    )
    num_replica_fetchers = integer(
        "num.replica.fetchers",
        1,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        inert=True,
        doc="How many connections replicate from each other broker.",
    )
    producer_purgatory_purge_interval_requests = integer(
        "producer.purgatory.purge.interval.requests",
        1000,
        update=READ_ONLY,
        inert=True,
        doc="After how many finished requests Kafka clears its list of waiting writes.",
    )
    replica_fetch_backoff_ms = integer(
        "replica.fetch.backoff.ms",
        1000,
        Range(0),
        update=READ_ONLY,
        inert=True,
        doc="Pause of a follower after a failed fetch.",
    )
    replica_fetch_max_bytes = integer(
        "replica.fetch.max.bytes",
        1_048_576,
        Range(0),
        update=READ_ONLY,
        inert=True,
        doc="How many bytes of a partition a follower asks for at a time.",
    )
    replica_fetch_min_bytes = integer(
        "replica.fetch.min.bytes",
        1,
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How many bytes a follower waits for.",
    )
    replica_fetch_response_max_bytes = integer(
        "replica.fetch.response.max.bytes",
        10_485_760,
        Range(0),
        update=READ_ONLY,
        inert=True,
        doc="How many bytes of all partitions a follower asks for at a time.",
    )
    replica_fetch_wait_max_ms = integer(
        "replica.fetch.wait.max.ms",
        500,
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How long a follower waits for bytes; not longer than replica.lag.time.max.ms.",
    )
    replica_high_watermark_checkpoint_interval_ms = long(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        importance=HIGH,
        update=READ_ONLY,
        doc="How often high watermarks are written down.",
    )
    replica_lag_time_max_ms = long(
        "replica.lag.time.max.ms",
        30_000,
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How long a follower may be behind before it leaves the ISR.",
    )
    replica_selector_class = string(
        "replica.selector.class",
        None,
        update=READ_ONLY,
        inert=True,
        doc="What chooses the replica a consumer reads from; unset, it is the leader.",
    )
    replica_socket_receive_buffer_bytes = integer(
        "replica.socket.receive.buffer.bytes",
        65_536,
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="Receive buffer of a follower's connection.",
    )
    replica_socket_timeout_ms = integer(
        "replica.socket.timeout.ms",
        30_000,
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How long a follower waits on its connection; not less than replica.fetch.wait.max.ms.",
    )
