"""Broker configs of the node itself: who it is, what roles it plays, how it joins and leaves."""

from ottla.metadata.configs.declare import REQUIRED, ConfigValues, boolean, integer, listing, long, string
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH, LOW, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, Range
from ottla.metadata.configs.values import LONG_MAX


class BrokerNodeConfigs(ConfigValues):
    """Broker configs of the node itself: who it is, what roles it plays, how it joins and leaves."""

    background_threads = integer(
        "background.threads",
        10,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        inert=True,
        doc="The number of threads with which Kafka does background work.",
    )
    broker_heartbeat_interval_ms = integer(
        "broker.heartbeat.interval.ms",
        2000,
        update=READ_ONLY,
        doc="How often a broker sends a heartbeat to the controller.",
    )
    broker_id = integer(
        "broker.id",
        -1,
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="The old name of node.id. If both are set, they must be equal.",
    )
    broker_rack = string(
        "broker.rack",
        None,
        update=READ_ONLY,
        doc="The rack of this node. Replicas of a partition are spread over racks.",
    )
    broker_session_timeout_ms = integer(
        "broker.session.timeout.ms",
        9000,
        update=READ_ONLY,
        doc="If a broker sends no heartbeat for this long, the controller moves its leaderships to other "
        "brokers.",
    )
    config_providers = listing(
        "config.providers",
        (),
        DistinctList(),
        importance=LOW,
        update=CLUSTER_WIDE,
        inert=True,
        doc="Names of the plugins that replace ${...} in config values.",
    )
    controlled_shutdown_enable = boolean(
        "controlled.shutdown.enable",
        True,
        update=READ_ONLY,
        doc="Hand over leadership before stopping.",
    )
    initial_broker_registration_timeout_ms = integer(
        "initial.broker.registration.timeout.ms",
        60_000,
        update=READ_ONLY,
        doc="How long a starting broker tries to register with the controller before it gives up.",
    )
    node_id = integer(
        "node.id",
        REQUIRED,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="The id of this node, which must be unique in the cluster.",
    )
    process_roles = listing(
        "process.roles",
        REQUIRED,
        DistinctList(("broker", "controller"), may_be_empty=False),
        importance=HIGH,
        update=READ_ONLY,
        doc="The roles of this node: broker, controller or both. An Ottla node has both.",
    )
    server_max_startup_time_ms = long(
        "server.max.startup.time.ms",
        LONG_MAX,
        Range(0),
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="The node gives up if the start takes longer than this.",
    )
    unstable_api_versions_enable = boolean(
        "unstable.api.versions.enable",
        False,
        importance=HIGH,
        update=READ_ONLY,
        internal=True,
        doc="Offer versions of APIs that are not final yet.",
    )
    unstable_feature_versions_enable = boolean(
        "unstable.feature.versions.enable",
        False,
        importance=HIGH,
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="Allow feature levels that are not final yet.",
    )
