"""A round of compaction beside the loop: it can be ended at any moment, and splits what cannot be indexed."""

from collections.abc import Callable
from dataclasses import replace
from queue import Queue
from typing import cast

import pytest
from tests.unit.storage.compaction.cleaned_log import data_batch
from tests.unit.storage.logs import (
    NOW_MS,
    PATH,
    ROOT,
    append,
    batch,
    disk_of,
    files_of,
    new_disk,
    offsets_of,
    open_log,
)

from ottla.broker.logs.cleaner import has_room_to_clean
from ottla.broker.logs.cleaning_round import CleaningRound, Means
from ottla.model.ids import NodeId, Offset
from ottla.model.uuid import Uuid
from ottla.runtime.threads import Threads
from ottla.storage.compaction.candidates import find_candidate
from ottla.storage.compaction.plan import plan_cleaning
from ottla.storage.config import LogConfig
from ottla.storage.deletion import Deletion
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.loading.load import load_log
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.log_dirs.meta_properties import MetaProperties
from ottla.storage.log_dirs.opening import format_directory, open_directory
from ottla.storage.names import DirectoryState
from ottla.storage.volume import Volume
from ottla.world.disk import Reason
from ottla.world.scheduler import Scheduler

SIZE = len(batch())
CONFIG = LogConfig(segment_bytes=2 * SIZE, is_compacted=True, is_deleted=False, verifies_transactions=False)
FAR = 1 << 31
LEFT_OVERS = (".cleaned", ".swap")


class Loop:
    """An event loop that does what it is asked for when the test says so."""

    def __init__(self) -> None:
        self._asked: Queue[Callable[[], None]] = Queue()
        self.is_over = False
        self.deletions: list[Deletion] = []

    def means(self) -> Means:
        return Means(Threads(cast(Scheduler, self)), 1 << 20, lambda _: 0, self.deletions.append)

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """Take what a thread asks for."""
        self._asked.put(callback)

    def wait(self) -> Callable[[], None]:
        """Wait until the round asks for something."""
        return self._asked.get(timeout=30)

    def end(self) -> None:
        self.is_over = True

    def serve(self) -> None:
        """Do everything until the round is over."""
        while not self.is_over:
            self.wait()()


@pytest.fixture(name="directory")
def directory_with_a_log() -> LogDirectory:
    disk = new_disk()
    format_directory(disk, ROOT, MetaProperties("cluster", NodeId(1), Uuid(b"this directory's")))
    disk.sync_directory("/")
    directory = open_directory(Volume(disk, ROOT))
    for request in directory.plan_load(lambda _: CONFIG, NOW_MS).loads:
        directory.add(load_log(directory.volume, request))
    log = log_of(directory)
    for _ in range(8):
        append(log)
    log.flush()
    # Room for two of the segments in one.
    log.config = replace(CONFIG, segment_bytes=4 * SIZE)
    return directory


def log_of(directory: LogDirectory) -> Log:
    return next(iter(directory.logs.values()))


def begin(directory: LogDirectory, loop: Loop, log: Log | None = None) -> CleaningRound:
    log = log or log_of(directory)
    task = plan_cleaning(find_candidate(log, None, NOW_MS), NOW_MS)
    cleaning = CleaningRound(loop.means(), directory, log, task)
    cleaning.start(loop.end)
    return cleaning


def left_overs(log: Log) -> list[str]:
    return [name for name in files_of(log) if name.endswith(LEFT_OVERS)]


def test_a_round_cleans_a_log(directory: LogDirectory) -> None:
    loop = Loop()
    cleaning = begin(directory, loop)
    loop.serve()
    cleaning.settle()
    log = log_of(directory)
    assert cleaning.error is None
    assert cleaning.result is not None
    assert cleaning.result.first_dirty_offset == 6
    assert offsets_of(log) == [(5, 5), (6, 6), (7, 7)]
    assert log.cleaning is None
    assert not left_overs(log)
    assert len(loop.deletions) == 2


def test_a_truncation_undoes_what_is_staged(directory: LogDirectory) -> None:
    loop = Loop()
    cleaning = begin(directory, loop)
    swap = loop.wait()
    log = log_of(directory)
    assert left_overs(log), "the first group is staged"
    directory.truncate([(log, Offset(3))], NOW_MS)
    assert not left_overs(log)
    assert log.cleaning is None
    # The loop comes to it too late.
    swap()
    loop.serve()
    cleaning.settle()
    assert cleaning.error is None
    assert offsets_of(log) == [(0, 0), (1, 1), (2, 2)]


