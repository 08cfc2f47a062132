"""A group coordinator in a world of its own: its clock is moved by hand, its logs in memory may lose power.

    world = GroupWorld()
    member = world.ask("join_group", join("g"))        # the answer, or None while it is parked
    world.advance(10_000)

Records go through their bytes, as they would on disk. What was appended is durable only after `sync`, which
the world does by itself after each step unless `syncs_by_itself` is off. `crash` forgets the coordinator and
what was not synced, and loads a new one from the logs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.coordinator import GroupCoordinator
from ottla.coordination.group.environment import Client, TopicFacts
from ottla.coordination.group.settings import (
    ConsumerIntervals,
    GroupSettings,
    ShareIntervals,
    StreamsIntervals,
)
from ottla.coordination.group.share.persister import Errors, StartOffsets, StateSummary, Summaries
from ottla.coordination.group.state import GroupShard
from ottla.coordination.runtime.decision import ProducerIdentity, Records
from ottla.coordination.runtime.shard import AnyShard, CannotAppend, LoggedBatch, Shard
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord, CoordinatorRecords
from ottla.wire.error_code import ErrorCode

START_MS = 1_700_000_000_000
NEWEST = Client("client", "/127.0.0.1", 99)


class ManualClock:
    """A clock that goes on when it is told to."""

    def __init__(self, wall_ms: int = START_MS, monotonic_ms: int = 0) -> None:
        self.wall_ms = wall_ms
        self.elapsed_ms = monotonic_ms

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.elapsed_ms

    def monotonic_ns(self) -> int:
        return 1_000_000 * self.elapsed_ms

    def advance(self, by_ms: int) -> None:
        self.wall_ms += by_ms
        self.elapsed_ms += by_ms


class FixedTopics:
    """Topics that exist from the start, and what a test adds."""

    def __init__(self, **partition_counts: int) -> None:
        self.facts = {
            name: TopicFacts(name, topic_id(name), count) for name, count in partition_counts.items()
        }

    def find_by_name(self, name: str) -> TopicFacts | None:
        return self.facts.get(name)

    def find_by_id(self, wanted: Uuid) -> TopicFacts | None:
        return next((facts for facts in self.facts.values() if facts.topic_id == wanted), None)

    def names(self) -> tuple[str, ...]:
        return tuple(self.facts)

    def racks(self, wanted: Uuid) -> Sequence[Sequence[str]]:
        facts = self.find_by_id(wanted)
        return [[] for _ in range(0 if facts is None else facts.partition_count)]

    def version(self) -> int:
        return 1


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode()[:16].ljust(16, b"-"))


class _StoredBatch:
    """A batch as it lies in the log, as bytes."""

    def __init__(
        self,
        records: Iterable[CoordinatorRecord],
        producer: ProducerIdentity | None,
        last_offset: int,
        kinds: CoordinatorRecords,
    ) -> None:
        self._kinds = kinds
        self.encoded = [
            (
                kinds.encode_key(record.key),
                None if record.value is None else kinds.encode_value(record.value, record.value_version),
            )
            for record in records
        ]
        self.producer = producer
        self.last_offset = last_offset
        self.committed: bool | None = None

    def read(self) -> LoggedBatch:
        decoded = (self._kinds.decode(key, value) for key, value in self.encoded)
        records = [record for record in decoded if isinstance(record, CoordinatorRecord)]
        return LoggedBatch(self.last_offset, records, self.producer, self.committed)


class MemoryLog:
    """A shard's log. What lies beyond `durable` batches is gone after a power cut."""

    def __init__(self, kinds: CoordinatorRecords = GROUP_RECORDS) -> None:
        self._kinds = kinds
        self.stored: list[_StoredBatch] = []
        self.durable = 0
        self.refusal: ErrorCode | None = None
        self.left_out = 0
        self.shard: AnyShard

    def append(self, records: Records, producer: ProducerIdentity | None, _is_atomic: bool) -> int:
        if self.refusal is not None:
            raise CannotAppend(self.refusal)
        batch = _StoredBatch(records, producer, self.end + len(records) - 1, self._kinds)
        self.stored.append(batch)
        return batch.last_offset

    def wait_for_replicas(self) -> None:
        """There is no other replica."""

    def write_out(self) -> None:
        """Nothing is held back."""

    def append_marker(self, producer: ProducerIdentity, committed: bool) -> int:
        batch = _StoredBatch((), producer, self.end, self._kinds)
        batch.committed = committed
        self.stored.append(batch)
        return batch.last_offset

    @property
    def end(self) -> int:
        return self.stored[-1].last_offset + 1 if self.stored else 0

    def leave_out(self, error: Exception) -> None:
        raise AssertionError("all that is in memory can be replayed") from error

    def batches(self) -> Iterator[LoggedBatch]:
        return (batch.read() for batch in self.stored)

    def records(self) -> list[CoordinatorRecord]:
        return [record for batch in self.stored for record in batch.read().records]

    def lose_power(self, kept: int = 0) -> None:
        """Forget what is not durable, but for `kept` batches that reached the disk all the same."""
        del self.stored[self.durable + kept :]
        self.durable = len(self.stored)


