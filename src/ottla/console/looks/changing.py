"""Changes of topics and groups: each is planned first, and a plan says what would be lost."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.client.admin.configs import Config
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.errors import BrokerError
from ottla.console.looks.places import UnreadablePlace, parse_time
from ottla.console.looks.topic import TopicLook
from ottla.explain.access import Access
from ottla.model.ids import TopicPartition
from ottla.wire.config_kinds import ConfigSource, ResourceType
from ottla.wire.error_code import ErrorCode

_INT_MAX = (1 << 31) - 1


class UnreadableChange(ValueError):
    """What was typed in is no change."""


class ConfigStep(NamedTuple):
    """One config that would be changed. None: the value that holds otherwise."""

    name: str
    before: str | None
    after: str | None
    falls_back: bool


def read_configs(text: str) -> dict[str, str | None]:
    """Read configs, one in a line: `key=value`, or `key=` to take one back. Raises UnreadableChange."""
    found: dict[str, str | None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise UnreadableChange(f"line {number} is not `key=value`")
        found[name.strip()] = value.strip() or None
    return found


def read_count(text: str, what: str) -> int | None:
    """Read a number of 1 or more, or nothing. Raises UnreadableChange."""
    if not text.strip():
        return None
    if not text.strip().isdecimal() or not 0 < int(text[:20]) <= _INT_MAX:
        raise UnreadableChange(f"{text[:20]!r} is no number of {what}")
    return int(text)


async def plan_configs(access: Access, topic: str, changes: Mapping[str, str | None]) -> list[ConfigStep]:
    """Say what would change, after the brokers have checked it. Raises BrokerError."""
    found: dict[str, Config] = await access.admin.configs.describe(ResourceType.TOPIC, topic)
    await access.admin.configs.alter(ResourceType.TOPIC, topic, changes, validate_only=True)
    steps = []
    for name, after in changes.items():
        before = found.get(name)
        falls_back = after is None
        if falls_back and before is not None:
            others = [same for same in before.synonyms if same.source is not ConfigSource.TOPIC]
            after = others[0].value if others else None
        steps.append(ConfigStep(name, None if before is None else before.value, after, falls_back))
    return steps


class LossPlan(NamedTuple):
    """What would be gone for good."""

    records: int | None
    size_bytes: int | None
    groups: list[str]
    """Which have committed offsets there."""


def plan_loss(look: TopicLook, groups: list[str]) -> LossPlan:
    """Say what a topic has that would be deleted."""
    return LossPlan(look.records, look.size_bytes, groups)


class ResetWish(NamedTuple):
    """Where a group is to go on."""

    to: str
    number: str
    topic: str


RESETS = {
    "earliest": "the first record",
    "latest": "the end",
    "time": "a time",
    "offset": "an offset",
    "shift": "so many records further, or back with a minus",
}


class ResetStep(NamedTuple):
    """One partition of a plan."""

    where: TopicPartition
    before: int | None
    after: int

    @property
    def moved(self) -> int | None:
        """How far it would be moved: back if it is negative."""
        return None if self.before is None else self.after - self.before


async def plan_reset(
    access: Access, group: str, wish: ResetWish, is_share: bool, now_ms: int
) -> list[ResetStep]:
    """Say where a group would go on. Raises UnreadableChange or BrokerError."""
    if not wish.topic:
        raise UnreadableChange("choose a topic: a reset is of one topic")
    target = _target(wish, now_ms)
    topics = [wish.topic]
    before: dict[TopicPartition, int]
    if is_share:
        offsets = await access.admin.share_groups.offsets(group)
        before = {where: at.start_offset for where, at in offsets.items()}
        plan = await access.admin.share_groups.plan_reset(group, topics=topics, **target)
    else:
        before = {where: at.offset for where, at in (await access.admin.group_offsets.list(group)).items()}
        plan = await access.admin.group_offsets.plan_reset(group, topics=topics, **target)
    if not plan:
        raise BrokerError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"group {group!r} has no committed offsets: choose a topic"
        )
    return [ResetStep(where, before.get(where), offset) for where, offset in sorted(plan.items())]


def _target(wish: ResetWish, now_ms: int) -> dict[str, Any]:
    number = wish.number.strip()
    if wish.to == "earliest":
        return {"to": OffsetSpec.EARLIEST}
    if wish.to == "latest":
        return {"to": OffsetSpec.LATEST}
    if wish.to == "time":
        try:
            return {"to_timestamp_ms": parse_time(number, now_ms)}
        except UnreadablePlace as error:
            raise UnreadableChange(str(error)) from error
    if wish.to == "shift" and number.lstrip("+-").isdecimal() and len(number) < 20:
        return {"shift_by": int(number)}
    if wish.to == "offset" and number.isdecimal() and len(number) < 20:
        return {"to": int(number)}
    raise UnreadableChange(f"say where to go on: {number[:20]!r} is no number")


async def carry_out_reset(access: Access, group: str, steps: list[ResetStep], is_share: bool) -> None:
    """Set the offsets of a plan. Raises ClientError for the first that could not be set."""
    offsets = {step.where: step.after for step in steps}
    if is_share:
        (await access.admin.share_groups.alter_offsets(group, offsets)).check()
    else:
        (await access.admin.group_offsets.alter(group, offsets)).check()
