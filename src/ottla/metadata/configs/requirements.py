"""What several configs together have to fulfil. Each function yields a sentence for everything that is wrong.

A single value is judged by its own rule, where it is declared; here are the demands one config makes of
another. They are Kafka's, so a file that Kafka's server refuses is refused here too.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.group import GroupConfig
from ottla.metadata.configs.node import UNLIMITED, Endpoint, NodeConfig, parse_address_limits
from ottla.metadata.configs.topic import TopicConfig

_MIB: Final = 1 << 20
_ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104  (nothing binds to it here)


def find_node_problems(config: NodeConfig) -> Iterator[str]:
    """Judge the configs of a node as a whole."""
    yield from chain(
        _find_identity_problems(config),
        _find_log_problems(config),
        _find_replication_problems(config),
        _find_connection_problems(config),
        _find_group_bound_problems(config),
    )
    try:
        yield from _find_listener_problems(config)
    except InvalidConfig as error:
        yield str(error)


def find_topic_problems(config: TopicConfig) -> Iterator[str]:
    """Judge the overrides of a topic. What it does not override has the declared default, as in Kafka."""
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        yield (
            f"conflict: min.compaction.lag.ms ({config.min_compaction_lag_ms}) is above "
            f"max.compaction.lag.ms ({config.max_compaction_lag_ms})"
        )
    if config.remote_storage_enable:
        # Deviation: Kafka allows it where a storage plugin is configured. Ottla has no tiered storage.
        yield "remote.storage.enable: there is no tiered storage on this broker"


def find_group_problems(config: GroupConfig, node: NodeConfig) -> Iterator[str]:
    """Judge the configs of a group against the bounds that the broker sets."""
    for name, lowest, highest in GROUP_BOUNDS:
        value = _number(config.value_of(name))
        if lowest is not None and value < _number(node.value_of(lowest)):
            yield f"{name} must be greater than or equal to {lowest}"
        if highest is not None and value > _number(node.value_of(highest)):
            yield f"{name} must be less than or equal to {highest}"
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
        if _number(config.value_of(heartbeat)) >= _number(config.value_of(session)):
            yield f"{session} must be greater than {heartbeat}"


class GroupBound(NamedTuple):
    """A group's config and the broker's configs that bound it."""

    name: str
    lowest: str | None
    highest: str | None


def _group_bounds() -> Iterator[GroupBound]:
    for name in GroupConfig.keys:
        kind, _, rest = name.partition(".")
        lowest, highest = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest.removeprefix('num.')}"
        if lowest in NodeConfig.keys or highest in NodeConfig.keys:
            yield GroupBound(
                name,
                lowest if lowest in NodeConfig.keys else None,
                highest if highest in NodeConfig.keys else None,
            )


GROUP_BOUNDS: Final = tuple(_group_bounds())


def _find_identity_problems(config: NodeConfig) -> Iterator[str]:
    if config.broker_id not in (config.node_id, -1):
        yield f"broker.id ({config.broker_id}) must be the same as node.id ({config.node_id})"
    if not config.data_directories:
        yield "log.dirs or log.dir must name at least one directory"
    if config.controller_quorum_auto_join_enable and not config.is_controller:
        yield "controller.quorum.auto.join.enable needs process.roles to contain controller"
    missing = set(config.cordoned_log_dirs or ()) - set(config.data_directories) - {"*"}
    if missing:
        yield f"cordoned.log.dirs names what log.dirs or log.dir does not: {', '.join(sorted(missing))}"
    if config.cordoned_log_dirs and "*" in config.cordoned_log_dirs and len(config.cordoned_log_dirs) > 1:
        yield "cordoned.log.dirs must name nothing else beside *"


def _find_log_problems(config: NodeConfig) -> Iterator[str]:
    if config.roll_ms < 1:
        yield "log.roll.ms must be greater than or equal to 1"
    if config.roll_jitter_ms < 0:
        yield "log.roll.jitter.ms must be greater than or equal to 0"
    if config.retention_ms != UNLIMITED and config.retention_ms < 1:
        yield "log.retention.ms must be unlimited (-1) or greater than or equal to 1"
    if config.log_cleaner_dedupe_buffer_size // max(config.log_cleaner_threads, 1) <= _MIB:
        yield "log.cleaner.dedupe.buffer.size must be more than 1 MiB for each of log.cleaner.threads"


def _find_replication_problems(config: NodeConfig) -> Iterator[str]:
    if config.replica_fetch_wait_max_ms > config.replica_socket_timeout_ms:
        yield "replica.socket.timeout.ms must be at least replica.fetch.wait.max.ms, or fetches time out"
    if config.replica_fetch_wait_max_ms > config.replica_lag_time_max_ms:
        yield "replica.fetch.wait.max.ms must be at most replica.lag.time.max.ms, or the ISR keeps changing"


def _find_connection_problems(config: NodeConfig) -> Iterator[str]:
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        yield "queued.max.request.bytes must be greater than or equal to socket.request.max.bytes"
    try:
        overrides = parse_address_limits(config.max_connections_per_ip_overrides)
    except InvalidConfig as error:
        yield str(error)
    else:
        if config.max_connections_per_ip == 0 and not overrides:
            yield "max.connections.per.ip can be 0 only if max.connections.per.ip.overrides is set"
    if 0 <= config.connections_max_idle_ms <= config.connection_failed_authentication_delay_ms:
        yield "connection.failed.authentication.delay.ms must be less than connections.max.idle.ms"


def _find_group_bound_problems(config: NodeConfig) -> Iterator[str]:
    for name in NodeConfig.keys:
        if not name.startswith("group."):
            continue
        for bound in (".min.", ".max."):
            if bound in name and (base := name.replace(bound, ".", 1)) in NodeConfig.keys:
                value, limit = _number(config.value_of(base)), _number(config.value_of(name))
                if bound == ".min." and value < limit:
                    yield f"{base} must be greater than or equal to {name}"
                elif bound == ".max." and value > limit:
                    yield f"{base} must be less than or equal to {name}"
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if _number(config.value_of(heartbeat)) >= _number(config.value_of(session)):
            yield f"{heartbeat} must be less than {session}"


def _find_listener_problems(config: NodeConfig) -> Iterator[str]:
    endpoints = config.listener_endpoints
    yield from _find_repeated_endpoints("listeners", endpoints, ports_too=True)
    if any(endpoint.host == _ANY_ADDRESS for endpoint in config.advertised_endpoints):
        yield "advertised.listeners must not be 0.0.0.0, which nobody can connect to"
    yield from _find_repeated_endpoints("advertised.listeners", config.advertised_endpoints, ports_too=False)
    names = {endpoint.listener for endpoint in endpoints}
    if config.is_broker:
        if not config.broker_endpoints:
            yield "listeners must have one that controller.listener.names does not name"
        elif config.inter_broker_listener not in {end.listener for end in config.advertised_endpoints}:
            name = config.inter_broker_listener
            yield f"inter.broker.listener.name: {name} is not among the advertised listeners"
    if not config.is_controller and names & set(config.controller_listeners):
        yield "controller.listener.names must name none of the listeners where process.roles is broker alone"
    if not config.is_broker and names - set(config.controller_listeners):
        yield "listeners must all be in controller.listener.names where process.roles is controller alone"


def _find_repeated_endpoints(name: str, endpoints: tuple[Endpoint, ...], *, ports_too: bool) -> Iterator[str]:
    listeners = [endpoint.listener for endpoint in endpoints]
    if len(set(listeners)) < len(listeners):
        yield f"{name}: each listener must have a different name"
    ports = [endpoint.port for endpoint in endpoints if endpoint.port != 0]
    if ports_too and len(set(ports)) < len(ports):
        yield f"{name}: each listener must have a different port"


def _number(value: object) -> float:
    assert isinstance(value, int | float), "only numbers have bounds"
    return value