class MemoryPersister:
    """The share coordinators, which answer at once. Implements `StatePersister`."""

    def __init__(self) -> None:
        self.starts: dict[tuple[str, Uuid, int], int] = {}
        self.error_code = ErrorCode.NONE

    def initialize(
        self, group_id: str, _state_epoch: int, starts: StartOffsets, done: Callable[[Errors], None]
    ) -> None:
        errors = {}
        for topic_id, offsets in starts.items():
            for number, start in offsets.items():
                errors[topic_id, number] = self.error_code
                if self.error_code is ErrorCode.NONE:
                    self.starts[group_id, topic_id, number] = start
        done(errors)

    def delete(self, group_id: str, partitions: Partitions, done: Callable[[Errors], None]) -> None:
        errors = {}
        for topic_id, numbers in partitions.items():
            for number in numbers:
                errors[topic_id, number] = self.error_code
                if self.error_code is ErrorCode.NONE:
                    self.starts.pop((group_id, topic_id, number), None)
        done(errors)

    def summarize(self, group_id: str, partitions: Partitions, done: Callable[[Summaries], None]) -> None:
        done(
            {
                (topic_id, number): StateSummary(
                    self.error_code, self.starts.get((group_id, topic_id, number), -1)
                )
                for topic_id, numbers in partitions.items()
                for number in numbers
            }
        )


class GroupWorld:
    """The coordinator, and everything around it."""

    def __init__(
        self,
        settings: GroupSettings | None = None,
        topics: FixedTopics | None = None,
        partitions: int = 1,
        suffix: Callable[[], str] | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.topics = FixedTopics(orders=3, other=2) if topics is None else topics
        self.settings = settings or GroupSettings()
        self.logs = [MemoryLog() for _ in range(partitions)]
        self.syncs_by_itself = True
        self.share_state = MemoryPersister()
        self.epoch = 0
        self._suffixes = 0
        self._suffix = suffix
        self.start()

    # What the coordinator asks for

    def new_member_suffix(self) -> str:
        if self._suffix is not None:
            return self._suffix()
        self._suffixes += 1
        return str(self._suffixes)

    def consumer_intervals(self, group_id: str) -> ConsumerIntervals:
        return ConsumerIntervals()

    def streams_intervals(self, group_id: str) -> StreamsIntervals:
        return StreamsIntervals()

    def share_intervals(self, group_id: str) -> ShareIntervals:
        return ShareIntervals()

    def member_lost(self, group_id: str, member_id: str, why: str, after_ms: int) -> None:
        """Nobody keeps a journal."""

    def wake(self, deadline_ms: int) -> None:
        """The world looks for itself."""

    # What happens to it

    def start(self) -> None:
        """Load a coordinator from the logs."""
        self.epoch += 1
        self.coordinator = GroupCoordinator(self.settings, self)
        self.coordinator.shards.partition_count = len(self.logs)
        for number, log in enumerate(self.logs):
            shard = self.coordinator.shards.elect(number, self.epoch, log)
            assert shard is not None
            log.shard = shard
            for _ in shard.load():
                pass
            shard.activate(self.clock.now_ms())
        self.settle()

    def crash(self, kept: int = 0) -> None:
        """End without a warning, and start anew from what is on disk."""
        for log in self.logs:
            log.lose_power(kept)
        self.start()

    def sync(self) -> None:
        """Everything that was appended is on disk now."""
        for log in self.logs:
            log.durable = len(log.stored)
            log.shard.commit_up_to(log.end - 1)

    def settle(self) -> None:
        """Fire what is due now, and sync if that happens by itself."""
        for _ in range(100):
            if self.syncs_by_itself:
                self.sync()
            deadline_ms = self.coordinator.fire_timers()
            if deadline_ms is None or deadline_ms > self.clock.monotonic_ms():
                break
        if self.syncs_by_itself:
            self.sync()

    def advance(self, by_ms: int) -> None:
        """Let time pass, deadline by deadline."""
        end_ms = self.clock.monotonic_ms() + by_ms
        while self.clock.monotonic_ms() < end_ms:
            deadline_ms = self.coordinator.fire_timers()
            step_ms = (
                end_ms if deadline_ms is None else min(max(deadline_ms, self.clock.monotonic_ms()), end_ms)
            )
            self.clock.advance(max(step_ms - self.clock.monotonic_ms(), 0))
            self.settle()
            if deadline_ms is not None and deadline_ms <= self.clock.monotonic_ms() < end_ms:
                continue

    # Asking

    def ask(self, method: str, request: Any, client: Client = NEWEST) -> Any:
        """Ask, and return the answer if there is one now; else None."""
        answers = self.send(method, request, client)
        return answers[0] if answers else None

    def send(self, method: str, request: Any, client: Client = NEWEST) -> list[Any]:
        """Ask, and return a list that will have the answer in it."""
        answers: list[Any] = []
        getattr(self.coordinator, method)(request, client, self.clock.now_ms(), answers.append)
        self.settle()
        return answers

    @property
    def shard(self) -> Shard[GroupShard]:
        shard = self.coordinator.shards.get(0)
        assert shard is not None
        return shard

    def records(self) -> list[CoordinatorRecord]:
        """Return what was written to the only partition."""
        return self.logs[0].records()
