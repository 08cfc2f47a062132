"""Committed offsets of groups: read, set, reset, delete; and how far a group is behind."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ottla.client.admin.descriptions import GroupDescription, MemberDescription
from ottla.client.admin.groups import Groups
from ottla.client.admin.offsets import Offsets, OffsetSpec
from ottla.client.admin.reset_plans import ResetPlans
from ottla.client.admin.results import Results
from ottla.client.admin.routes import MISPLACED, ByVersion, Routes, by_topic, outcome_of
from ottla.client.cluster import GROUP
from ottla.client.errors import BrokerError, ClientError, UnsupportedByBroker
from ottla.model.ids import TopicPartition
from ottla.model.ledger_groups import is_ledger
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

# From version 10 on topics travel by id. An operator speaks of names, and a topic may be gone already.
_LAST_VERSION_WITH_NAMES = 9
_FIRST_VERSION_WITH_GROUPS = 8
_GROUPS_AT_ONCE = 200
"""An answer with all offsets of more groups than these would be large."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a group goes on reading a partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group is behind in one partition, and who reads it.

    `committed` is None where the group has committed nothing, `lag` where that or the end is not known, and
    for the ledger of a pipeline, whose offsets count batches.
    """

    where: TopicPartition
    committed: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    member: MemberDescription | None


class GroupOffsets:
    """The committed offsets of a cluster's groups."""

    def __init__(self, routes: Routes, groups: Groups, offsets: Offsets, plans: ResetPlans) -> None:
        self._routes = routes
        self._groups = groups
        self._offsets = offsets
        self._plans = plans

    async def list(
        self,
        group_id: str,
        partitions: Collection[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, CommittedOffset]:
        """Return what a group has committed, for all partitions or for some.

        Partitions without a committed offset are left out. With `require_stable` it waits for transactions
        that are committing offsets right now.
        """

        def outcome(answer: Any) -> dict[TopicPartition, CommittedOffset] | ClientError:
            return _committed(group_id, answer.groups[0] if answer.groups else answer)

        request = ByVersion(
            OffsetFetchRequest,
            lambda version: _fetch_request(group_id, partitions, require_stable, version),
            _LAST_VERSION_WITH_NAMES,
        )
        return await self._routes.ask_coordinator(GROUP, group_id, request, outcome)

    async def list_many(
        self, group_ids: Collection[str]
    ) -> Results[str, dict[TopicPartition, CommittedOffset]]:
        """Return what groups have committed, with a request for many groups at a time (Kafka 3.0)."""
        outcomes: dict[str, dict[TopicPartition, CommittedOffset] | ClientError] = {}
        for some in _batched(tuple(dict.fromkeys(group_ids))):
            found = await self._routes.ask_coordinators(GROUP, some, self._list_at)
            outcomes |= found.succeeded
            outcomes |= found.failed
        return Results(outcomes)

    async def _list_at(
        self, node_id: int, group_ids: Sequence[str]
    ) -> Mapping[str, dict[TopicPartition, CommittedOffset] | ClientError]:
        def make(version: int) -> OffsetFetchRequest:
            if version < _FIRST_VERSION_WITH_GROUPS:
                raise UnsupportedByBroker("the broker is too old to tell the offsets of several groups")
            groups = tuple(OffsetFetchRequestGroup(group_id=name, topics=None) for name in group_ids)
            return OffsetFetchRequest(groups=groups)

        request = ByVersion(OffsetFetchRequest, make, _LAST_VERSION_WITH_NAMES)
        try:
            answer = await self._routes.ask_node(node_id, request)
        except UnsupportedByBroker:
            return {name: await self._list_or_error(name) for name in group_ids}
        return {group.group_id: _committed(group.group_id, group) for group in answer.groups}

    async def _list_or_error(self, group_id: str) -> dict[TopicPartition, CommittedOffset] | ClientError:
        try:
            return await self.list(group_id)
        except ClientError as error:
            return error

    async def alter(
        self, group_id: str, offsets: Mapping[TopicPartition, int | CommittedOffset]
    ) -> Results[TopicPartition, None]:
        """Set where a group goes on. It must have no members; a group that does not exist is made."""
        wanted = {
            where: offset if isinstance(offset, CommittedOffset) else CommittedOffset(offset)
            for where, offset in offsets.items()
        }
        topics = tuple(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    _commit_partition(number, wanted[TopicPartition(topic, number)]) for number in numbers
                ),
            )
            for topic, numbers in by_topic(wanted).items()
        )

        def make(_version: int) -> OffsetCommitRequest:
            return OffsetCommitRequest(group_id=group_id, member_id="", topics=topics)

        request = ByVersion(OffsetCommitRequest, make, _LAST_VERSION_WITH_NAMES)
        return await self._change(group_id, request, f"cannot set the offset of group {group_id!r} for")

    async def delete(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> Results[TopicPartition, None]:
        """Forget what a group has committed for partitions that no member of it reads."""
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=number) for number in numbers),
            )
            for topic, numbers in by_topic(partitions).items()
        )
        request = OffsetDeleteRequest(group_id=group_id, topics=topics)
        return await self._change(group_id, request, f"cannot delete the offset of group {group_id!r} for")

    async def lag(self, group_id: str) -> tuple[PartitionLag, ...]:
        """Say for each partition the group reads, or has committed, how far it is behind the end."""
        description = await self._groups.describe(group_id)
        committed = await self.list(group_id)
        readers = _readers(description)
        partitions = sorted({*committed, *readers})
        starts = await self._offsets.earliest(partitions)
        ends = await self._offsets.latest(partitions)
        lags = (
            _lag(
                where,
                committed.get(where),
                starts.succeeded[where].offset if where in starts.succeeded else None,
                ends.succeeded[where].offset if where in ends.succeeded else None,
                readers.get(where),
            )
            for where in partitions
        )
        return tuple(replace(item, lag=None) if is_ledger(group_id) else item for item in lags)

    async def plan_reset(
        self,
        group_id: str,
        *,
        topics: Collection[str] | None = None,
        partitions: Collection[TopicPartition] | None = None,
        to: int | OffsetSpec | None = None,
        to_timestamp_ms: int | None = None,
        shift_by: int | None = None,
    ) -> dict[TopicPartition, int]:
        """Say where a group would go on; `alter` with the answer does it.

        Exactly one of: `to` an offset or an `OffsetSpec`; `to_timestamp_ms`, the first record at or after a
        time, or the end where there is none; `shift_by` from the committed offset. Offsets that a partition
        does not have become the nearest that it has. Without topics and partitions: all that were committed.
        """
        return await self._plans.plan(
            group_id,
            {where: item.offset for where, item in (await self.list(group_id)).items()},
            topics=topics,
            partitions=partitions,
            to=to,
            to_timestamp_ms=to_timestamp_ms,
            shift_by=shift_by,
        )

    async def _change(self, group_id: str, request: Any, what: str) -> Results[TopicPartition, None]:
        def outcome(answer: Any) -> dict[TopicPartition, ClientError | None] | ClientError:
            refused = getattr(answer, "error_code", ErrorCode.NONE)
            for topic in answer.topics:
                for item in topic.partitions:
                    # A commit has no error of its own: each partition says that it came to the wrong broker.
                    refused = item.error_code if item.error_code in MISPLACED else refused
            return outcome_of(refused, f"group {group_id!r}", None, _by_partition(answer, what))

        # Setting or deleting an offset twice is the same as once, so a lost answer is no harm.
        return Results(await self._routes.ask_coordinator(GROUP, group_id, request, outcome))


