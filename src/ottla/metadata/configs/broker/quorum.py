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
        doc="Names of the listeners that belong to the controller; brokers use the first to reach it.",
    )
    controller_performance_always_log_threshold_ms = long(
        "controller.performance.always.log.threshold.ms",
        2000,
        Range(0),
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="Events of the controller that take longer than this are always logged.",
    )
    controller_performance_sample_period_ms = long(
        "controller.performance.sample.period.ms",
        60_000,
        Range(100),
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="How often the controller logs a summary of how long its events took.",
    )
    controller_quorum_append_linger_ms = integer(
        "controller.quorum.append.linger.ms",
        25,
        Range(0),
        update=READ_ONLY,
        inert=True,
        doc="How long the leader of the quorum collects records before it writes them.",
    )
    controller_quorum_auto_join_enable = boolean(
        "controller.quorum.auto.join.enable",
        False,
        importance=LOW,
        update=READ_ONLY,
        doc="Whether a new controller adds itself to the voters of the quorum.",
    )
    controller_quorum_bootstrap_servers = listing(
        "controller.quorum.bootstrap.servers",
        (),
        HostsAndPorts(),
        importance=HIGH,
        update=READ_ONLY,
        doc="Addresses of controllers for finding the quorum, as HOST:PORT.",
    )
    controller_quorum_election_backoff_max_ms = integer(
        "controller.quorum.election.backoff.max.ms",
        1000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="The longest pause before another election.",
    )
    controller_quorum_election_timeout_ms = integer(
        "controller.quorum.election.timeout.ms",
        1000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="How long a candidate waits for votes before it starts another election.",
    )
    controller_quorum_fetch_max_bytes = integer(
        "controller.quorum.fetch.max.bytes",
        1_048_576,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="How many bytes of the metadata log are fetched at a time.",
    )
    controller_quorum_fetch_snapshot_max_bytes = integer(
        "controller.quorum.fetch.snapshot.max.bytes",
        1_048_576,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="How many bytes of a metadata snapshot are fetched at a time.",
    )
    controller_quorum_fetch_timeout_ms = integer(
        "controller.quorum.fetch.timeout.ms",
        2000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="A voter that does not hear from the leader for this long starts an election.",
    )
    controller_quorum_request_timeout_ms = integer(
        "controller.quorum.request.timeout.ms",
        2000,
        Range(0),
        update=READ_ONLY,
        doc="How long a node of the quorum waits for a response.",
    )
    controller_quorum_retry_backoff_ms = integer(
        "controller.quorum.retry.backoff.ms",
        20,
        Range(0),
        importance=LOW,
        update=READ_ONLY,
        doc="Pause before a request within the quorum is repeated.",
    )
    controller_quorum_voters = listing(
        "controller.quorum.voters",
        (),
        Voters(),
        importance=HIGH,
        update=READ_ONLY,
        doc="The voters of a quorum that does not change, as ID@HOST:PORT.",
    )
    controller_socket_timeout_ms = integer(
        "controller.socket.timeout.ms",
        30_000,
        update=READ_ONLY,
        doc="How long a broker waits on its connection to the controller.",
    )
    internal_metadata_delete_delay_millis = long(
        "internal.metadata.delete.delay.millis",
        60_000,
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="How long deleted files of the metadata log stay on disk.",
    )
    internal_metadata_log_segment_bytes = integer(
        "internal.metadata.log.segment.bytes",
        None,
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="Segment size of the metadata log, for tests that need small segments.",
    )
    internal_metadata_max_batch_size_in_bytes = integer(
        "internal.metadata.max.batch.size.in.bytes",
        8_388_608,
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="Largest batch of metadata records.",
    )
    metadata_log_dir = string(
        "metadata.log.dir",
        None,
        importance=HIGH,
        update=READ_ONLY,
        doc="Directory of the metadata log; if unset, the first data directory.",
    )
    metadata_log_max_record_bytes_between_snapshots = long(
        "metadata.log.max.record.bytes.between.snapshots",
        20_971_520,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="A snapshot of the metadata is written after this many bytes of records.",
    )
    metadata_log_max_snapshot_interval_ms = long(
        "metadata.log.max.snapshot.interval.ms",
        3_600_000,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="A snapshot of the metadata is written after this time if anything has changed; 0 means never.",
    )
    metadata_log_segment_bytes = integer(
        "metadata.log.segment.bytes",
        1_073_741_824,
        Range(8_388_608),
        importance=HIGH,
        update=READ_ONLY,
        doc="Segment size of the metadata log.",
    )
    metadata_log_segment_ms = long(
        "metadata.log.segment.ms",
        604_800_000,
        importance=HIGH,
        update=READ_ONLY,
        doc="The age at which a new segment of the metadata log is started.",
    )
    metadata_max_idle_interval_ms = integer(
        "metadata.max.idle.interval.ms",
        500,
        Range(0),
        importance=LOW,
        update=READ_ONLY,
        doc=("How often an idle controller writes a no-op record; 0 means never."),
    )
    metadata_max_retention_bytes = long(
        "metadata.max.retention.bytes",
        104_857_600,
        importance=HIGH,
        update=READ_ONLY,
        doc="The size of the metadata log and its snapshots above which the oldest are deleted.",
    )
    metadata_max_retention_ms = long(
        "metadata.max.retention.ms",
        604_800_000,
        importance=HIGH,
        update=READ_ONLY,
        doc="The age at which metadata snapshots are deleted.",
    )
