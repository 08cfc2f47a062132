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
        doc="Size of the background task pool.",
    )
    broker_heartbeat_interval_ms = integer(
        "broker.heartbeat.interval.ms", 2000, update=READ_ONLY, doc="Pause between BrokerHeartbeat requests."
    )
    broker_id = integer(
        "broker.id", -1, importance=HIGH, update=READ_ONLY, doc="Old alias of node.id; must agree if given."
    )
    broker_rack = string(
        "broker.rack", None, update=READ_ONLY, doc="Rack name for placement and follower fetching."
    )
    broker_session_timeout_ms = integer(
        "broker.session.timeout.ms",
        9000,
        update=READ_ONLY,
        doc="Controller fences a broker silent for this long.",
    )
    config_providers = listing(
        "config.providers",
        (),
        DistinctList(),
        importance=LOW,
        update=CLUSTER_WIDE,
        doc="Names of plugins resolving ${...} in config values.",
    )
    controlled_shutdown_enable = boolean(
        "controlled.shutdown.enable", True, update=READ_ONLY, doc="Hand over leadership before stopping."
    )
    initial_broker_registration_timeout_ms = integer(
        "initial.broker.registration.timeout.ms",
        60_000,
        update=READ_ONLY,
        doc="Give up start if the controller does not accept registration.",
    )
    node_id = integer(
        "node.id",
        REQUIRED,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="Id of this process in the cluster.",
    )
    process_roles = listing(
        "process.roles",
        REQUIRED,
        DistinctList(("broker", "controller"), may_be_empty=False),
        importance=HIGH,
        update=READ_ONLY,
        doc="Broker, controller or both.",
    )
    server_max_startup_time_ms = long(
        "server.max.startup.time.ms",
        LONG_MAX,
        Range(0),
        update=READ_ONLY,
        internal=True,
        doc="Internal: abort slow start.",
    )
    unstable_api_versions_enable = boolean(
        "unstable.api.versions.enable",
        False,
        importance=HIGH,
        update=READ_ONLY,
        internal=True,
        doc="Internal: accept unstable API versions.",
    )
    unstable_feature_versions_enable = boolean(
        "unstable.feature.versions.enable",
        False,
        importance=HIGH,
        update=READ_ONLY,
        internal=True,
        doc="Internal: accept unstable feature levels.",
    )
