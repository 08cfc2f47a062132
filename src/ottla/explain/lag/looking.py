"""Looks at groups: what they have committed, where their partitions end, and who reads them.

All groups are asked at once, and each partition only once, however many groups read it. Spark pipelines are
groups too: they commit what they have read. Share groups tell their start offsets and lags themselves.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.client.admin.configs import ConfigResource
from ottla.client.admin.descriptions import GroupDescription, GroupListing, MemberDescription
from ottla.client.admin.group_offsets import PartitionLag
from ottla.client.errors import BrokerError, ClientError
from ottla.explain.access import Access
from ottla.explain.evidence.logs import partitions_of
from ottla.explain.lag.outlook import PartitionLook, Retention, Velocity, retention_of, velocities
from ottla.explain.lag.unread import oldest_unread_ms
from ottla.model.ids import TopicPartition
from ottla.model.ledger_groups import is_ledger
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode

_SHARE = "share"
_RETENTION_KEYS = ("cleanup.policy", "retention.ms", "retention.bytes")


class _Standing(NamedTuple):
    """How far a group is in a partition. A share group may be done with records behind ones that it is not
    done with, so brokers count what is left (Kafka 4.3, KIP-1226).
    """

    offset: int
    told_lag: int | None = None


@dataclass(frozen=True, slots=True)
class GroupLook:
    """One group at one moment. `trouble` is why nothing could be learned about it, if so."""

    group_id: str
    type: str
    state: str
    members: int
    partitions: tuple[PartitionLook, ...] = ()
    trouble: str | None = None
    bare: tuple[TopicPartition, ...] = ()
    """Partitions with records that no member has, of topics that members have others of."""

    @property
    def lags(self) -> tuple[PartitionLag, ...]:
        """Return the plain lags."""
        return tuple(look.lag for look in self.partitions)


@dataclass(frozen=True, slots=True)
class Looks:
    """All groups at one moment; `at_s` is monotonic."""

    at_s: float
    groups: tuple[GroupLook, ...]


async def look(access: Access, names: Collection[str] = ()) -> Looks:
    """Look at the groups of these names, or at all but the ledgers of pipelines."""
    listed = await _listed(access, names)
    at_s = time.monotonic()
    described = await _described(access, listed)
    committed = dict(
        zip(listed, await asyncio.gather(*(_committed(access, item) for item in listed)), strict=True)
    )
    places = {where for found in committed.values() if isinstance(found, dict) for where in found}
    for description in described.values():
        places.update(where for member in description.members for where in member.assignment)
    siblings = await _siblings(access, described.values())
    places |= {where for some in siblings.values() for where in some}
    starts = (await access.admin.offsets.earliest(places)).succeeded
    ends = (await access.admin.offsets.latest(places)).succeeded
    groups = []
    for item in listed:
        its = described.get(item.group_id)
        found = committed[item]
        if isinstance(found, ClientError):
            groups.append(GroupLook(item.group_id, item.type, item.state, 0, trouble=str(found)))
            continue
        readers = _readers(its)
        lags = [
            _lag(
                where,
                found.get(where),
                starts[where].offset if where in starts else None,
                ends[where].offset if where in ends else None,
            )
            for where in sorted({*found, *readers})
        ]
        groups.append(
            GroupLook(
                item.group_id,
                item.type,
                its.state if its is not None else item.state,
                len(its.members) if its is not None else 0,
                tuple(PartitionLook(replace(lag, member=readers.get(lag.where))) for lag in lags),
                bare=tuple(
                    where
                    for where in siblings.get(item.group_id, ())
                    if where in ends and where in starts and ends[where].offset > starts[where].offset
                ),
            )
        )
    return Looks(at_s, tuple(groups))


async def _siblings(
    access: Access, described: Iterable[GroupDescription]
) -> dict[str, tuple[TopicPartition, ...]]:
    """Return the partitions that no member has, of the topics that members of stable groups read."""
    held = {
        item.group_id: {where for member in item.members for where in member.assignment}
        for item in described
        if item.type != _SHARE and item.state.lower() == "stable"
    }
    topics = {where.topic for some in held.values() for where in some}
    if not topics:
        return {}
    known = {where.topic: where for where in await partitions_of(access, sorted(topics))}
    counts = {topic: where.partition + 1 for topic, where in known.items()}
    return {
        group_id: tuple(
            where
            for topic in sorted({where.topic for where in some})
            for number in range(counts.get(topic, 0))
            if (where := TopicPartition(topic, number)) not in some
        )
        for group_id, some in held.items()
    }


def with_speeds(before: Looks, after: Looks) -> Looks:
    """Add to the later of two looks how fast everything moved between them."""
    earlier = {group.group_id: group for group in before.groups}
    seconds = max(after.at_s - before.at_s, 0.001)

    def moving(group: GroupLook) -> GroupLook:
        old = earlier.get(group.group_id)
        speeds: dict[TopicPartition, Velocity] = (
            {} if old is None else velocities(old.lags, group.lags, seconds)
        )
        return replace(
            group,
            partitions=tuple(replace(item, velocity=speeds.get(item.lag.where)) for item in group.partitions),
        )

    return replace(after, groups=tuple(map(moving, after.groups)))


async def with_ages(access: Access, looks: Looks) -> Looks:
    """Add how old the unread records are, and how long the partitions keep theirs."""
    behind = {item.lag.where for group in looks.groups for item in group.partitions if item.lag.lag}
    retentions = await _retentions(access, {where.topic for where in behind})
    sizes = await _record_bytes(access, behind, looks)
    groups = []
    for group in looks.groups:
        ages = await oldest_unread_ms(access.cluster, group.lags)
        groups.append(
            replace(
                group,
                partitions=tuple(
                    replace(
                        item,
                        oldest_unread_ms=ages.get(item.lag.where),
                        retention=retentions.get(item.lag.where.topic, Retention()),
                        record_bytes=sizes.get(item.lag.where),
                    )
                    for item in group.partitions
                ),
            )
        )
    return replace(looks, groups=tuple(groups))


async def _listed(access: Access, names: Collection[str]) -> Sequence[GroupListing]:
    listed = await access.admin.groups.list()
    if not names:
        return [item for item in listed if not is_ledger(item.group_id)]
    known = {item.group_id: item for item in listed}
    for name in names:
        if name not in known:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"cannot look at group {name!r}")
    return [known[name] for name in dict.fromkeys(names)]


async def _described(access: Access, listed: Sequence[GroupListing]) -> dict[str, GroupDescription]:
    shared = [item.group_id for item in listed if item.type == _SHARE]
    others = [item.group_id for item in listed if item.type != _SHARE]
    found = dict((await access.admin.groups.describe_many(others)).succeeded)
    if shared:
        found |= (await access.admin.share_groups.describe_many(shared)).succeeded
    return found


async def _committed(access: Access, item: GroupListing) -> "dict[TopicPartition, _Standing] | ClientError":
    try:
        if item.type == _SHARE:
            starts = await access.admin.share_groups.offsets(item.group_id)
            return {where: _Standing(at.start_offset, at.lag) for where, at in starts.items()}
        committed = await access.admin.group_offsets.list(item.group_id)
        return {where: _Standing(at.offset) for where, at in committed.items()}
    except ClientError as error:
        return error


def _readers(description: GroupDescription | None) -> dict[TopicPartition, MemberDescription]:
    """Return who reads what. Of a share group, several members read a partition, so it has no reader."""
    if description is None or description.type == _SHARE:
        return {}
    return {where: member for member in description.members for where in member.assignment}


def _lag(
    where: TopicPartition, standing: "_Standing | None", start: int | None, end: int | None
) -> PartitionLag:
    offset = None if standing is None else standing.offset
    lag = None if offset is None or end is None else max(end - offset, 0)
    if standing is not None and standing.told_lag is not None:
        lag = standing.told_lag
    return PartitionLag(where, offset, start, end, lag, None)


async def _retentions(access: Access, topics: Collection[str]) -> dict[str, Retention]:
    found = await access.admin.configs.describe_many(
        [ConfigResource(ResourceType.TOPIC, name) for name in sorted(topics)],
        keys=_RETENTION_KEYS,
        synonyms=False,
    )
    return {
        resource.name: retention_of({name: config.value for name, config in configs.items()})
        for resource, configs in found.succeeded.items()
    }


async def _record_bytes(
    access: Access, partitions: Collection[TopicPartition], looks: Looks
) -> dict[TopicPartition, float]:
    """Return how many bytes a record takes, on average, as far as brokers tell sizes."""
    if not partitions:
        return {}
    ends = {item.lag.where: item.lag for group in looks.groups for item in group.partitions}
    found = {}
    for directories in (await access.admin.log_dirs.describe(partitions=partitions)).succeeded.values():
        for directory in directories:
            for replica in directory.replicas:
                lag = ends[replica.where]
                records = (lag.log_end_offset or 0) - (lag.log_start_offset or 0)
                if records > 0 and not replica.is_future:
                    found[replica.where] = replica.size_bytes / records
    return found
