"""Shards follow who leads the partitions of their topic, and are loaded in slices."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from tests.support.group_world import GroupWorld, ManualClock, MemoryLog

from ottla.broker.coordinators import shard_hosting
from ottla.broker.coordinators.shard_hosting import ShardHosting
from ottla.coordination.group.offsets.committed_offsets import commit_record
from ottla.coordination.group.state import GroupShard
from ottla.coordination.runtime.shard import LoggedBatch, ShardStatus
from ottla.coordination.runtime.shards import Shards
from ottla.metadata.published import PublishedMetadata
from ottla.model.uuid import ZERO_UUID
from ottla.records.errors import CorruptBatch
from ottla.runtime.loop_scheduler import LoopScheduler
from ottla.runtime.poller import ServingLoop

TOPIC = "__consumer_offsets"
ME, OTHER = 1, 2


def record(leader: int, epoch: int) -> Any:
    return SimpleNamespace(leader=leader, leader_epoch=epoch)


def image(partitions: dict[int, Any] | None) -> Any:
    topic = None if partitions is None else SimpleNamespace(partitions=partitions)
    return SimpleNamespace(topics=SimpleNamespace(find=lambda _name: topic))


def delta(**changes: Any) -> Any:
    """Return changes of partitions: `p0=record(...)`."""
    return SimpleNamespace(
        topics=[
            SimpleNamespace(topic=TOPIC, partition=int(name[1:]), after=after)
            for name, after in changes.items()
        ]
    )


class BrokenLog(MemoryLog):
    def batches(self) -> Iterator[LoggedBatch]:
        raise CorruptBatch(0, "it is broken")


class Host:
    """A hosting over logs in memory."""

    def __init__(self, *logs: MemoryLog) -> None:
        self.world = GroupWorld()
        self.logs = logs
        self.shards: Shards[GroupShard] = Shards(
            lambda partition: GroupShard(self.world.coordinator.environment_of(partition))
        )
        self.loop = ServingLoop()
        partitions: Any = SimpleNamespace(find=self._find)
        self.hosting = ShardHosting(
            TOPIC,
            self.shards,
            partitions,
            ME,
            self._open,
            LoopScheduler(self.loop),
            ManualClock(),
            PublishedMetadata().act,
        )

    def _open(self, partition: Any) -> Any:
        return partition.shard_log

    def _find(self, _topic: str, number: int) -> Any:
        if number >= len(self.logs):
            return None
        log = self.logs[number]
        return SimpleNamespace(
            shard_log=log,
            is_leader=True,
            log=SimpleNamespace(log_start_offset=0, log_end_offset=log.end or len(log.stored)),
        )

    def turn(self) -> None:
        """Let the event loop go around once."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def load(self) -> None:
        """Let all shards be loaded, in as many slices as this machine needs today."""
        while ShardStatus.LOADING in self.statuses().values():
            self.turn()

    def statuses(self) -> dict[int, ShardStatus]:
        return {shard.partition: shard.status for shard in self.shards}

    def __enter__(self) -> "Host":
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.close()


def filled(count: int = 1, kind: type[MemoryLog] = MemoryLog) -> MemoryLog:
    log = kind()
    for number in range(count):
        log.append((commit_record(f"group-{number}", "orders", 0, 5, 0, "", 1, -1, ZERO_UUID),), None, True)
    return log


def test_only_what_this_node_leads_is_served() -> None:
    with Host(MemoryLog(), MemoryLog(), MemoryLog()) as host:
        host.hosting.start(image({0: record(ME, 0), 1: record(OTHER, 0), 2: record(ME, 3)}))
        assert host.statuses() == {0: ShardStatus.ACTIVE, 2: ShardStatus.ACTIVE}
        assert host.shards.partition_count == 3


def test_a_shard_with_a_log_is_loaded_before_it_serves() -> None:
    with Host(filled(3)) as host:
        host.hosting.start(image({0: record(ME, 0)}))
        assert host.statuses() == {0: ShardStatus.LOADING}
        host.load()
        assert host.statuses() == {0: ShardStatus.ACTIVE}
        shard = host.shards.get(0)
        assert shard is not None
        assert len(shard.state.groups) == 3


