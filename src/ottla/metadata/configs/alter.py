"""Whether a change of configs is allowed, and what it makes of the overrides.

Kafka judges a change twice: the broker that is asked judges what concerns itself, then the controller judges
the overrides as they would become. Here it is one judgement with the same outcome. Whether a topic exists is
not asked: the caller does so afterwards, as Kafka's controller does (an invalid value is reported first).

Log levels are in `loggers`: they are never stored.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.metadata.configs.alter_broker import check_broker_name, check_broker_overrides
from ottla.metadata.configs.client_metrics import ClientMetricsConfig
from ottla.metadata.configs.declare import ConfigKey
from ottla.metadata.configs.effective import EffectiveConfigs, group_config
from ottla.metadata.configs.errors import ChangeRefused, InvalidConfig
from ottla.metadata.configs.group import GroupConfig
from ottla.metadata.configs.layers import is_usable
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.requirements import find_group_problems, find_topic_problems
from ottla.metadata.configs.subscriptions import check_subscription
from ottla.metadata.configs.topic import TopicConfig
from ottla.metadata.image import ConfigResource
from ottla.model.topic_names import find_topic_name_fault
from ottla.wire.config_kinds import AlterOperation, ConfigType, ResourceType
from ottla.wire.error_code import ErrorCode

VALUE_BYTES_MAX: Final = 32_767
"""What a string on the wire can hold. A list that is appended to could grow beyond it."""

MIN_ISR: Final = "min.insync.replicas"


class Change(NamedTuple):
    """One config of a resource, and what to do with it (an AlterOperation)."""

    name: str
    operation: int
    value: str | None


class Situation(NamedTuple):
    """What a change is judged by: the configs in force on this node, and the cluster's features."""

    configs: EffectiveConfigs
    has_eligible_leader_replicas: bool
    """Whether eligible.leader.replicas.version is at least 1: then min.insync.replicas is the cluster's."""
    is_for_others: bool = False
    """Whether it is the controller that judges. A broker judges its own configs before it passes them on."""


Overrides = Mapping[str, str]
NewTexts = dict[str, str | None]
"""The configs to write, by name; None removes an override."""


def decide_changes(
    resource: ConfigResource, changes: Sequence[Change], current: Overrides, situation: Situation
) -> NewTexts:
    """Decide what IncrementalAlterConfigs writes for a resource with the overrides `current`."""
    _refuse_repetitions([change.name for change in changes])
    _refuse_nulls(
        [
            change.name
            for change in changes
            if change.operation != AlterOperation.DELETE and change.value is None
        ]
    )
    keys = _keys_of(resource)
    _check_name(resource, situation)
    asked = {change.name: _new_text(keys, change, current) for change in changes}
    return _judged(resource, asked, {}, current, situation)


def decide_replacement(
    resource: ConfigResource,
    wanted: Sequence[tuple[str, str | None]],
    current: Overrides,
    situation: Situation,
) -> NewTexts:
    """Decide what AlterConfigs writes: `wanted` is to be all that the resource overrides."""
    _refuse_repetitions([name for name, _ in wanted])
    _refuse_nulls([name for name, value in wanted if value is None])
    _keys_of(resource)
    _check_name(resource, situation)
    asked = dict(wanted)
    forgotten: NewTexts = {name: None for name in current if name not in asked}
    return _judged(resource, asked, forgotten, current, situation)


def check_new_topic(overrides: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """Return the overrides of a topic to be created. Of a name that occurs twice the last one counts."""
    nulls = [name for name, value in overrides if value is None]
    if nulls:
        raise ChangeRefused(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}"
        )
    texts = {name: value for name, value in overrides if value is not None}
    _check_topic_overrides(texts)
    return texts


def find_repeated_resources(resources: Sequence[ConfigResource]) -> frozenset[ConfigResource]:
    """Return the resources that a request names more than once. None of their changes is made."""
    return frozenset(resource for resource, times in Counter(resources).items() if times > 1)


REPEATED_RESOURCE: Final = "Each resource must appear at most once."


def _judged(
    resource: ConfigResource, asked: NewTexts, forgotten: NewTexts, current: Overrides, situation: Situation
) -> NewTexts:
    new_texts = {**asked, **forgotten}
    kept = {
        name: text
        for name, text in current.items()
        if name not in new_texts and _counts(resource, name, text)
    }
    after = kept | {name: text for name, text in new_texts.items() if text is not None}
    _CHECKS[resource.type](resource.name, after, situation)
    if resource.type == ResourceType.BROKER:
        _guard_min_isr(resource, new_texts, situation)
        # A broker's override is written even if it stays the same: that is how files are read again.
        return new_texts
    return {name: text for name, text in new_texts.items() if text != current.get(name)}


def _counts(resource: ConfigResource, name: str, text: str) -> bool:
    """Say whether an override that is there already takes effect. Another version may have written others."""
    if resource.type == ResourceType.BROKER:
        return is_usable(name, text, for_one_broker=bool(resource.name))
    return name in _DECLARED[resource.type]


