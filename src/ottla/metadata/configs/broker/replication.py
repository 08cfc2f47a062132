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
        "fetch.max.bytes", 57_671_680, Range(1024), update=READ_ONLY, doc="The largest response to a fetch."
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
        doc="The maximum number of fetch sessions.",
    )
    num_replica_alter_log_dirs_threads = integer(
        "num.replica.alter.log.dirs.threads",
        None,
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="The number of threads that move replicas between directories.",
    )
    num_replica_fetchers = integer(
        "num.replica.fetchers",
        1,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="The number of connections that replicate from each other broker.",
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
        doc="How long a follower pauses after a failed fetch.",
    )
    replica_fetch_max_bytes = integer(
        "replica.fetch.max.bytes",
        1_048_576,
        Range(0),
        update=READ_ONLY,
        doc="How many bytes of one partition a follower fetches at once.",
    )
    replica_fetch_min_bytes = integer(
        "replica.fetch.min.bytes",
        1,
        importance=HIGH,
        update=READ_ONLY,
        doc="How many bytes a follower waits for.",
    )
    replica_fetch_response_max_bytes = integer(
        "replica.fetch.response.max.bytes",
        10_485_760,
        Range(0),
        update=READ_ONLY,
        doc="How many bytes of all partitions a follower fetches at once.",
    )
    replica_fetch_wait_max_ms = integer(
        "replica.fetch.wait.max.ms",
        500,
        importance=HIGH,
        update=READ_ONLY,
        doc="How long a follower waits for data. At most replica.lag.time.max.ms.",
    )
    replica_high_watermark_checkpoint_interval_ms = long(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        importance=HIGH,
        update=READ_ONLY,
        doc="How often high watermarks are written to disk.",
    )
    replica_lag_time_max_ms = long(
        "replica.lag.time.max.ms",
        30_000,
        importance=HIGH,
        update=READ_ONLY,
        doc="How long a follower may be behind before it leaves the ISR.",
    )
    replica_selector_class = string(
        "replica.selector.class",
        None,
        update=READ_ONLY,
        doc="The plugin that chooses which replica a consumer reads from. If unset, it is the leader.",
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
        doc="How long a follower waits on its connection. At least replica.fetch.wait.max.ms.",
    )
