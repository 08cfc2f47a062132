"""A commit that its sender makes again and again, and in which nothing but the offsets changes.

All that is the same is prepared once. What may have changed since is looked at each time: whether the group
is there, and whether the sender may still commit. If not, nothing is decided, and the commit goes the way of
any other, which knows what to answer.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.offsets.commit import commit_of
from ottla.coordination.group.offsets.committed_offsets import (
    CommittedOffsets,
    CommittedPartition,
    commit_record,
)
from ottla.coordination.group.refusal import Refused
from ottla.coordination.runtime.decision import Decision, EncodedRecords
from ottla.model.ids import TopicPartition
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.messages.offset_commit import OffsetCommitRequest

if TYPE_CHECKING:
    from ottla.coordination.group.state import GroupShard

_NO_EXPIRY: Final = -1


class RepeatedOffsets(EncodedRecords):
    """The records of a repeated commit, which have a shorter way into the log and into the state."""

    __slots__ = ("_commit", "_now_ms", "_offsets")

    def __init__(
        self, commit: "RepeatedCommit", offsets: tuple[int, ...], now_ms: int, encoded: Sequence[bytes]
    ) -> None:
        super().__init__(encoded)
        self._commit = commit
        self._offsets = offsets
        self._now_ms = now_ms

    def __iter__(self) -> Iterator[CoordinatorRecord]:
        return iter(self._commit.records(self._offsets, self._now_ms))

    def replay(self, offsets: CommittedOffsets) -> None:
        """Apply the records to the offsets of a shard."""
        commit = self._commit
        offsets.replay_commit(commit.group_id, commit.partitions, self._offsets, self._now_ms)


class RepeatedCommit:
    """What stays the same. One that was taken as a whole, in a version that sets no expiry."""

    __slots__ = ("_commit", "group_id", "partitions")

    def __init__(self, ask: OffsetCommitRequest, version: int) -> None:
        """Topics are given by name and id both."""
        self.group_id = ask.group_id
        self._commit = commit_of(ask, version)
        self.partitions: list[CommittedPartition] = [
            (
                TopicPartition(topic.name, part.partition_index),
                part.committed_leader_epoch,
                part.committed_metadata or "",
                topic.topic_id,
            )
            for topic in ask.topics
            for part in topic.partitions
        ]

    def records(self, offsets: tuple[int, ...], now_ms: int) -> list[CoordinatorRecord]:
        """Return the records of such a commit."""
        return [
            commit_record(
                self.group_id, *topic_partition, offset, epoch, metadata, now_ms, _NO_EXPIRY, topic_id
            )
            for (topic_partition, epoch, metadata, topic_id), offset in zip(
                self.partitions, offsets, strict=True
            )
        ]

    def decide(
        self, shard: "GroupShard", offsets: tuple[int, ...], now_ms: int, encoded: Sequence[bytes]
    ) -> Decision[bool] | None:
        """Commit these offsets, one for each partition. None if that is not as plain as it was.

        `encoded` are the records, as the log writes them.
        """
        group, commit = shard.groups.get(self.group_id), self._commit
        if group is None:
            return None
        try:
            group.check_commit(commit)
            if type(group) is not ClassicGroup:
                for topic_partition, _, _, topic_id in self.partitions:
                    group.check_commit_to(commit, topic_partition.topic, topic_id, topic_partition.partition)
        except Refused:
            return None
        records = RepeatedOffsets(self, offsets, now_ms, encoded)
        return Decision(records, True, partial(shard.keep_alive, group, commit.member_id))