def _refuse_repetitions(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _refuse_nulls(names: Sequence[str]) -> None:
    if names:
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"Null value not supported for: {', '.join(names)}")


def _keys_of(resource: ConfigResource) -> Mapping[str, ConfigKey[Any]]:
    match resource.type:
        case ResourceType.TOPIC:
            return TopicConfig.keys
        case ResourceType.BROKER:
            return NodeConfig.keys
        case ResourceType.GROUP | ResourceType.CLIENT_METRICS:
            # Kafka's controller does not know the types of these, so their lists cannot be appended to.
            return {}
    raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.type}")


def _check_name(resource: ConfigResource, situation: Situation) -> None:
    if resource.type == ResourceType.BROKER and resource.name:
        own_id = situation.configs.node.node_id
        check_broker_name(resource.name, None if situation.is_for_others else own_id)


def _new_text(keys: Mapping[str, ConfigKey[Any]], change: Change, current: Overrides) -> str | None:
    if change.operation == AlterOperation.DELETE:
        return None
    if change.operation == AlterOperation.SET:
        return change.value
    if change.operation not in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
        # Deviation: for a topic Kafka answers UNKNOWN_SERVER_ERROR here, which says nothing.
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST, f"Unknown operation {change.operation} on {change.name}"
        )
    key = keys.get(change.name)
    if key is None or key.type is not ConfigType.LIST:
        verb = AlterOperation(change.operation).name
        reason = f"Can't {verb} to key {change.name} because its type is not LIST."
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, reason)
    assert change.value is not None, "nulls were refused before"
    text = _changed_list(current.get(change.name, key.format_default() or ""), change.operation, change.value)
    if len(text.encode()) > VALUE_BYTES_MAX:
        reason = f"{change.name} would be longer than {VALUE_BYTES_MAX} bytes"
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, reason)
    return text


def _changed_list(old: str, operation: int, value: str) -> str:
    elements = [element for element in old.split(",") if element]
    given = value.split(",")
    if operation == AlterOperation.APPEND:
        # A dictionary keeps their order, and need not compare each with all.
        present = set(elements)
        elements += dict.fromkeys(element for element in given if element not in present)
    else:
        left = Counter(given)
        kept = []
        for element in elements:
            if left[element] > 0:
                left[element] -= 1
            else:
                kept.append(element)
        elements = kept
    return ",".join(elements)


def _check_topic(name: str, overrides: Overrides, _: Situation) -> None:
    if not name:
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    fault = find_topic_name_fault(name)
    if fault is not None:
        raise ChangeRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    _check_topic_overrides(overrides)


def _check_topic_overrides(overrides: Overrides) -> None:
    for name in overrides:
        if name not in TopicConfig.keys:
            raise ChangeRefused(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    try:
        config = TopicConfig({name: TopicConfig.keys[name].parse(text) for name, text in overrides.items()})
    except InvalidConfig as error:
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, str(error)) from None
    for problem in find_topic_problems(config):
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, problem)


def _check_group(name: str, overrides: Overrides, situation: Situation) -> None:
    if not name:
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    for config_name, text in overrides.items():
        key = GroupConfig.keys.get(config_name)
        if key is None:
            raise ChangeRefused(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {config_name}")
        try:
            key.parse(text)
        except InvalidConfig as error:
            raise ChangeRefused(ErrorCode.INVALID_CONFIG, str(error)) from None
    config = group_config(situation.configs.group_defaults, overrides)
    for problem in find_group_problems(config, situation.configs.node):
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, problem)


def _check_subscription(name: str, overrides: Overrides, _: Situation) -> None:
    check_subscription(name, overrides)


def _check_broker(name: str, overrides: Overrides, situation: Situation) -> None:
    is_other = situation.is_for_others and bool(name) and int(name) != situation.configs.node.node_id
    check_broker_overrides(name, overrides, situation.configs, is_other=is_other)


def _guard_min_isr(resource: ConfigResource, new_texts: NewTexts, situation: Situation) -> None:
    """With KIP-966 the controller relies on one min.insync.replicas, the cluster's, which is always there."""
    if not situation.has_eligible_leader_replicas or MIN_ISR not in new_texts:
        return
    if resource.name:
        reason = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, reason)
    if new_texts[MIN_ISR] is None:
        reason = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        raise ChangeRefused(ErrorCode.INVALID_CONFIG, reason)


_DECLARED: Final[Mapping[int, Mapping[str, ConfigKey[Any]]]] = {
    ResourceType.TOPIC: TopicConfig.keys,
    ResourceType.GROUP: GroupConfig.keys,
    ResourceType.CLIENT_METRICS: ClientMetricsConfig.keys,
}
_CHECKS: Final[Mapping[int, Callable[[str, Overrides, Situation], None]]] = {
    ResourceType.TOPIC: _check_topic,
    ResourceType.BROKER: _check_broker,
    ResourceType.GROUP: _check_group,
    ResourceType.CLIENT_METRICS: _check_subscription,
}