def test_a_large_log_is_loaded_in_slices(monkeypatch: Any) -> None:
    monkeypatch.setattr(shard_hosting, "SLICE_NS", 0)
    with Host(filled(5)) as host:
        host.hosting.start(image({0: record(ME, 0)}))
        turns = 0
        while host.statuses() == {0: ShardStatus.LOADING}:
            host.turn()
            turns += 1
        assert turns > 5


def test_a_shard_that_resigns_while_it_loads_never_serves(monkeypatch: Any) -> None:
    monkeypatch.setattr(shard_hosting, "SLICE_NS", 0)
    with Host(filled(5)) as host:
        host.hosting.start(image({0: record(ME, 0)}))
        host.turn()
        shard = host.shards.get(0)
        host.hosting.metadata_changed(image({0: record(OTHER, 1)}), delta(p0=record(OTHER, 1)))
        for _ in range(10):
            host.turn()
        assert shard is not None
        assert shard.status is ShardStatus.RESIGNED
        assert host.statuses() == {}


def test_leadership_comes_and_goes() -> None:
    with Host(MemoryLog()) as host:
        host.hosting.start(image({0: record(OTHER, 0)}))
        assert host.statuses() == {}
        host.hosting.metadata_changed(image({0: record(ME, 1)}), delta(p0=record(ME, 1)))
        assert host.statuses() == {0: ShardStatus.ACTIVE}
        host.hosting.metadata_changed(image({0: record(-1, 2)}), delta(p0=record(-1, 2)))
        assert host.statuses() == {}


def test_a_deleted_topic_takes_its_shards_along() -> None:
    with Host(MemoryLog()) as host:
        host.hosting.start(image({0: record(ME, 5)}))
        host.hosting.metadata_changed(image(None), delta(p0=None))
        assert host.statuses() == {}
        assert host.shards.partition_count is None
        host.hosting.metadata_changed(image({0: record(ME, 0)}), delta(p0=record(ME, 0)))
        assert host.statuses() == {0: ShardStatus.ACTIVE}, "a new topic starts its epochs over"


def test_what_cannot_be_read_is_not_served() -> None:
    with Host(filled(1, BrokenLog), filled(1)) as host:
        host.hosting.start(image({0: record(ME, 0), 1: record(ME, 0)}))
        host.load()
        assert host.statuses() == {0: ShardStatus.FAILED, 1: ShardStatus.ACTIVE}


def test_a_shard_whose_log_refused_a_batch_is_loaded_anew(monkeypatch: Any) -> None:
    monkeypatch.setattr(shard_hosting, "RELOAD_MS", 0)
    log: Any = filled(3)
    with Host(log) as host:
        host.hosting.start(image({0: record(ME, 4)}))
        host.load()
        failed = host.shards.get(0)
        assert failed is not None
        failed.fail()
        log.when_refused()
        for _ in range(10):
            host.turn()
        host.load()
        shard = host.shards.get(0)
        assert shard is not None
        assert shard is not failed
        assert shard.status is ShardStatus.ACTIVE
        assert shard.epoch == failed.epoch
        assert len(shard.state.groups) == 3


def test_a_shard_that_was_elected_anew_meanwhile_stays(monkeypatch: Any) -> None:
    monkeypatch.setattr(shard_hosting, "RELOAD_MS", 0)
    log: Any = MemoryLog()
    with Host(log) as host:
        host.hosting.start(image({0: record(ME, 4)}))
        failed = host.shards.get(0)
        assert failed is not None
        failed.fail()
        log.when_refused()
        host.hosting.metadata_changed(image({0: record(ME, 5)}), delta(p0=record(ME, 5)))
        elected = host.shards.get(0)
        # Timers fire in the turn after the one that finds them due.
        for _ in range(10):
            host.turn()
        assert host.shards.get(0) is elected
        assert host.statuses() == {0: ShardStatus.ACTIVE}


def test_a_partition_whose_directory_failed_has_no_shard() -> None:
    with Host() as host:
        host.hosting.start(image({0: record(ME, 0)}))
        assert host.statuses() == {}


def test_stopping_resigns_from_everything() -> None:
    with Host(MemoryLog(), MemoryLog()) as host:
        host.hosting.start(image({0: record(ME, 0), 1: record(ME, 7)}))
        host.hosting.stop()
        assert host.statuses() == {}
