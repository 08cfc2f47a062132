"""The state of one shard: what is known of share partitions, folded from the shard's records.

A snapshot has all of the state of a partition, and an update what has changed since. The log is not
compacted. What lies before the oldest snapshot that is still the latest of its partition is not needed any
more, and is deleted from time to time.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from ottla.coordination.group.environment import Topics
from ottla.coordination.runtime.decision import Decision, ProducerIdentity
from ottla.coordination.runtime.timers import Timers
from ottla.coordination.share.settings import ShareSettings
from ottla.coordination.share.state_batches import StateBatch, combine
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records import share_state
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

UNKNOWN = -1
"""An epoch, an offset or a count that is not known."""


class ShareKey(NamedTuple):
    """A partition as a group sees it."""

    group_id: str
    topic_id: Uuid
    partition: int

    def __str__(self) -> str:
        """Return how FindCoordinator names it."""
        return f"{self.group_id}:{self.topic_id}:{self.partition}"


@dataclass(frozen=True, slots=True)
class PartitionState:
    """How far the records of a partition have come in a group."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    created_ms: int
    written_ms: int

    def updated(self, update: "PartitionUpdate") -> "PartitionState":
        """Return the state with what has changed."""
        start_offset = self.start_offset if update.start_offset == UNKNOWN else update.start_offset
        return replace(
            self,
            leader_epoch=self.leader_epoch if update.leader_epoch == UNKNOWN else update.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            batches=combine(self.batches, update.batches, start_offset),
        )


class PartitionUpdate(NamedTuple):
    """What has changed in the state of a partition."""

    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class ShareEnvironment(Protocol):
    """What a shard asks of its coordinator."""

    settings: ShareSettings
    timers: Timers
    topics: Topics

    def written_offset(self) -> int:
        """Return the offset of the last record that was appended, or was loaded before this batch."""

    def prune(self, query: Callable[[], int]) -> None:
        """Delete all records before the offset that `query` returns, when what it depends on is committed."""

    def submit(self, decide: Callable[[], Decision[Any]]) -> None:
        """Write what a timer's action decides, if the shard still serves."""


