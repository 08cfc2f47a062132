"""The share coordinator of a node: one method for each API, for one partition of one group at a time.

The leader of a partition writes what became of its records, and reads it back when it becomes the leader. The
group coordinator initializes and deletes states. Two epochs fence those who are late: the leader's epoch, and
the state's, which increases whenever the group coordinator begins the state again.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from ottla.coordination.group.environment import Topics
from ottla.coordination.runtime.decision import Answer, Decision, ignore
from ottla.coordination.runtime.shards import Shards
from ottla.coordination.runtime.timers import Timers, fire_all
from ottla.coordination.share.settings import ShareSettings
from ottla.coordination.share.state import (
    UNKNOWN,
    PartitionState,
    PartitionUpdate,
    ShareKey,
    ShareShard,
    snapshot_record,
    tombstone,
    update_record,
)
from ottla.coordination.share.state_batches import combine
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.world.clock import Clock


class ShareHost(Protocol):
    """What the node that runs a share coordinator gives to it."""

    @property
    def clock(self) -> Clock:
        """The time."""

    @property
    def topics(self) -> Topics:
        """The topics of the cluster."""

    def wake(self, deadline_ms: int) -> None:
        """Have `ShareCoordinator.fire_timers` called at this monotonic time, or earlier."""

    def prune(self, partition: int, offset: int) -> None:
        """Delete the records of the internal topic's partition before an offset."""


class Outcome(NamedTuple):
    """What became of a request."""

    error_code: ErrorCode
    message: str | None = None
    state: PartitionState | None = None
    """The state that was asked for; None where there is none."""


class WrittenState(NamedTuple):
    """What the leader of a partition wants to be written."""

    state_epoch: int
    update: PartitionUpdate


class _ShardEnvironment:
    """What one shard may ask for. Implements `ShareEnvironment`."""

    def __init__(self, coordinator: "ShareCoordinator", partition: int) -> None:
        host = coordinator.host
        self.settings = coordinator.settings
        self.topics = host.topics
        self.timers = Timers(host.clock, host.wake)
        self._coordinator = coordinator
        self._partition = partition

    def written_offset(self) -> int:
        """Return the offset of the last record that was appended, or was loaded before this batch."""
        shard = self._coordinator.shards.get(self._partition)
        return -1 if shard is None else shard.written_offset

    def prune(self, query: Callable[[], int]) -> None:
        """Delete all records before the offset that `query` returns, when what it depends on is committed."""
        shard = self._coordinator.shards.get(self._partition)
        if shard is not None and shard.refusal is ErrorCode.NONE:
            host, partition = self._coordinator.host, self._partition
            shard.read(lambda _: query(), lambda offset: host.prune(partition, offset), ignore)

    def submit(self, decide: Callable[[], Decision[Any]]) -> None:
        """Write what a timer's action decides, if the shard still serves."""
        self._coordinator.shards.submit(self._partition, decide)


class ShareCoordinator:
    """The states whose partitions of `__share_group_state` this node leads."""

    def __init__(self, settings: ShareSettings, host: ShareHost) -> None:
        self.settings = settings
        self.host = host
        self.shards: Shards[ShareShard] = Shards(
            lambda partition: ShareShard(_ShardEnvironment(self, partition))
        )

    def fire_timers(self) -> int | None:
        """Do what is due. Return the monotonic time of the next deadline."""
        return fire_all(shard.state.env.timers for shard in self.shards)

    def initialize(
        self, key: ShareKey, state_epoch: int, start_offset: int, now_ms: int, answer: Answer[Outcome]
    ) -> None:
        """Begin a state again from an offset."""
        self._write(
            key, lambda shard: _decide_initialize(shard, key, state_epoch, start_offset, now_ms), answer
        )

    def write(self, key: ShareKey, written: WrittenState, now_ms: int, answer: Answer[Outcome]) -> None:
        """Write what became of records."""
        self._write(key, lambda shard: _decide_write(shard, key, written, now_ms), answer)

    def read(self, key: ShareKey, leader_epoch: int, now_ms: int, answer: Answer[Outcome]) -> None:
        """Answer a state to the leader of its partition. From now on, leaders before it are fenced."""
        self._write(key, lambda shard: _decide_read(shard, key, leader_epoch, now_ms), answer)

    def summarize(self, key: ShareKey, answer: Answer[Outcome]) -> None:
        """Answer a state to somebody who does not lead the partition."""
        self.shards.read(
            str(key),
            lambda shard: _find_fault(shard, key) or Outcome(ErrorCode.NONE, state=shard.states.get(key)),
            answer,
            lambda code: answer(Outcome(code, code.name)),
        )

    def delete(self, key: ShareKey, answer: Answer[Outcome]) -> None:
        """Delete a state. One that is not there is fine."""
        self._write(key, lambda shard: _decide_delete(shard, key), answer)

    def topics_deleted(self, topic_ids: Iterable[Uuid]) -> None:
        """Delete the states of topics that are gone."""
        gone = frozenset(topic_ids)
        for shard in self.shards:
            if shard.refusal is ErrorCode.NONE:
                shard.write(lambda state: _decide_topics_deleted(state, gone), ignore, ignore)

    def _write(
        self, key: ShareKey, decide: Callable[[ShareShard], Decision[Outcome]], answer: Answer[Outcome]
    ) -> None:
        self.shards.write(str(key), decide, answer, lambda code: answer(Outcome(code, code.name)))


