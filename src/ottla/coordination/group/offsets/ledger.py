"""The committed offsets of all groups of a shard: what `__consumer_offsets` says of them, folded.

Offsets that were committed in a transaction stay aside until its marker comes: a commit moves them over, an
abort drops them. Which of two commits is the newer one is decided by their place in the log, so an offset
that was committed plainly after a transactional one is not overwritten when the transaction ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.coordination.runtime.decision import ProducerIdentity
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.offsets import OffsetCommitKey, OffsetCommitValue

_VALUE_VERSION = 4
_VALUE_VERSION_WITH_EXPIRY = 1
_NO_EXPIRY = -1


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a group goes on reading a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = _NO_EXPIRY
    topic_id: Uuid = ZERO_UUID
    place: int = 0
    """A number that grows with each record: the later of two commits has the larger."""


class PendingKey(NamedTuple):
    """Whose transaction holds offsets of which group."""

    producer_id: int
    group_id: str


class OffsetLedger:
    """Committed and pending offsets, by group and partition."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._pending: dict[PendingKey, dict[TopicPartition, CommittedOffset]] = {}
        self._pending_by_group: dict[str, set[int]] = {}
        self._place = 0

    def find(self, group_id: str, where: TopicPartition) -> CommittedOffset | None:
        """Return the committed offset of a group for a partition."""
        return self._committed.get(group_id, {}).get(where)

    def of_group(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """Return all committed offsets of a group."""
        return self._committed.get(group_id, {})

    def groups(self) -> Iterator[str]:
        """Return the groups that have offsets."""
        yield from self._committed

    def is_unstable(self, group_id: str, where: TopicPartition) -> bool:
        """Say whether an open transaction holds an offset for this partition."""
        producers = self._pending_by_group.get(group_id)
        if not producers:
            return False
        return any(where in self._pending[PendingKey(producer, group_id)] for producer in producers)

    def has_pending(self, group_id: str) -> bool:
        """Say whether any open transaction holds offsets of a group."""
        return bool(self._pending_by_group.get(group_id))

    def pending_of(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions whose offsets open transactions hold."""
        producers = self._pending_by_group.get(group_id, ())
        return {where for producer in producers for where in self._pending[PendingKey(producer, group_id)]}

    def replay(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer: ProducerIdentity | None
    ) -> None:
        """Apply a record."""
        where = TopicPartition(key.topic, key.partition)
        self._place += 1
        if value is None:
            self._remove(key.group, where)
            return
        committed = CommittedOffset(
            value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, value.expire_timestamp,
            value.topic_id, self._place,
        )  # fmt: skip
        if producer is None:
            self._committed.setdefault(key.group, {})[where] = committed
        else:
            self._pending.setdefault(PendingKey(producer.producer_id, key.group), {})[where] = committed
            self._pending_by_group.setdefault(key.group, set()).add(producer.producer_id)

    def replay_marker(self, producer: ProducerIdentity, committed: bool) -> None:
        """End a transaction."""
        self._place += 1
        ended = [key for key in self._pending if key.producer_id == producer.producer_id]
        for key in ended:
            offsets = self._pending.pop(key)
            producers = self._pending_by_group[key.group_id]
            producers.discard(producer.producer_id)
            if not producers:
                del self._pending_by_group[key.group_id]
            if committed:
                group = self._committed.setdefault(key.group_id, {})
                for where, offset in offsets.items():
                    known = group.get(where)
                    if known is None or known.place < offset.place:
                        group[where] = offset

    def _remove(self, group_id: str, where: TopicPartition) -> None:
        # A deletion also ends what open transactions hold: their commit must not bring the offset back.
        for producer in list(self._pending_by_group.get(group_id, ())):
            self._pending[PendingKey(producer, group_id)].pop(where, None)
        group = self._committed.get(group_id)
        if group is not None:
            group.pop(where, None)
            if not group:
                del self._committed[group_id]


def offset_record(group_id: str, where: TopicPartition, committed: CommittedOffset) -> CoordinatorRecord:
    """Return the record of a commit, in the version Kafka writes."""
    has_expiry = committed.expire_timestamp_ms != _NO_EXPIRY
    return CoordinatorRecord(
        OffsetCommitKey(group=group_id, topic=where.topic, partition=where.partition),
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_timestamp_ms,
            expire_timestamp=committed.expire_timestamp_ms,
            topic_id=committed.topic_id,
        ),
        _VALUE_VERSION_WITH_EXPIRY if has_expiry else _VALUE_VERSION,
    )


def offset_tombstone(group_id: str, where: TopicPartition) -> CoordinatorRecord:
    """Return the record that takes a commit away."""
    key = OffsetCommitKey(group=group_id, topic=where.topic, partition=where.partition)
    return CoordinatorRecord(key, None, -1)