def _batched(group_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(group_ids), _GROUPS_AT_ONCE):
        yield group_ids[first : first + _GROUPS_AT_ONCE]


def _by_partition(answer: Any, what: str) -> dict[TopicPartition, ClientError | None]:
    return {
        TopicPartition(topic.name, item.partition_index): outcome_of(
            item.error_code, f"{what} {topic.name}-{item.partition_index}", None, None
        )
        for topic in answer.topics
        for item in topic.partitions
    }


def _commit_partition(number: int, wanted: CommittedOffset) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=wanted.offset,
        committed_leader_epoch=wanted.leader_epoch,
        committed_metadata=wanted.metadata,
    )


def _fetch_request(
    group_id: str, partitions: Collection[TopicPartition] | None, require_stable: bool, version: int
) -> OffsetFetchRequest:
    topics = None if partitions is None else by_topic(partitions)
    stable = require_stable and version >= 7
    if version < _FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchRequest(
            group_id=group_id, topics=_topics(topics, OffsetFetchRequestTopic), require_stable=stable
        )
    group = OffsetFetchRequestGroup(group_id=group_id, topics=_topics(topics, OffsetFetchRequestTopics))
    return OffsetFetchRequest(groups=(group,), require_stable=stable)


def _topics(topics: dict[str, list[int]] | None, make: Callable[..., Any]) -> Any:
    if topics is None:
        return None
    return tuple(make(name=name, partition_indexes=tuple(numbers)) for name, numbers in topics.items())


def _committed(group_id: str, group: Any) -> dict[TopicPartition, CommittedOffset] | ClientError:
    what = f"cannot read the offsets of group {group_id!r}"
    if group.error_code is not ErrorCode.NONE:
        return BrokerError(group.error_code, what)
    found = {}
    for topic in group.topics:
        for item in topic.partitions:
            where = TopicPartition(topic.name, item.partition_index)
            if item.error_code is not ErrorCode.NONE:
                return BrokerError(item.error_code, f"{what} for {where}")
            if item.committed_offset >= 0:
                found[where] = CommittedOffset(
                    item.committed_offset, item.committed_leader_epoch, item.metadata or ""
                )
    return found


def _readers(group: GroupDescription) -> dict[TopicPartition, MemberDescription]:
    return {where: member for member in group.members for where in member.assignment}


def _lag(
    where: TopicPartition,
    committed: CommittedOffset | None,
    start: int | None,
    end: int | None,
    member: MemberDescription | None,
) -> PartitionLag:
    offset = None if committed is None else committed.offset
    lag = None if offset is None or end is None else max(end - offset, 0)
    return PartitionLag(where, offset, start, end, lag, member)
