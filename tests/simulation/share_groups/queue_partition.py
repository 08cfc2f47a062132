"""A share partition with a share coordinator behind it, in a world of its own.

Writes take their time, the log of the coordinator loses what was not synced, and the leader moves to another
node at any moment, with the coordinator or without it.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.group_world import FixedTopics, ManualClock, MemoryLog

from ottla.broker.share.acquiring import Limits
from ottla.broker.share.letters import DeadRun
from ottla.broker.share.share_partition import SharePartition
from ottla.coordination.share.coordinator import Outcome, ShareCoordinator, WrittenState
from ottla.coordination.share.settings import ShareSettings
from ottla.coordination.share.state import ShareKey
from ottla.wire.coordinator_records.framing import SHARE_STATE_RECORDS
from ottla.wire.error_code import ErrorCode

BATCH_RECORDS = 5
TOPICS = FixedTopics(orders=1)
KEY = ShareKey("queue", TOPICS.facts["orders"].topic_id, 0)


class _Partition:
    """What a share partition asks of a partition. There is no log: the simulation says what is read."""

    is_leader = True
    leader_epoch = 0


class QueuePartition:
    """The coordinator, its log, the leader, and time. Implements `Surroundings`."""

    def __init__(self, seed: int, records: int = 60) -> None:
        self.rng = random.Random(seed)
        self.batches = [(first, first + BATCH_RECORDS - 1) for first in range(0, records, BATCH_RECORDS)]
        self.clock = ManualClock()
        self.topics = TOPICS
        self.limits = Limits(self.rng.choice((2, 5)), 30, 50, keeps_dead_letters=self.rng.random() < 0.5)
        self.log = MemoryLog(SHARE_STATE_RECORDS)
        self.letters: list[int] = []
        self._timers: list[tuple[int, Callable[..., object], tuple[Any, ...]]] = []
        self._asks: list[Callable[[], None]] = []
        self._partition = _Partition()
        self.elect_coordinator()
        outcomes: list[Outcome] = []
        self.coordinator.initialize(KEY, 1, 0, 0, outcomes.append)
        self.sync()
        assert outcomes[0].error_code is ErrorCode.NONE
        self.lead()

    # What the coordinator and the share partition ask for

    @property
    def scheduler(self) -> Any:
        return self

    @property
    def persister(self) -> Any:
        return self

    def call_later(self, delay_ms: int, callback: Callable[..., object], *arguments: Any) -> Any:
        timer = (self.clock.monotonic_ms() + delay_ms, callback, arguments)
        self._timers.append(timer)

        class Handle:
            @staticmethod
            def cancel() -> None:
                if timer in self._timers:
                    self._timers.remove(timer)

        return Handle

    def wake(self, deadline_ms: int) -> None:
        """The coordinator's timers do not matter here."""

    def prune(self, partition: int, offset: int) -> None:
        """Nothing is deleted."""

    def read(self, key: ShareKey, leader_epoch: int, done: Callable[[Outcome], None]) -> None:
        self._asks.append(lambda: self.coordinator.read(key, leader_epoch, 0, done))

    def write(self, key: ShareKey, written: WrittenState, done: Callable[[Outcome], None]) -> None:
        self._asks.append(lambda: self.coordinator.write(key, written, 0, done))

    def limits_of(self, _group_id: str) -> Limits:
        return self.limits

    def start_of(self, _group_id: str, _partition: Any) -> int:
        return 0

    def changed(self, _share_partition: SharePartition) -> None:
        """Nobody waits."""

    def write_letters(
        self, _one: Any, runs: Sequence[DeadRun], is_first: bool, done: Callable[[bool], None]
    ) -> None:
        offsets = [offset for run in runs for offset in range(run.first, run.last + 1)]
        if is_first:
            offsets = [offset for offset in offsets if offset not in self.letters]
        if self.rng.random() < 0.3:
            # Some are written, and then it fails.
            self.letters += offsets[: len(offsets) // 2]
            done(False)
        else:
            self.letters += offsets
            done(True)

    # What happens

    def elect_coordinator(self) -> None:
        self.coordinator = ShareCoordinator(ShareSettings(updates_per_snapshot=5), self)
        self.coordinator.shards.partition_count = 1
        shard = self.coordinator.shards.elect(0, 1, self.log)
        assert shard is not None
        self.log.shard = shard
        for _ in shard.load():
            pass
        shard.activate(0)

    def crash_coordinator(self) -> None:
        """Lose what is not synced. Who waits for an answer gets an error, some time later."""
        self.log.lose_power()
        before = self.coordinator
        self.elect_coordinator()
        shard = before.shards.get(0)
        assert shard is not None
        shard.resign()

    def lead(self) -> None:
        """Another node leads: nothing is known but what was written."""
        self._asks.clear()
        self._timers.clear()
        self._partition = _Partition()
        self._partition.leader_epoch = getattr(self, "epoch", -1) + 1
        self.epoch = self._partition.leader_epoch
        self.leader = SharePartition(KEY, self._partition, self)  # type: ignore[arg-type]
        self.leader.load()

    def sync(self) -> None:
        self.log.durable = len(self.log.stored)
        self.log.shard.commit_up_to(self.log.end - 1)

    def advance(self, by_ms: int) -> None:
        self.clock.advance(by_ms)
        now_ms = self.clock.monotonic_ms()
        due = [timer for timer in self._timers if timer[0] <= now_ms]
        self._timers = [timer for timer in self._timers if timer[0] > now_ms]
        for _, callback, arguments in due:
            callback(*arguments)

    def answer_some(self) -> None:
        """Let the coordinator get requests, and sync."""
        asks, self._asks = self._asks, []
        for ask in asks:
            ask()
        if self.rng.random() < 0.8:
            self.sync()

    def settle(self) -> None:
        """Do everything that is to be done."""
        for _ in range(50):
            self.answer_some()
            self.sync()
            self.advance(600)
