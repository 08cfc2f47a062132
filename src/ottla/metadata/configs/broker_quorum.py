"""Broker configs of the controller quorum and the metadata log."""

from ottla.metadata.configs.declare import REQUIRED, ConfigValues, boolean, integer, listing, long, string
from ottla.metadata.configs.kinds import HIGH, LOW, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, HostsAndPorts, Range, Voters


class BrokerQuorumConfigs(ConfigValues):
    """Broker configs of the controller quorum and the metadata log."""

    controller_listener_names = listing(
        "controller.listener.names",
        REQUIRED,
        DistinctList(may_be_empty=False),
        importance=HIGH,
        update=READ_ONLY,
        doc="Listener(s) used for controller traffic; first is used to reach controllers.",
    )
    controller_performance_always_log_threshold_ms = long(
        "controller.performance.always.log.threshold.ms",
        2000,
        Range(0),
        update=READ_ONLY,
        internal=True,
        doc="Internal: log slow controller events.",
    )
    controller_performance_sample_period_ms = long(
        "controller.performance.sample.period.ms",
        60_000,
        Range(100),
        update=READ_ONLY,
        internal=True,
        doc="Internal: period of that summary.",
    )
    controller_quorum_append_linger_ms = integer(
        "controller.quorum.append.linger.ms",
        25,
        Range(0),
        update=READ_ONLY,
        doc="Leader collects metadata records this long before writing a batch.",
    )
    controller_quorum_auto_join_enable = boolean(
        "controller.quorum.auto.join.enable",
        False,
        importance=LOW,
        update=READ_ONLY,
        doc="Controller adds itself as voter.",
    )
    controller_quorum_bootstrap_servers = listing(
        "controller.quorum.bootstrap.servers",
        (),
        HostsAndPorts(),
        importance=HIGH,
        update=READ_ONLY,
        doc="Host:port list to find the quorum (dynamic quorum).",
    )
    controller_quorum_election_backoff_max_ms = integer(
        "controller.quorum.election.backoff.max.ms",
        1000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="Cap of the back-off after a lost election.",
    )
    controller_quorum_election_timeout_ms = integer(
        "controller.quorum.election.timeout.ms",
        1000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="Base election timeout (randomised up to double).",
    )
    controller_quorum_fetch_max_bytes = integer(
        "controller.quorum.fetch.max.bytes",
        1_048_576,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="Max bytes per metadata Fetch.",
    )
    controller_quorum_fetch_snapshot_max_bytes = integer(
        "controller.quorum.fetch.snapshot.max.bytes",
        1_048_576,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="Max bytes per FetchSnapshot.",
    )
    controller_quorum_fetch_timeout_ms = integer(
        "controller.quorum.fetch.timeout.ms",
        2000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="Follower starts election / leader resigns without successful fetches for this.",
    )
    controller_quorum_request_timeout_ms = integer(
        "controller.quorum.request.timeout.ms",
        2000,
        Range(0),
        update=READ_ONLY,
        doc="Timeout of quorum requests.",
    )
    controller_quorum_retry_backoff_ms = integer(
        "controller.quorum.retry.backoff.ms",
        20,
        Range(0),
        importance=LOW,
        update=READ_ONLY,
        doc="Pause before retrying a quorum request.",
    )
    controller_quorum_voters = listing(
        "controller.quorum.voters",
        (),
        Voters(),
        importance=HIGH,
        update=READ_ONLY,
        doc="Static voters id@host:port (kraft.version 0).",
    )
    controller_socket_timeout_ms = integer(
        "controller.socket.timeout.ms",
        30_000,
        update=READ_ONLY,
        doc="Socket timeout of broker to controller channel.",
    )
    internal_metadata_delete_delay_millis = long(
        "internal.metadata.delete.delay.millis",
        60_000,
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="Internal: delay before metadata files are unlinked.",
    )
    internal_metadata_log_segment_bytes = integer(
        "internal.metadata.log.segment.bytes",
        None,
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="Internal: small metadata segments for tests.",
    )
    internal_metadata_max_batch_size_in_bytes = integer(
        "internal.metadata.max.batch.size.in.bytes",
        8_388_608,
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="Internal: largest metadata batch.",
    )
    metadata_log_dir = string(
        "metadata.log.dir",
        None,
        importance=HIGH,
        update=READ_ONLY,
        doc="Directory of the metadata log; default first log dir.",
    )
    metadata_log_max_record_bytes_between_snapshots = long(
        "metadata.log.max.record.bytes.between.snapshots",
        20_971_520,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Snapshot after this many bytes.",
    )
    metadata_log_max_snapshot_interval_ms = long(
        "metadata.log.max.snapshot.interval.ms",
        3_600_000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="Snapshot at least this often.",
    )
    metadata_log_segment_bytes = integer(
        "metadata.log.segment.bytes",
        1_073_741_824,
        Range(8_388_608),
        importance=HIGH,
        update=READ_ONLY,
        doc="Metadata segment size.",
    )
    metadata_log_segment_ms = long(
        "metadata.log.segment.ms", 604_800_000, importance=HIGH, update=READ_ONLY, doc="Metadata segment age."
    )
    metadata_max_idle_interval_ms = integer(
        "metadata.max.idle.interval.ms",
        500,
        Range(0),
        importance=LOW,
        update=READ_ONLY,
        doc="Controller writes a NoOp when idle this long.",
    )
    metadata_max_retention_bytes = long(
        "metadata.max.retention.bytes",
        104_857_600,
        importance=HIGH,
        update=READ_ONLY,
        doc="Old metadata snapshots+log size limit.",
    )
    metadata_max_retention_ms = long(
        "metadata.max.retention.ms",
        604_800_000,
        importance=HIGH,
        update=READ_ONLY,
        doc="Old metadata snapshots+log age limit.",
    )