def test_a_truncation_finishes_a_swap_that_the_log_knows_of(directory: LogDirectory) -> None:
    loop = Loop()
    begin(directory, loop)
    loop.wait()()
    finish = loop.wait()
    log = log_of(directory)
    assert left_overs(log), "the log reads from the staged files"
    directory.truncate([(log, Offset(6))], NOW_MS)
    assert not left_overs(log)
    finish()
    assert offsets_of(log)[-1] == (5, 5)
    assert len(loop.deletions) == 1
    again = open_log(disk_of(log), CONFIG, recovery_point=log.recovery_point)
    assert offsets_of(again) == offsets_of(log)


def test_a_deleted_topic_leaves_nothing_to_one_of_the_same_name(directory: LogDirectory) -> None:
    loop = Loop()
    begin(directory, loop)
    swap = loop.wait()
    old = log_of(directory)
    directory.set_aside(old, DirectoryState.DELETE, Uuid(b"another, new, id"))
    new = directory.create_log(old.topic_partition, Uuid(b"another topic id"), CONFIG, NOW_MS)
    swap()
    loop.serve()
    assert new.path == PATH
    assert not left_overs(new)
    assert not left_overs(old)


def test_a_round_that_is_asked_to_end_does_so_at_its_next_step(directory: LogDirectory) -> None:
    loop = Loop()
    cleaning = begin(directory, loop)
    cleaning.ask_to_end()
    loop.serve()
    cleaning.settle()
    assert not left_overs(log_of(directory))
    assert cleaning.error is None


def test_a_disk_that_fails_ends_the_round(directory: LogDirectory) -> None:
    log = log_of(directory)
    task = plan_cleaning(find_candidate(log, None, NOW_MS), NOW_MS)
    loop = Loop()
    cleaning = CleaningRound(loop.means(), directory, log, task)
    disk_of(log).fail("write", Reason.NO_SPACE)
    cleaning.start(loop.end)
    loop.serve()
    cleaning.settle()
    assert cleaning.error is not None
    assert not isinstance(cleaning.error, LogDirectoryOffline)


def test_a_segment_that_reaches_too_far_is_split_and_then_cleaned() -> None:
    disk = new_disk()
    format_directory(disk, ROOT, MetaProperties("cluster", NodeId(1), Uuid(b"this directory's")))
    for base_offset, offsets in ((0, (0, 7, FAR, FAR + 9)), (2 * FAR, (2 * FAR,))):
        file = disk.open(f"{PATH}/{base_offset:020d}.log", create=True)
        file.write(0, [data_batch(offset, [("a", str(offset))]) for offset in offsets])
        disk.open(f"{PATH}/{base_offset:020d}.index", create=True)
    directory = open_directory(Volume(disk, ROOT))
    # After a clean stop nobody looks at the batches of old segments.
    log = open_log(disk, CONFIG, is_clean=True)
    directory.add(log)
    log.update_high_watermark(log.log_end_offset)
    assert [segment.base_offset for segment in log.segments] == [0, 2 * FAR]
    loop = Loop()
    cleaning = begin(directory, loop, log)
    loop.serve()
    cleaning.settle()
    assert cleaning.error is None
    assert cleaning.has_split
    assert [segment.base_offset for segment in log.segments] == [0, FAR, 2 * FAR]
    assert [first for first, _ in offsets_of(log)] == [0, 7, FAR, FAR + 9, 2 * FAR]
    again = Loop()
    cleaning = begin(directory, again, log)
    again.serve()
    cleaning.settle()
    assert cleaning.error is None
    assert [first for first, _ in offsets_of(log)] == [FAR + 9, 2 * FAR]


def test_a_disk_that_fails_in_the_middle_of_a_swap_takes_the_directory_offline(
    directory: LogDirectory,
) -> None:
    loop = Loop()
    cleaning = begin(directory, loop)
    swap = loop.wait()
    log = log_of(directory)
    disk_of(log).fail("sync_directory", Reason.IO_ERROR)
    swap()
    loop.serve()
    with pytest.raises(LogDirectoryOffline):
        cleaning.settle()
    assert directory.is_offline


def test_a_log_is_cleaned_only_if_there_is_room_for_a_copy_of_its_largest_segment() -> None:
    disk = new_disk()
    log = open_log(disk, CONFIG)
    for _ in range(6):
        append(log)
    assert has_room_to_clean(log)
    log.volume.is_short = True
    disk.capacity_bytes = disk.used_bytes() + SIZE
    assert not has_room_to_clean(log)
    disk.capacity_bytes = disk.used_bytes() + 5 * SIZE
    assert has_room_to_clean(log)
