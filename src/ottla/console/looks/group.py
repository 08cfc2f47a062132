"""One group of any kind: its members, what they read, and how far it is behind in records and in time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.admin.descriptions import GroupDescription, GroupListing, MemberDescription
from ottla.client.errors import BrokerError
from ottla.console.looks.groups import SHARE
from ottla.explain.access import Access
from ottla.explain.lag.looking import GroupLook, look, with_ages
from ottla.explain.lag.outlook import PartitionLook, total
from ottla.model.ledger_groups import is_ledger
from ottla.wire.error_code import ErrorCode

_PROTOCOLS = {
    "classic": "members choose the assignment",
    "consumer": "the coordinator assigns (KIP-848)",
    SHARE: "a queue: members share partitions (KIP-932)",
    "streams": "Kafka Streams (KIP-1071)",
}


class MemberLine(NamedTuple):
    """A member, and how far it is behind in what it reads."""

    member: MemberDescription
    by_topic: Mapping[str, Sequence[int]]
    lag: int | None
    is_moving: bool
    """Whether it does not have yet, or still has, what it is meant to have."""


@dataclass(frozen=True)
class GroupPageLook:
    """One group."""

    name: str
    kind: str
    protocol: str
    state: str
    description: GroupDescription | None
    partitions: Sequence[PartitionLook]
    members: Sequence[MemberLine]
    trouble: str | None

    @property
    def lag(self) -> int | None:
        """The lag in all partitions. A ledger counts batches, so it has none."""
        return None if is_ledger(self.name) else total(item.lag.lag for item in self.partitions)

    @property
    def oldest_unread_ms(self) -> int | None:
        """The time of the oldest record that was not read."""
        times = [item.oldest_unread_ms for item in self.partitions if item.oldest_unread_ms is not None]
        return min(times, default=None)

    @property
    def is_ledger(self) -> bool:
        """Whether it is the ledger of a pipeline."""
        return is_ledger(self.name)


async def look_at_group(access: Access, name: str) -> GroupPageLook:
    """Read one group. Raises BrokerError if there is none of this name."""
    listing = await _listing(access, name)
    looks = await with_ages(access, await look(access, [name]))
    group: GroupLook = looks.groups[0]
    describing = access.admin.share_groups if listing.type == SHARE else access.admin.groups
    described = (await describing.describe_many([name])).succeeded.get(name)
    kind = listing.type or (described.type if described is not None else "classic")
    return GroupPageLook(
        name,
        kind,
        _PROTOCOLS.get(kind, kind),
        group.state or listing.state,
        described,
        group.partitions,
        _members(described, group.partitions),
        group.trouble,
    )


async def _listing(access: Access, name: str) -> GroupListing:
    for listing in await access.admin.groups.list():
        if listing.group_id == name:
            return listing
    raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {name!r}")


def _members(description: GroupDescription | None, looks: Sequence[PartitionLook]) -> list[MemberLine]:
    if description is None:
        return []
    lags = {item.lag.where: item.lag.lag for item in looks}
    lines = []
    for member in description.members:
        by_topic: dict[str, list[int]] = {}
        for where in sorted(member.assignment):
            by_topic.setdefault(where.topic, []).append(where.partition)
        is_moving = member.target_assignment is not None and set(member.target_assignment) != set(
            member.assignment
        )
        lines.append(
            MemberLine(member, by_topic, total(lags.get(where) for where in member.assignment), is_moving)
        )
    return lines


def ranges(numbers: Sequence[int]) -> str:
    """Return numbers of partitions in short: 0-3, 7."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
