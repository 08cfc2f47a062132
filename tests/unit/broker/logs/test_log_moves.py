"""A log that moves to another directory stays what it is, whatever happens to it on the way."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.storage.log_dirs.test_directories import OTHER_ID, TOPIC_ID, formatted_disk, start
from tests.unit.storage.logs import NOW_MS, UNVERIFIED, batch

from ottla.broker.logs.log_moves import LogMoves
from ottla.broker.logs.partition import Partition
from ottla.broker.node import Broker
from ottla.broker.replication.replication import Replication
from ottla.model.ids import LeaderEpoch, Offset, ProducerId, TopicPartition
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.storage.log_dirs.directories import LogDirectories
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.log_dirs.directory_checkpoints import CheckpointKind
from ottla.storage.read import ReadLimit
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.world.disk import DiskError, Reason

KEY = TopicPartition("orders", 0)


class Timer:
    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class World:
    """A broker with a log in the first of its directories. Timers and workers run when the test says so."""

    def __init__(self, disk: SimulatedDisk | None = None) -> None:
        self.disk = disk or formatted_disk()
        self.directories: LogDirectories = start(self.disk)
        self.timers: list[tuple[Timer, Callable[..., None], tuple[Any, ...]]] = []
        self.works: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []
        self.changed: list[Partition] = []
        # What the controller is told, and whether it answers without being asked to by the test.
        self.reports: list[str] = []
        self.known: Callable[[], None] = lambda: None
        self.knows_at_once = True
        log = self.directories.find(KEY)
        if log is None:
            log = self.directories.directories[0].create_log(KEY, TOPIC_ID, UNVERIFIED, NOW_MS)
        log.config = UNVERIFIED
        self.partition = Partition("orders", TOPIC_ID, 0, log, cast(Any, SimpleNamespace()))
        clock = SimpleNamespace(now_ms=lambda: NOW_MS)
        self.broker = SimpleNamespace(
            directories=self.directories,
            clock=clock,
            new_id=lambda: OTHER_ID,
            deletions=SimpleNamespace(add=lambda _one: None, add_all=lambda _all: None),
            flusher=log.volume.syncs,
            workers=SimpleNamespace(run=lambda work, done: self.works.append((work, done))),
            config=SimpleNamespace(replica_alter_log_dirs_io_max_bytes_per_second=1 << 40),
            partitions=SimpleNamespace(find=lambda *_key: self.partition),
            changed=self.changed.append,
            directory_reports=self,
        )
        self.moves = LogMoves(cast(Broker, self.broker), cast(Any, self))
        self.broker.log_moves = self.moves

    @property
    def log(self) -> Log:
        """The log that serves."""
        return self.partition.log

    def call_later(self, _delay_ms: int, work: Callable[..., None], *arguments: Any) -> Timer:
        self.timers.append((timer := Timer(), work, arguments))
        return timer

    # The reports to the controller.

    def announce(self, partition: Partition, target: LogDirectory, known: Callable[[], None]) -> None:
        assert partition.log.path == "/a/orders-0", "the copy has not taken over yet"
        self.reports.append(f"announced {target.path}")
        self.known = known
        if self.knows_at_once:
            known()

    def withdraw(self, _partition: Partition) -> None:
        self.reports.append("withdrawn")

    def arrived(self, _partition: Partition) -> None:
        self.reports.append("arrived")

    def tick(self) -> None:
        """Do what waits for a timer now."""
        due, self.timers = self.timers, []
        for timer, work, arguments in due:
            if not timer.is_cancelled:
                work(*arguments)

    def work(self) -> None:
        """Let the workers finish."""
        due, self.works = self.works, []
        for work, done in due:
            work()
            done(None)

    def run(self) -> None:
        """Let the move come to its end."""
        while len(self.moves):
            self.tick()
            self.work()

    def append(self, epoch: int, count: int, records: memoryview | None = None) -> None:
        """Append records in a leader epoch."""
        log = self.log
        log.assign_leader_epoch(LeaderEpoch(epoch), log.log_end_offset)
        log.append_as_leader(records or batch(count), leader_epoch=LeaderEpoch(epoch), now_ms=NOW_MS)

    def cut(self, offset: int) -> None:
        """Cut the log, as a follower does."""
        replication = cast(Replication, SimpleNamespace(_broker=self.broker, clock=self.broker.clock))
        Replication.truncate(replication, self.log, Offset(offset))

    def begin(self) -> None:
        self.moves.begin(self.partition, self.directories.directories[1])

    def content(self) -> bytes:
        return bytes(self.log.read(Offset(0), 1 << 20, ReadLimit.LOG_END).read())

    def epochs(self) -> list[tuple[int, int]]:
        return [(one.epoch, one.start_offset) for one in self.log.leader_epochs.entries]


def moved(world: World) -> bool:
    return world.log.path == "/b/orders-0"


def test_what_a_follower_cuts_off_is_cut_off_of_the_copy() -> None:
    world = World()
    world.append(1, 80)
    world.append(1, 20)
    world.begin()
    while not world.works:
        world.tick()
    world.work()
    world.cut(80)
    world.append(2, 30)
    expected = world.content()
    world.run()
    assert moved(world)
    assert world.content() == expected
    assert world.epochs() == [(1, 0), (2, 80)]


def test_what_was_being_read_when_the_log_was_cut_is_not_copied() -> None:
    world = World()
    world.append(1, 80)
    world.append(1, 20)
    world.begin()
    while not world.works:
        world.tick()
    # The worker has read, and the loop has not heard of it yet.
    ((work, done),) = world.works
    world.works = []
    work()
    world.cut(80)
    world.append(2, 30)
    done(None)
    expected = world.content()
    world.run()
    assert moved(world)
    assert world.content() == expected


def test_a_cut_reaches_a_copy_that_is_about_to_take_over() -> None:
    world = World()
    world.append(1, 60)
    world.append(1, 40)
    world.begin()
    for _ in range(3):
        world.tick()
        world.work()
    world.cut(60)
    world.append(2, 50)
    expected = world.content()
    world.run()
    assert moved(world)
    assert world.content() == expected


def test_a_restart_finds_out_by_leader_epochs_what_was_cut_off() -> None:
    world = World()
    world.append(1, 80)
    world.append(1, 20)
    world.begin()
    while not world.works:
        world.tick()
    world.work()
    # The process is killed right after the cut, before the copy hears of it.
    world.broker.log_moves = SimpleNamespace(was_cut=lambda _log: None)
    world.cut(80)
    world.append(2, 30)
    expected = world.content()
    world.directories.release()
    again = World(world.disk)
    again.moves.resume()
    again.run()
    assert moved(again)
    assert again.content() == expected


def test_what_the_last_stop_has_left_of_a_move_goes_with_the_partition() -> None:
    world = World()
    world.append(1, 80)
    world.begin()
    world.directories.release()
    # The topic is deleted before the node serves, and goes on with its moves.
    again = World(world.disk)
    assert KEY in again.directories.directories[1].future_logs
    again.moves.cancel(again.partition)
    again.moves.resume()
    assert len(again.moves) == 0
    assert KEY not in again.directories.directories[1].future_logs


def test_of_two_copies_of_a_log_one_is_completed() -> None:
    world = World()
    world.append(1, 80)
    world.begin()
    # While the directory of the first copy was offline, another one was begun.
    world.directories.directories[2].create_log(KEY, TOPIC_ID, UNVERIFIED, NOW_MS, future_id=OTHER_ID)
    expected = world.content()
    world.directories.release()
    again = World(world.disk)
    again.moves.resume()
    again.run()
    assert moved(again)
    assert again.content() == expected
    assert not any(one.future_logs for one in again.directories.directories)


def test_a_log_without_records_keeps_its_leader_epochs() -> None:
    world = World()
    world.append(3, 10)
    world.log.update_high_watermark(Offset(10))
    world.log.increment_log_start_offset(Offset(10))
    world.log.assign_leader_epoch(LeaderEpoch(5), Offset(10))
    world.begin()
    world.run()
    assert moved(world)
    assert (world.log.log_start_offset, world.log.log_end_offset) == (10, 10)
    assert world.log.end_offset_for_epoch(LeaderEpoch(5)) == (5, 10)


def test_a_log_keeps_settings_and_producers_that_its_batches_do_not_tell() -> None:
    world = World()
    world.append(1, 10, batch(10, producer_id=7, epoch=0, sequence=0))
    world.log.update_high_watermark(Offset(10))
    world.log.increment_log_start_offset(Offset(10))
    world.begin()
    config = LogConfig(retention_ms=1234, verifies_transactions=False)
    world.partition.configure(config, 1)
    world.run()
    assert moved(world)
    assert world.log.config is config
    assert ProducerId(7) in world.log.producer_state.producers


def test_what_was_compacted_is_known_to_be_dirty_after_a_cut_and_a_crash() -> None:
    world = World()
    world.append(1, 10)
    directory = world.directories.directories[0]
    directory.cleaner_offsets[KEY] = Offset(10)
    directory.checkpoint_now(CheckpointKind.CLEANER)
    world.cut(4)
    world.append(2, 10)
    world.directories.release()
    again = World(world.disk)
    assert again.directories.directories[0].cleaner_offsets.get(KEY, 0) == 0


def test_a_topic_that_was_made_again_is_not_taken_for_compacted_after_a_crash() -> None:
    world = World()
    world.append(1, 10)
    directory = world.directories.directories[0]
    directory.cleaner_offsets[KEY] = Offset(10)
    directory.checkpoint_now(CheckpointKind.CLEANER)
    directory.let_go(world.log)
    world.log.move_to("/a/orders-0.00000000000000000000000000000001-delete")
    log = directory.create_log(KEY, OTHER_ID, UNVERIFIED, NOW_MS)
    log.append_as_leader(batch(20), leader_epoch=LeaderEpoch(0), now_ms=NOW_MS)
    world.directories.release()
    again = World(world.disk)
    assert again.directories.directories[0].cleaner_offsets.get(KEY, 0) == 0


def test_a_copy_that_has_lost_records_is_made_again() -> None:
    world = World()
    world.append(1, 80)
    world.append(1, 20)
    world.begin()
    while not world.works:
        world.tick()
    world.work()
    [future] = world.directories.directories[1].future_logs.values()
    future.flush()
    expected = world.content()
    path = future.active_segment.file.path
    world.directories.release()
    # The start covers what is lost with empty batches, since it was synced.
    file = world.disk.open(path)
    file.truncate(file.size() - 100)
    again = World(world.disk)
    [future] = again.directories.directories[1].future_logs.values()
    assert future.log_end_offset == 100
    again.moves.resume()
    again.run()
    assert moved(again)
    assert again.content() == expected
    assert not again.log.bridged


def test_a_move_rests_when_the_node_stops_while_something_is_read() -> None:
    world = World()
    world.append(1, 80)
    world.begin()
    while not world.works:
        world.tick()
    [future] = world.directories.directories[1].future_logs.values()
    world.moves.stop()
    # The logs may be closed by now, and what their files are may be written down.
    world.work()
    assert future.log_end_offset == 0
    world.tick()
    assert not world.works
    expected = world.content()
    world.directories.release()
    again = World(world.disk)
    again.moves.resume()
    again.run()
    assert moved(again)
    assert again.content() == expected


def wait_for_the_controller() -> World:
    """Return a world whose log is copied, and whose controller has not said that it knows."""
    world = World()
    world.knows_at_once = False
    world.append(1, 80)
    world.begin()
    while not world.reports:
        world.tick()
        world.work()
    return world


def test_a_copy_takes_over_when_the_controller_knows_with_what_was_appended_meanwhile() -> None:
    world = wait_for_the_controller()
    world.append(1, 20)
    world.tick()
    assert not moved(world)
    expected = world.content()
    world.known()
    world.run()
    assert moved(world)
    assert world.content() == expected
    assert world.reports == ["announced /b", "arrived"]


def test_a_cut_while_the_controller_is_asked_reaches_the_copy() -> None:
    world = wait_for_the_controller()
    world.append(2, 20)
    world.cut(80)
    world.append(3, 10)
    while world.timers:
        world.tick()
        world.work()
    assert not moved(world)
    expected = world.content()
    world.known()
    world.run()
    assert moved(world)
    assert world.content() == expected
    assert world.reports == ["announced /b", "arrived"]


def test_the_controller_hears_of_a_log_that_does_not_move_after_all() -> None:
    world = wait_for_the_controller()
    world.moves.cancel(world.partition)
    # What it answers now comes too late.
    world.known()
    assert not world.timers
    assert not moved(world)
    assert world.reports == ["announced /b", "withdrawn"]


def test_a_directory_that_fails_while_the_controller_is_asked_does_not_get_the_log() -> None:
    world = wait_for_the_controller()
    world.directories.directories[1].volume.fail(DiskError("/b", "write", Reason.IO_ERROR))
    world.known()
    world.tick()
    assert not moved(world)
    world.append(1, 20)
    assert world.reports == ["announced /b", "withdrawn"]


def test_nothing_is_written_to_the_old_log_when_the_new_directory_fails_while_the_copy_takes_over() -> None:
    world = wait_for_the_controller()
    old = world.log
    world.disk.fail("rename", Reason.IO_ERROR, path="/b/", times=None)
    world.known()
    world.tick()
    with pytest.raises(LogDirectoryOffline):
        world.append(1, 20)
    assert old.log_end_offset == 80
    assert world.reports == ["announced /b", "arrived"]


def test_a_log_whose_old_directory_fails_while_the_controller_is_asked_moves_all_the_same() -> None:
    world = wait_for_the_controller()
    world.directories.directories[0].volume.fail(DiskError("/a", "write", Reason.IO_ERROR))
    world.known()
    world.run()
    assert moved(world)
    world.append(1, 20)
    assert world.log.log_end_offset == 100