_DONE = Outcome(ErrorCode.NONE)


def _decide_initialize(
    shard: ShareShard, key: ShareKey, state_epoch: int, start_offset: int, now_ms: int
) -> Decision[Outcome]:
    fault = _find_negative_partition(key) or _find_late_state(shard, key, state_epoch)
    fault = fault or _find_unknown_topic(shard, key)
    if fault is not None:
        return Decision(reply=fault)
    known = shard.states.get(key)
    state = PartitionState(
        snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
        state_epoch=state_epoch,
        leader_epoch=0,
        start_offset=start_offset,
        # Where nothing is being read yet, it cannot be said how much is done.
        delivery_complete_count=UNKNOWN if start_offset == UNKNOWN else 0,
        batches=(),
        created_ms=now_ms,
        written_ms=now_ms,
    )
    return Decision((snapshot_record(key, state),), _DONE)


def _decide_write(shard: ShareShard, key: ShareKey, written: WrittenState, now_ms: int) -> Decision[Outcome]:
    fault = _find_negative_partition(key) or _find_uninitialized(shard, key)
    fault = fault or _find_late_leader(shard, key, written.update.leader_epoch)
    fault = fault or _find_late_state(shard, key, written.state_epoch) or _find_unknown_topic(shard, key)
    if fault is not None:
        return Decision(reply=fault)
    # The leader's epoch was recorded when it read the state.
    update = written.update._replace(leader_epoch=shard.states[key].leader_epoch)
    return Decision((_change_record(shard, key, update, now_ms),), _DONE)


def _decide_read(shard: ShareShard, key: ShareKey, leader_epoch: int, now_ms: int) -> Decision[Outcome]:
    fault = _find_negative_partition(key) or _find_uninitialized(shard, key)
    fault = fault or _find_late_leader(shard, key, leader_epoch) or _find_unknown_topic(shard, key)
    if fault is not None:
        return Decision(reply=fault)
    state = shard.states[key]
    reply = Outcome(ErrorCode.NONE, state=state)
    if leader_epoch in (UNKNOWN, shard.leader_epochs.get(key)):
        return Decision(reply=reply)
    update = PartitionUpdate(leader_epoch, state.start_offset, state.delivery_complete_count, ())
    return Decision((_change_record(shard, key, update, now_ms),), reply)


def _decide_delete(shard: ShareShard, key: ShareKey) -> Decision[Outcome]:
    fault = _find_fault(shard, key)
    if fault is not None:
        return Decision(reply=fault)
    return Decision((tombstone(key),) if key in shard.states else (), _DONE)


def _decide_topics_deleted(shard: ShareShard, topic_ids: frozenset[Uuid]) -> Decision[Any]:
    records = tuple(tombstone(key) for key in shard.states if key.topic_id in topic_ids)
    return Decision(records, is_atomic=False)


def _change_record(
    shard: ShareShard, key: ShareKey, update: PartitionUpdate, now_ms: int
) -> CoordinatorRecord:
    """Return an update, or a snapshot if there were many updates since the last one."""
    state = shard.states[key]
    if shard.update_counts.get(key, 0) < shard.env.settings.updates_per_snapshot:
        batches = combine((), update.batches, update.start_offset)
        return update_record(key, state.snapshot_epoch, update._replace(batches=batches))
    snapshot_epoch = state.snapshot_epoch + 1
    changed = state.updated(update)
    return snapshot_record(
        key, replace(changed, snapshot_epoch=snapshot_epoch, created_ms=now_ms, written_ms=now_ms)
    )


def _find_fault(shard: ShareShard, key: ShareKey) -> Outcome | None:
    return _find_negative_partition(key) or _find_unknown_topic(shard, key)


def _find_negative_partition(key: ShareKey) -> Outcome | None:
    if key.partition >= 0:
        return None
    return Outcome(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")


def _find_uninitialized(shard: ShareShard, key: ShareKey) -> Outcome | None:
    if key in shard.states:
        return None
    return Outcome(ErrorCode.INVALID_REQUEST, "The share partition has not been initialized.")


def _find_late_leader(shard: ShareShard, key: ShareKey, leader_epoch: int) -> Outcome | None:
    known = shard.leader_epochs.get(key, UNKNOWN)
    if leader_epoch == UNKNOWN or known <= leader_epoch:
        return None
    message = f"The leader epoch {leader_epoch} is older than {known}."
    return Outcome(ErrorCode.FENCED_LEADER_EPOCH, message)


def _find_late_state(shard: ShareShard, key: ShareKey, state_epoch: int) -> Outcome | None:
    known = shard.state_epochs.get(key, UNKNOWN)
    if state_epoch == UNKNOWN or known <= state_epoch:
        return None
    message = f"The state epoch {state_epoch} is older than {known}."
    return Outcome(ErrorCode.FENCED_STATE_EPOCH, message)


def _find_unknown_topic(shard: ShareShard, key: ShareKey) -> Outcome | None:
    facts = shard.env.topics.find_by_id(key.topic_id)
    if facts is not None and key.partition < facts.partition_count:
        return None
    return Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
