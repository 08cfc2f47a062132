"""A commit that its sender makes again and again, and in which nothing but the offsets changes.

All that is the same is prepared once. What may have changed since is looked at each time: whether the group
is there, and whether the sender may still commit. If not, nothing is decided, and the commit goes the way of
any other, which knows what to answer.
"""

from collections.abc import Sequence
from typing import Any, Final

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.offsets.commit import commit_of, note_commit
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.state import GroupShard
from ottla.coordination.runtime.decision import Decision
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.offsets import WRITTEN_VERSION, OffsetCommitKey, OffsetCommitValue
from ottla.wire.messages.offset_commit import OffsetCommitRequest

_new_tuple: Final[Any] = tuple.__new__


class RepeatedCommit:
    """What stays the same. One that was taken as a whole, in a version that sets no expiry."""

    __slots__ = ("_commit", "_names", "_partitions", "group_id")

    def __init__(self, ask: OffsetCommitRequest, version: int) -> None:
        """Topics are given by name and id both."""
        self.group_id = ask.group_id
        self._commit = commit_of(ask, version)
        self._partitions: list[tuple[OffsetCommitKey, int, str, Uuid]] = [
            (
                OffsetCommitKey(group=ask.group_id, topic=topic.name, partition=part.partition_index),
                part.committed_leader_epoch,
                part.committed_metadata or "",
                topic.topic_id,
            )
            for topic in ask.topics
            for part in topic.partitions
        ]
        self._names = tuple([(key.topic, key.partition) for key, *_ in self._partitions])

    def records(self, offsets: tuple[int, ...], now_ms: int) -> tuple[CoordinatorRecord, ...]:
        """Return the records of such a commit."""
        # As plain tuples: one is made for each partition of each commit.
        return tuple(
            [
                _new_tuple(
                    CoordinatorRecord,
                    (
                        key,
                        _new_tuple(OffsetCommitValue, (offset, epoch, metadata, now_ms, -1, topic_id)),
                        WRITTEN_VERSION,
                    ),
                )
                for (key, epoch, metadata, topic_id), offset in zip(self._partitions, offsets, strict=True)
            ]
        )

    def decide(
        self, shard: GroupShard, offsets: tuple[int, ...], now_ms: int, encoded: Sequence[bytes] | None
    ) -> Decision[bool] | None:
        """Commit these offsets, one for each partition. None if that is not as plain as it was."""
        group, commit = shard.groups.get(self.group_id), self._commit
        if group is None:
            return None
        try:
            group.check_commit(commit)
            if type(group) is not ClassicGroup:
                for key, _, _, topic_id in self._partitions:
                    group.check_commit_to(commit, topic_id, key.partition)
        except Refused:
            return None
        shard.keep_alive(group, commit.member_id)
        note_commit(group, commit, self._names, offsets, shard.env, now_ms)
        return Decision(self.records(offsets, now_ms), True, encoded=encoded)
