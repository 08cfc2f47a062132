"""What compaction, splits and deletions left half done."""

from tests.unit.storage.logs import PATH, append, batch, disk_of, files_of, new_log, offsets_of, open_log

from ottla.storage.config import LogConfig
from ottla.storage.loading.leftovers import settle_leftovers
from ottla.storage.log import Log
from ottla.storage.names import FileKind, FileState

SIZE = len(batch())
SMALL = LogConfig(segment_bytes=2 * SIZE, is_compacted=True)


def log_of(count: int) -> Log:
    log = new_log(SMALL)
    for _ in range(count):
        append(log)
    log.flush()
    return log


def test_a_directory_without_leftovers_is_not_changed() -> None:
    log = log_of(3)
    before = disk_of(log).trace
    files = settle_leftovers(disk_of(log), PATH)
    assert disk_of(log).trace == before
    assert list(files[FileKind.LOG]) == [0, 2]


def test_deleted_files_are_removed() -> None:
    log = log_of(5)
    log.segments[0].rename(FileState.DELETED)
    again = open_log(disk_of(log), SMALL)
    assert not [name for name in files_of(again) if name.endswith(".deleted")]
    assert offsets_of(again) == [(2, 2), (3, 3), (4, 4)]


def test_what_compaction_had_not_finished_is_removed() -> None:
    log = log_of(5)
    disk = disk_of(log)
    for kind in ("log", "index", "timeindex"):
        disk.open(f"{PATH}/00000000000000000000.{kind}.cleaned", create=True)
    again = open_log(disk, SMALL)
    assert not [name for name in files_of(again) if name.endswith(".cleaned")]
    assert again.log_end_offset == 5


def test_a_swap_replaces_all_segments_it_was_made_from() -> None:
    log = log_of(7)
    disk = disk_of(log)
    # The segments at 0 and 2 became one, which has the records 1 and 3.
    content = disk.read_file(f"{PATH}/00000000000000000000.log")[SIZE:]
    content += disk.read_file(f"{PATH}/00000000000000000002.log")[SIZE:]
    disk.open(f"{PATH}/00000000000000000000.log.swap", create=True).write(0, [content])
    again = open_log(disk, SMALL)
    assert [segment.base_offset for segment in again.segments] == [0, 4, 6]
    assert offsets_of(again) == [(1, 1), (3, 3), (4, 4), (5, 5), (6, 6)]
    assert not [name for name in files_of(again) if name.endswith(".swap")]


def test_a_swap_whose_originals_are_deleted_already_is_finished() -> None:
    log = log_of(5)
    disk = disk_of(log)
    content = disk.read_file(f"{PATH}/00000000000000000000.log")
    log.segments[0].rename(FileState.DELETED)
    disk.open(f"{PATH}/00000000000000000000.log.swap", create=True).write(0, [content])
    assert offsets_of(open_log(disk, SMALL)) == [(number, number) for number in range(5)]


def test_a_split_that_was_not_complete_is_undone() -> None:
    log = log_of(5)
    disk = disk_of(log)
    disk.open(f"{PATH}/00000000000000000002.log.cleaned", create=True)
    disk.open(f"{PATH}/00000000000000000003.log.swap", create=True)
    again = open_log(disk, SMALL)
    assert not [name for name in files_of(again) if name.endswith((".swap", ".cleaned"))]
    assert offsets_of(again) == [(number, number) for number in range(5)]