class ShareShard:
    """The states of a shard's share partitions. Implements the runtime's `State`."""

    def __init__(self, env: ShareEnvironment) -> None:
        self.env = env
        self.states: dict[ShareKey, PartitionState] = {}
        # The highest epochs ever seen. An update may bring a lower one, which then does not count.
        self.leader_epochs: dict[ShareKey, int] = {}
        self.state_epochs: dict[ShareKey, int] = {}
        self.update_counts: dict[ShareKey, int] = {}
        # Before which offset nothing is needed for a partition.
        self._snapshot_offsets: dict[ShareKey, int] = {}
        self._serves = False

    # Replaying

    def replay(self, records: Iterable[CoordinatorRecord], _producer: ProducerIdentity | None) -> None:
        """Apply records. Those of a type that is not known here are skipped."""
        offset = self.env.written_offset() + 1
        if self._serves:
            # These have been appended already.
            records = tuple(records)
            offset -= len(records)
        for key, value, _ in records:
            if type(key) is ShareSnapshotKey:
                self._replay_snapshot(ShareKey(key.group_id, key.topic_id, key.partition), value, offset)
            elif type(key) is ShareUpdateKey and value is not None:
                self._replay_update(ShareKey(key.group_id, key.topic_id, key.partition), value)

    def replay_marker(self, _producer: ProducerIdentity, _committed: bool) -> None:
        """Nothing here is part of a transaction."""

    def _replay_snapshot(self, key: ShareKey, value: ShareSnapshotValue | None, offset: int) -> None:
        if value is None:
            for known in (
                self.states,
                self.leader_epochs,
                self.state_epochs,
                self.update_counts,
                self._snapshot_offsets,
            ):
                known.pop(key, None)
            return
        self._see_epoch(self.leader_epochs, key, value.leader_epoch)
        self._see_epoch(self.state_epochs, key, value.state_epoch)
        self.states[key] = PartitionState(
            value.snapshot_epoch,
            value.state_epoch,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            _batches(value.state_batches),
            value.create_timestamp,
            value.write_timestamp,
        )
        if self.update_counts.get(key, 0) >= self.env.settings.updates_per_snapshot:
            self.update_counts[key] = 0
        self._snapshot_offsets[key] = offset

    def _replay_update(self, key: ShareKey, value: ShareUpdateValue) -> None:
        self._see_epoch(self.leader_epochs, key, value.leader_epoch)
        update = PartitionUpdate(
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            _batches(value.state_batches),
        )
        known = self.states.get(key)
        if known is None:
            known = PartitionState(value.snapshot_epoch, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, (), -1, -1)
        self.states[key] = known.updated(update)
        self.update_counts[key] = self.update_counts.get(key, 0) + 1

    @staticmethod
    def _see_epoch(epochs: dict[ShareKey, int], key: ShareKey, epoch: int) -> None:
        if epochs.get(key, epoch - 1) < epoch:
            epochs[key] = epoch

    # The life of the shard

    def activate(self, _now_ms: int) -> None:
        """Start to take snapshots of what has not changed for long, and to delete what is not needed."""
        self._serves = True
        self._schedule("cold", self.env.settings.cold_snapshot_interval_ms, self._snapshot_cold)
        self._schedule("prune", self.env.settings.prune_interval_ms, self._prune)

    def deactivate(self) -> None:
        """Stop timers."""
        self.env.timers.clear()

    def _schedule(self, name: str, interval_ms: int, act: Callable[[int], None]) -> None:
        def due(now_ms: int) -> None:
            self._schedule(name, interval_ms, act)
            act(now_ms)

        self.env.timers.schedule((name,), interval_ms, due)

    def _snapshot_cold(self, now_ms: int) -> None:
        self.env.submit(lambda: self._decide_cold_snapshots(now_ms))

    def _decide_cold_snapshots(self, now_ms: int) -> Decision[Any]:
        """Take snapshots of partitions that have had none for long, so that the log before can go.

        If that was done with all of them already, nothing happens here, and it would not help.
        """
        if all(state.created_ms != state.written_ms for state in self.states.values()):
            return Decision()
        interval_ms = self.env.settings.cold_snapshot_interval_ms
        records = [
            snapshot_record(key, replace(state, snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms))
            for key, state in self.states.items()
            if now_ms - state.written_ms >= interval_ms
        ]
        return Decision(tuple(records), is_atomic=False)

    def _prune(self, _now_ms: int) -> None:
        self.env.prune(self.first_needed_offset)

    def first_needed_offset(self) -> int:
        """Return the offset of the oldest snapshot that is still needed. Nothing before it is."""
        return min(self._snapshot_offsets.values(), default=self.env.written_offset() + 1)


def snapshot_record(key: ShareKey, state: PartitionState) -> CoordinatorRecord:
    """Return the record of a whole state."""
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=_written(state.batches),
    )
    return CoordinatorRecord(_snapshot_key(key), value, 0)


def update_record(key: ShareKey, snapshot_epoch: int, update: PartitionUpdate) -> CoordinatorRecord:
    """Return the record of what has changed since the last snapshot."""
    value = ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=_written(update.batches),
    )
    update_key = ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return CoordinatorRecord(update_key, value, 0)


def tombstone(key: ShareKey) -> CoordinatorRecord:
    """Return the record that deletes a state."""
    return CoordinatorRecord(_snapshot_key(key), None, -1)


def _snapshot_key(key: ShareKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


def _batches(batches: Iterable[share_state.StateBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
        for one in batches
    )


def _written(batches: Iterable[StateBatch]) -> tuple[share_state.StateBatch, ...]:
    return tuple(
        share_state.StateBatch(
            first_offset=one.first_offset,
            last_offset=one.last_offset,
            delivery_state=one.delivery_state,
            delivery_count=one.delivery_count,
        )
        for one in batches
    )
