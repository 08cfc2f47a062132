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
        doc="How many threads Kafka does housekeeping with.",
    )
    broker_heartbeat_interval_ms = integer(
        "broker.heartbeat.interval.ms",
        2000,
        update=READ_ONLY,
        inert=True,
        doc="How often a broker tells the controller that it lives.",
    )
    broker_id = integer(
        "broker.id",
        -1,
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="The older name of node.id; if both are set they must agree.",
    )
    broker_rack = string(
        "broker.rack",
        None,
        update=READ_ONLY,
        doc="Where this node stands; replicas of a partition are spread over racks.",
    )
    broker_session_timeout_ms = integer(
        "broker.session.timeout.ms",
        9000,
        update=READ_ONLY,
        inert=True,
        doc="How long a broker may be silent before the controller takes its leaderships away.",
    )
    config_providers = listing(
        "config.providers",
        (),
        DistinctList(),
        importance=LOW,
        update=CLUSTER_WIDE,
        inert=True,
        doc="Names of plugins that fill in ${...} in config values.",
    )
    controlled_shutdown_enable = boolean(
        "controlled.shutdown.enable",
        True,
        update=READ_ONLY,
        inert=True,
        doc="Hand over leadership before stopping.",
    )
    initial_broker_registration_timeout_ms = integer(
        "initial.broker.registration.timeout.ms",
        60_000,
        update=READ_ONLY,
        inert=True,
        doc="How long a starting broker tries to register with the controller before it gives up.",
    )
    node_id = integer(
        "node.id",
        REQUIRED,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="The number of this node in its cluster.",
    )
    process_roles = listing(
        "process.roles",
        REQUIRED,
        DistinctList(("broker", "controller"), may_be_empty=False),
        importance=HIGH,
        update=READ_ONLY,
        doc="What this node is: broker, controller or both. Ottla is both.",
    )
    server_max_startup_time_ms = long(
        "server.max.startup.time.ms",
        LONG_MAX,
        Range(0),
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="Give up if the start takes longer.",
    )
    unstable_api_versions_enable = boolean(
        "unstable.api.versions.enable",
        False,
        importance=HIGH,
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="Offer versions of requests that are not final yet.",
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
