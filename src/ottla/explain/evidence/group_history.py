"""What `__consumer_offsets` says about a group: each commit with its time, each generation with its members.

Any Kafka keeps it, until compaction takes what is superseded. The newest segment is never compacted, so the
last hours are nearly always whole. Classic groups write one record for a generation, with all members and
their assignments. Groups of the newer protocol write one for each member.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.coordination.runtime.key_partition import partition_of_key
from ottla.explain.access import Access
from ottla.explain.evidence.logs import BatchFacts, partitions_of, read_batches
from ottla.model.ids import TopicPartition
from ottla.wire.codec import decode_from
from ottla.wire.consumer_protocol import ConsumerProtocolAssignment
from ottla.wire.coordinator_records.classic_group import GroupMetadataKey
from ottla.wire.coordinator_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
)
from ottla.wire.coordinator_records.framing import GROUP_RECORDS
from ottla.wire.coordinator_records.offsets import OffsetCommitKey
from ottla.wire.errors import WireError

TOPIC = GROUP_RECORDS.topic
_RECORDS_MAX = 200_000


class Commit(NamedTuple):
    """One committed offset. `offset` is None where it was deleted or has expired."""

    at_ms: int
    where: TopicPartition
    offset: int | None
    metadata: str
    is_transactional: bool
    log_offset: int
    producer: tuple[int, int] = (-1, -1)
    """The producer id and epoch of the transaction that it was part of."""


class MemberFacts(NamedTuple):
    """A member as a generation has it. Assignments of the newer protocol follow in later generations."""

    member_id: str
    client_id: str
    host: str
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    assignment: frozenset[TopicPartition]


class Generation(NamedTuple):
    """The members of a group from a time on."""

    at_ms: int
    number: int
    members: Mapping[str, MemberFacts]

    def holder(self, where: TopicPartition) -> MemberFacts | None:
        """Return who reads a partition."""
        return next((member for member in self.members.values() if where in member.assignment), None)


class GroupHistory(NamedTuple):
    """Everything that is still known of a group's past, in the order it happened."""

    commits: tuple[Commit, ...] = ()
    generations: tuple[Generation, ...] = ()
    is_readable: bool = True

    def committed_at(self, where: TopicPartition, at_ms: int) -> Commit | None:
        """Return the last commit of a partition at a time."""
        found = None
        for commit in self.commits:
            if commit.at_ms > at_ms:
                break
            if commit.where == where:
                found = commit
        return found


async def read_group_history(access: Access, group_id: str) -> GroupHistory:
    """Read what the coordinator has written about a group."""
    partitions = await partitions_of(access, [TOPIC])
    if not partitions:
        return GroupHistory(is_readable=False)
    where = partitions[partition_of_key(group_id, len(partitions))]
    start = (await list_offsets(access.cluster, {where: EARLIEST}))[where].offset
    end = (await list_offsets(access.cluster, {where: LATEST}))[where].offset
    topics = {view.topic_id: name for name, view in (await access.cluster.refresh(None)).topics.items()}
    fold = _Fold(group_id, topics)
    async for batch, records in read_batches(access, where, max(start, end - _RECORDS_MAX), end):
        for record in records:
            if record.key is None:
                continue
            try:
                decoded: Any = GROUP_RECORDS.decode(record.key, record.value)
            except WireError:
                continue
            fold.take(decoded, record.timestamp, record.offset, batch)
    return fold.history()


class _Fold:
    """Puts records together."""

    def __init__(self, group_id: str, topics: Mapping[Any, str]) -> None:
        self._group_id = group_id
        self._topics = topics
        self._commits: list[Commit] = []
        self._generations: list[Generation] = []
        self._members: dict[str, MemberFacts] = {}

    def history(self) -> GroupHistory:
        """Return what was found."""
        return GroupHistory(tuple(self._commits), tuple(self._generations))

    def take(self, record: Any, at_ms: int, offset: int, batch: BatchFacts) -> None:
        """Take one record."""
        key = record.key
        match key:
            case OffsetCommitKey(group=group) if group == self._group_id:
                where = TopicPartition(key.topic, key.partition)
                value = record.value
                self._commits.append(
                    Commit(
                        at_ms if value is None else value.commit_timestamp,
                        where,
                        None if value is None else value.offset,
                        "" if value is None else value.metadata,
                        batch.is_transactional,
                        offset,
                        (batch.producer_id, batch.producer_epoch),
                    )
                )
            case GroupMetadataKey(group=group) if group == self._group_id:
                self._take_classic(record.value, at_ms)
            case ConsumerGroupMemberMetadataKey(group_id=group) if group == self._group_id:
                self._take_member(key.member_id, record.value, at_ms)
            case ConsumerGroupCurrentMemberAssignmentKey(group_id=group) if group == self._group_id:
                self._take_assignment(key.member_id, record.value, at_ms)
            case _:
                pass

    def _take_classic(self, value: Any, at_ms: int) -> None:
        members = {} if value is None else {item.member_id: _classic_member(item) for item in value.members}
        number = -1 if value is None else value.generation
        self._generations.append(Generation(at_ms, number, members))

    def _take_member(self, member_id: str, value: Any, at_ms: int) -> None:
        if value is None:
            self._members.pop(member_id, None)
        else:
            known = self._members.get(member_id)
            self._members[member_id] = MemberFacts(
                member_id,
                value.client_id,
                value.client_host,
                None,
                value.rebalance_timeout_ms,
                frozenset() if known is None else known.assignment,
            )
        self._generations.append(Generation(at_ms, len(self._generations), dict(self._members)))

    def _take_assignment(self, member_id: str, value: Any, at_ms: int) -> None:
        known = self._members.get(member_id)
        if known is None or value is None:
            return
        assigned = frozenset(
            TopicPartition(self._topics[item.topic_id], number)
            for item in value.assigned_partitions
            if item.topic_id in self._topics
            for number in item.partitions
        )
        if assigned != known.assignment:
            self._members[member_id] = known._replace(assignment=assigned)
            self._generations.append(Generation(at_ms, value.member_epoch, dict(self._members)))


def _classic_member(item: Any) -> MemberFacts:
    assigned: frozenset[TopicPartition] = frozenset()
    if len(item.assignment) >= 2:
        version = min(int.from_bytes(item.assignment[:2], signed=True), 3)
        try:
            found: Any = decode_from(ConsumerProtocolAssignment, item.assignment, version, 2)[0]
        except WireError:
            # Groups of other kinds, Kafka Connect's say, put bytes of their own there.
            found = None
        if found is not None:
            assigned = frozenset(
                TopicPartition(topic.topic, number)
                for topic in found.assigned_partitions
                for number in topic.partitions
            )
    return MemberFacts(
        item.member_id,
        item.client_id,
        item.client_host,
        item.session_timeout,
        item.rebalance_timeout,
        assigned,
    )
