"""The committed offsets of all groups of a shard: what `__consumer_offsets` says of them, folded.

Offsets that were committed in a transaction stay aside until its marker comes: a commit moves them over, an
abort drops them. Which of two commits is the newer one is decided by their place in the log, so an offset
that was committed plainly after a transactional one is not overwritten when the transaction ends.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ottla.coordination.runtime.decision import ProducerIdentity
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.offsets import WRITTEN_VERSION, OffsetCommitKey, OffsetCommitValue

_VALUE_VERSION_WITH_EXPIRY: Final = 1
_NO_EXPIRY: Final = -1


class CommittedOffset(NamedTuple):
    """Where a group goes on reading a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = _NO_EXPIRY
    topic_id: Uuid = ZERO_UUID
    place: int = 0
    """A number that grows with each record: the later of two commits has the larger."""

    @property
    def has_expiry(self) -> bool:
        """Say whether its client set the time of its expiration, which only old versions can."""
        return self.expire_timestamp_ms != _NO_EXPIRY


_new_tuple: Final = tuple.__new__
_NO_OFFSETS: Final[Mapping[TopicPartition, CommittedOffset]] = MappingProxyType({})

Offsets = dict[TopicPartition, CommittedOffset]
CommittedPartition = tuple[TopicPartition, int, str, Uuid]
"""All of a committed offset that does not change with each commit: leader epoch, metadata, topic id."""


class CommittedOffsets:
    """Committed and pending offsets, by group and partition."""

    def __init__(self) -> None:
        self._committed: dict[str, Offsets] = {}
        # By producer and group: what its open transaction holds.
        self._pending: dict[int, dict[str, Offsets]] = {}
        # By group and partition: whose open transactions hold an offset.
        self._open: dict[str, dict[TopicPartition, set[int]]] = {}
        self._place = 0

    def __len__(self) -> int:
        """Return how many offsets are committed."""
        return sum(map(len, self._committed.values()))

    def find(self, group_id: str, topic_partition: TopicPartition) -> CommittedOffset | None:
        """Return the committed offset of a group for a partition."""
        return self.of_group(group_id).get(topic_partition)

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return all committed offsets of a group."""
        return self._committed.get(group_id, _NO_OFFSETS)

    def groups(self) -> Iterator[str]:
        """Return the groups that have committed offsets."""
        yield from self._committed

    def all(self) -> list[tuple[str, list[tuple[TopicPartition, CommittedOffset]]]]:
        """Return a copy of all committed offsets by group, which another thread may ask for."""
        return [(group_id, list(offsets.items())) for group_id, offsets in list(self._committed.items())]

    def is_unstable(self, group_id: str, topic_partition: TopicPartition) -> bool:
        """Say whether an open transaction holds an offset for this partition."""
        return topic_partition in self._open.get(group_id, ())

    def has_pending(self, group_id: str) -> bool:
        """Say whether any open transaction holds offsets of a group."""
        return group_id in self._open

    def pending_of(self, group_id: str) -> tuple[TopicPartition, ...]:
        """Return the partitions whose offsets open transactions hold."""
        return tuple(self._open.get(group_id, ()))

    def all_of_topic(self, topic: str) -> Iterator[tuple[str, TopicPartition, CommittedOffset]]:
        """Return the offsets of a topic in all groups, pending ones too: group, partition, offset."""
        for groups in (self._committed, *self._pending.values()):
            for group_id, offsets in groups.items():
                for topic_partition, committed in offsets.items():
                    if topic_partition.topic == topic:
                        yield group_id, topic_partition, committed

    def replay(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer: ProducerIdentity | None
    ) -> None:
        """Apply a record."""
        # Messages and named tuples are tuples. To make one as such takes a third of the time.
        fields: Any = key
        group_id, topic, partition = fields
        topic_partition: TopicPartition = _new_tuple(TopicPartition, (topic, partition))
        self._place = place = self._place + 1
        if value is None:
            self._remove(group_id, topic_partition)
            return
        # A value has the fields of a committed offset, in their order.
        fields = value
        committed: CommittedOffset = _new_tuple(CommittedOffset, fields + (place,))
        if producer is None:
            offsets = self._committed.get(group_id)
            if offsets is None:
                offsets = self._committed[group_id] = {}
            offsets[topic_partition] = committed
        else:
            groups = self._pending.setdefault(producer.producer_id, {})
            groups.setdefault(group_id, {})[topic_partition] = committed
            self._open.setdefault(group_id, {}).setdefault(topic_partition, set()).add(producer.producer_id)

    def replay_commit(
        self, group_id: str, partitions: Sequence[CommittedPartition], offsets: Sequence[int], now_ms: int
    ) -> None:
        """Apply the records of a commit outside a transaction: `replay` of each, at a fifth of the price."""
        committed = self._committed.get(group_id)
        if committed is None:
            committed = self._committed[group_id] = {}
        place = self._place
        for (topic_partition, epoch, metadata, topic_id), offset in zip(partitions, offsets, strict=True):
            place += 1
            committed[topic_partition] = _new_tuple(
                CommittedOffset, (offset, epoch, metadata, now_ms, _NO_EXPIRY, topic_id, place)
            )
        self._place = place

    def replay_marker(self, producer: ProducerIdentity, committed: bool) -> None:
        """End a transaction."""
        self._place += 1
        for group_id, offsets in self._pending.pop(producer.producer_id, {}).items():
            for topic_partition, offset in offsets.items():
                self._close(group_id, topic_partition, producer.producer_id)
                if committed:
                    group = self._committed.setdefault(group_id, {})
                    known = group.get(topic_partition)
                    if known is None or known.place < offset.place:
                        group[topic_partition] = offset

    def _close(self, group_id: str, topic_partition: TopicPartition, producer_id: int) -> None:
        partitions = self._open[group_id]
        producers = partitions[topic_partition]
        producers.remove(producer_id)
        if not producers:
            del partitions[topic_partition]
            if not partitions:
                del self._open[group_id]

    def _remove(self, group_id: str, topic_partition: TopicPartition) -> None:
        # A deletion also ends what open transactions hold: their commit must not bring the offset back.
        for producer_id in tuple(self._open.get(group_id, {}).get(topic_partition, ())):
            del self._pending[producer_id][group_id][topic_partition]
            self._close(group_id, topic_partition, producer_id)
        group = self._committed.get(group_id)
        if group is not None:
            group.pop(topic_partition, None)
            if not group:
                del self._committed[group_id]


def commit_record(
    group_id: str,
    topic: str,
    partition: int,
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_timestamp_ms: int,
    expire_timestamp_ms: int,
    topic_id: Uuid,
) -> CoordinatorRecord:
    """Return the record of a commit, in the version Kafka writes."""
    # Made as plain tuples, for one is made for each partition of each commit.
    return _new_tuple(
        CoordinatorRecord,
        (
            _new_tuple(OffsetCommitKey, (group_id, topic, partition)),  # type: ignore[type-var]
            _new_tuple(
                OffsetCommitValue,  # type: ignore[type-var]
                (offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id),
            ),
            WRITTEN_VERSION if expire_timestamp_ms == _NO_EXPIRY else _VALUE_VERSION_WITH_EXPIRY,
        ),
    )


def offset_tombstone(group_id: str, topic_partition: TopicPartition) -> CoordinatorRecord:
    """Return the record that deletes a commit."""
    key = OffsetCommitKey(group=group_id, topic=topic_partition.topic, partition=topic_partition.partition)
    return CoordinatorRecord(key, None, -1)
