"""Whether the dynamic configs of a broker, or of all brokers, may become what a change makes of them.

Everything wrong is INVALID_REQUEST here, wrong values included: so it is in Kafka, and clients know it so.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.errors import ChangeRefused, InvalidConfig
from ottla.metadata.configs.layers import (
    LISTENER_SECURITY_CONFIGS,
    BrokerLayers,
    is_per_broker,
    is_restart_only,
    node_config,
)
from ottla.metadata.configs.node import UNLIMITED, NodeConfig
from ottla.metadata.configs.requirements import find_node_problems
from ottla.metadata.configs.synonyms import find_listener_base
from ottla.wire.error_code import ErrorCode

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_AS_THE_WHOLE: Final = -2
_THREAD_COUNTS: Final = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)


def check_broker_overrides(
    name: str, overrides: Mapping[str, str], configs: EffectiveConfigs, *, is_other: bool = False
) -> None:
    """Refuse overrides for the broker called `name`, or for all brokers if that is empty.

    Whether they fit its other configs is not known here if it is another one. It was asked before.
    """
    _refuse("Cannot update these configs dynamically", filter(is_restart_only, overrides))
    _refuse(
        "These security configs can be updated dynamically only for a listener, with its prefix",
        overrides.keys() & LISTENER_SECURITY_CONFIGS,
    )
    _check_types(overrides)
    if not name:
        _refuse(
            "Cannot update these configs for all brokers at once, only for one with its id",
            filter(is_per_broker, overrides),
        )
    if is_other:
        return
    layers = configs.layers
    changed = layers._replace(**{"dynamic_broker" if name else "dynamic_default": overrides})
    for problem in _find_problems(configs.node, changed):
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, problem)


def check_broker_name(name: str, node_id: int | None) -> None:
    """Refuse what is no id, or not `node_id`: only a broker itself can say whether it can follow a change."""
    if not _INTEGER.fullmatch(name):
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if node_id is not None and int(name) != node_id:
        reason = f"Unexpected broker id, expected {node_id}, but received {name}"
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, reason)


def _refuse(reason: str, names: Iterable[str]) -> None:
    wrong = sorted(names)
    if wrong:
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"{reason}: [{', '.join(wrong)}]")


def _check_types(overrides: Mapping[str, str]) -> None:
    for name, text in overrides.items():
        key = NodeConfig.keys.get(find_listener_base(name) or name)
        if key is not None and not key.plugin:
            try:
                key.parse(text)
            except InvalidConfig as error:
                raise ChangeRefused(ErrorCode.INVALID_REQUEST, str(error)) from None


def _find_problems(current: NodeConfig, layers: BrokerLayers) -> Iterator[str]:
    new = node_config(layers)
    yield from find_node_problems(new)
    yield from _find_thread_problems(current, new)
    yield from _find_local_retention_problems(new)


def _find_thread_problems(current: NodeConfig, new: NodeConfig) -> Iterator[str]:
    """Kafka resizes its pools of threads only so far in one step. Ottla has none, but says the same."""
    for name in _THREAD_COUNTS:
        now, wanted = current.value_of(name), new.value_of(name)
        assert isinstance(now, int), "threads are counted"
        assert isinstance(wanted, int), "threads are counted"
        if wanted != now and not max(1, now // 2) <= wanted <= 2 * now:
            yield f"{name}={wanted} must be at least half and at most double the current value {now}"


def _find_local_retention_problems(config: NodeConfig) -> Iterator[str]:
    whole_ms, whole_bytes = config.retention_ms, config.log_retention_bytes
    limits = (
        ("log.local.retention.ms", config.log_local_retention_ms, "log.retention.ms", whole_ms),
        ("log.local.retention.bytes", config.log_local_retention_bytes, "log.retention.bytes", whole_bytes),
    )
    for name, local, whole_name, whole in limits:
        if whole != UNLIMITED and local != _AS_THE_WHOLE and (local == UNLIMITED or local > whole):
            yield f"{name} ({local}) must not be more than {whole_name} ({whole})"
