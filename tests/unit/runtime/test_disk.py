"""The real disk, in a temporary directory."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from ottla.runtime.disk import RealDisk, RealFile, _syncs_whole_file_systems
from ottla.runtime.disk_errors import disk_error
from ottla.world.disk import Disk, DiskError, Entry, File, Reason


def test_it_is_the_disk_that_storage_asks_for(tmp_path: Path) -> None:
    disk: Disk = RealDisk()
    file: File = disk.open(f"{tmp_path}/a", create=True)
    assert file.size() == 0


def test_pieces_are_written_one_after_the_other(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    file.write(0, [b"one", bytearray(b"two"), memoryview(b"three")])
    file.write(3, [b"TWO"])
    file.write(11, [])
    assert file.read(0, 100) == b"oneTWOthree"
    assert file.size() == 11


def test_more_pieces_than_one_call_takes_are_all_written(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    pieces = [bytes([number % 256]) * 3 for number in range(5000)]
    file.write(2, pieces)
    assert file.read(2, 15_000) == b"".join(pieces)


def test_reads_are_short_at_the_end_only(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    file.write(0, [b"0123456789"])
    assert file.read(7, 100) == b"789"
    assert file.read(10, 5) == b""
    buffer = memoryview(bytearray(4))
    assert file.read_into(8, buffer) == 2
    assert bytes(buffer) == b"89\x00\x00"
    assert file.read_into(0, buffer) == 4


def test_a_file_can_be_cut_and_closed_and_used_again(tmp_path: Path) -> None:
    disk = RealDisk()
    file = disk.open(f"{tmp_path}/a", create=True)
    file.write(0, [b"0123456789"])
    file.truncate(4)
    file.sync()
    file.close()
    assert len(disk.descriptors) == 0
    assert file.read(0, 100) == b"0123"


def test_allocation_does_not_change_the_size(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/a", create=True)
    file.write(0, [b"x"])
    file.allocate(1 << 20)
    assert file.size() == 1


def test_creating_keeps_what_is_there(tmp_path: Path) -> None:
    disk = RealDisk()
    disk.open(f"{tmp_path}/a", create=True).write(0, [b"kept"])
    assert disk.open(f"{tmp_path}/a", create=True).read(0, 10) == b"kept"


def test_a_missing_file_shows_at_the_first_use(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/a")
    with pytest.raises(DiskError) as failed:
        file.read(0, 1)
    assert (failed.value.reason, failed.value.path) == (Reason.NOT_FOUND, f"{tmp_path}/a")


def test_a_handle_follows_a_file_that_was_renamed(tmp_path: Path) -> None:
    disk = RealDisk()
    file = disk.open(f"{tmp_path}/a", create=True)
    file.write(0, [b"x"])
    disk.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    file.path = f"{tmp_path}/b"
    file.close()
    assert file.read(0, 1) == b"x"


def test_no_more_descriptors_are_open_than_allowed(tmp_path: Path) -> None:
    disk = RealDisk(descriptors_max=3)
    files = [disk.open(f"{tmp_path}/{number}", create=True) for number in range(20)]
    for number, file in enumerate(files):
        file.write(0, [bytes([number])])
    assert len(disk.descriptors) <= 3
    for number, file in enumerate(files):
        assert file.read(0, 1) == bytes([number])
    assert len(disk.descriptors) <= 3


def test_a_descriptor_that_is_pinned_stays_open(tmp_path: Path) -> None:
    disk = RealDisk(descriptors_max=2)
    pinned = disk.open(f"{tmp_path}/pinned", create=True)
    descriptor = pinned.pin()
    for number in range(10):
        disk.open(f"{tmp_path}/{number}", create=True).write(0, [b"x"])
    assert os.fstat(descriptor).st_ino == Path(f"{tmp_path}/pinned").stat().st_ino
    pinned.unpin()


MARK: Final = 77
"""Where a descriptor stands: nothing reads or writes there. One that is opened anew stands at the beginning,
whatever its number is."""


def _mark(file: RealFile) -> None:
    os.lseek(file.descriptor(), MARK, os.SEEK_SET)


def _is_marked(file: RealFile) -> bool:
    return os.lseek(file.descriptor(), 0, os.SEEK_CUR) == MARK


def _open_others(disk: RealDisk, tmp_path: Path) -> None:
    for number in range(5):
        Path(f"{tmp_path}/{number}").write_bytes(b"y")
        disk.open(f"{tmp_path}/{number}").read(0, 1)


def test_a_descriptor_with_unsynced_writes_is_closed_last(tmp_path: Path) -> None:
    disk = RealDisk(descriptors_max=2)
    written = disk.open(f"{tmp_path}/written", create=True)
    written.write(0, [b"x"])
    _mark(written)
    _open_others(disk, tmp_path)
    assert len(disk.descriptors) == 2
    assert _is_marked(written)
    written.sync()
    _open_others(disk, tmp_path)
    assert not _is_marked(written)


def test_a_write_from_another_thread_counts_as_one_that_is_not_synced(tmp_path: Path) -> None:
    disk = RealDisk(descriptors_max=2)
    written = disk.open(f"{tmp_path}/written", create=True)
    thread = Thread(target=written.write, args=(0, [b"x"]))
    thread.start()
    thread.join()
    _mark(written)
    _open_others(disk, tmp_path)
    assert _is_marked(written)


def test_a_file_that_was_cut_counts_as_one_with_unsynced_writes(tmp_path: Path) -> None:
    # Until it is synced its old length may come back. An error of that sync is told to this descriptor alone.
    disk = RealDisk(descriptors_max=2)
    cut = disk.open(f"{tmp_path}/cut", create=True)
    cut.write(0, [b"0123456789"])
    cut.sync()
    cut.truncate(4)
    _mark(cut)
    _open_others(disk, tmp_path)
    assert _is_marked(cut)


def test_another_thread_never_closes_what_was_lent(tmp_path: Path) -> None:
    disk = RealDisk(descriptors_max=2)
    lent = disk.open(f"{tmp_path}/lent", create=True)
    descriptor = lent.descriptor()

    def open_many() -> None:
        for number in range(10):
            disk.open(f"{tmp_path}/{number}", create=True).write(0, [b"x"])

    thread = Thread(target=open_many)
    thread.start()
    thread.join()
    assert os.fstat(descriptor).st_ino == Path(f"{tmp_path}/lent").stat().st_ino
    # The thread that made the disk brings the number down again.
    disk.open(f"{tmp_path}/another", create=True).write(0, [b"x"])
    assert len(disk.descriptors) <= 2


def test_entries_are_listed_by_name(tmp_path: Path) -> None:
    disk = RealDisk()
    disk.make_directory(f"{tmp_path}/d/c")
    disk.make_directory(f"{tmp_path}/d/c")
    disk.open(f"{tmp_path}/d/b", create=True).write(0, [b"123"])
    disk.set_modified_ms(f"{tmp_path}/d/b", 1_700_000_000_123)
    entries = disk.list(f"{tmp_path}/d")
    assert entries[0] == Entry("b", False, 3, 1_700_000_000_123)
    assert (entries[1].name, entries[1].is_directory) == ("c", True)


def test_names_come_and_go(tmp_path: Path) -> None:
    disk = RealDisk()
    disk.make_directory(f"{tmp_path}/d")
    disk.open(f"{tmp_path}/d/a", create=True)
    assert disk.exists(f"{tmp_path}/d/a")
    disk.rename(f"{tmp_path}/d/a", f"{tmp_path}/d/b")
    disk.sync_directory(f"{tmp_path}/d")
    assert not disk.exists(f"{tmp_path}/d/a")
    disk.remove(f"{tmp_path}/d/b")
    with pytest.raises(DiskError) as failed:
        disk.remove(f"{tmp_path}/d/b")
    assert failed.value.reason is Reason.NOT_FOUND
    disk.open(f"{tmp_path}/d/c", create=True)
    disk.remove_tree(f"{tmp_path}/d")
    assert not disk.exists(f"{tmp_path}/d")


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    disk = RealDisk()
    disk.write_file_atomically(f"{tmp_path}/a", b"old content")
    disk.write_file_atomically(f"{tmp_path}/a", b"new")
    assert disk.read_file(f"{tmp_path}/a") == b"new"
    assert [entry.name for entry in disk.list(str(tmp_path))] == ["a"]


def test_usage_is_told(tmp_path: Path) -> None:
    usage = RealDisk().usage(str(tmp_path))
    assert 0 < usage.usable_bytes <= usage.total_bytes


def test_one_process_locks_a_directory_once(tmp_path: Path) -> None:
    disk = RealDisk()
    lock = disk.lock(f"{tmp_path}/.lock")
    with pytest.raises(DiskError) as failed:
        disk.lock(f"{tmp_path}/.lock")
    assert failed.value.reason is Reason.LOCKED
    lock.release()
    lock.release()
    disk.lock(f"{tmp_path}/.lock").release()


def test_another_process_cannot_lock_what_this_one_has(tmp_path: Path) -> None:
    lock = RealDisk().lock(f"{tmp_path}/.lock")
    program = f"""
from ottla.runtime.disk import RealDisk
from ottla.world.disk import DiskError
try:
    RealDisk().lock({f"{tmp_path}/.lock"!r})
except DiskError as error:
    print(error.reason.name)
"""
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"LOCKED\n"
    lock.release()
    assert subprocess.run(command, capture_output=True, check=True).stdout == b""


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, Reason.NO_SPACE),
        (errno.EDQUOT, Reason.NO_SPACE),
        (errno.EIO, Reason.IO_ERROR),
        (errno.EROFS, Reason.READ_ONLY),
        (errno.EACCES, Reason.DENIED),
        (errno.EMFILE, Reason.TOO_MANY_OPEN),
        (errno.EXDEV, Reason.OTHER),
    ],
)
def test_errors_say_what_happened_and_where(number: int, reason: Reason) -> None:
    error = disk_error(OSError(number, os.strerror(number)), "/data/x", "write")
    assert error.reason is reason
    assert str(error) == f"cannot write /data/x: {os.strerror(number)}"


def test_a_full_disk_is_an_error_that_names_the_file() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    file = RealFile("/dev/full", RealDisk().descriptors)
    with pytest.raises(DiskError, match="/dev/full") as failed:
        file.write(0, [b"x"])
    assert failed.value.reason is Reason.NO_SPACE
    file.close()


def test_names_of_things_that_are_not_there_are_errors(tmp_path: Path) -> None:
    disk = RealDisk()
    missing = f"{tmp_path}/missing"
    for use in (
        lambda: disk.list(missing),
        lambda: disk.read_file(missing),
        lambda: disk.remove_tree(missing),
        lambda: disk.rename(missing, f"{tmp_path}/other"),
        lambda: disk.sync_directory(missing),
        lambda: disk.set_modified_ms(missing, 0),
        lambda: disk.usage(missing),
        lambda: disk.open(f"{missing}/file", create=True),
        lambda: disk.write_file_atomically(f"{missing}/file", b""),
        lambda: disk.lock(f"{missing}/.lock"),
    ):
        with pytest.raises(DiskError, match="missing") as failed:
            use()
        assert failed.value.reason is Reason.NOT_FOUND


def test_a_file_in_the_way_of_a_directory_is_an_error(tmp_path: Path) -> None:
    disk = RealDisk()
    disk.open(f"{tmp_path}/a", create=True)
    with pytest.raises(DiskError):
        disk.make_directory(f"{tmp_path}/a/b")


def test_a_whole_file_system_is_synced_where_errors_are_told(tmp_path: Path) -> None:
    disk = RealDisk()
    file = disk.open(f"{tmp_path}/file", create=True)
    file.write(0, (b"x",))
    is_certain = _syncs_whole_file_systems(os.uname().sysname, os.uname().release)
    assert disk.sync_all(str(tmp_path)) is is_certain
    assert disk.sync_all(str(tmp_path)) is is_certain, "the descriptor is kept"
    if is_certain:
        with pytest.raises(DiskError):
            disk.sync_all(f"{tmp_path}/missing")


@pytest.mark.parametrize(
    ("system", "release", "expected"),
    [
        ("Linux", "6.18.44-fc", True),
        ("Linux", "5.8.0", True),
        ("Linux", "5.7.19", False),
        ("Linux", "4.19", False),
        ("Linux", "strange", False),
        ("Darwin", "23.1.0", False),
    ],
)
def test_old_kernels_do_not_tell_of_errors(system: str, release: str, expected: bool) -> None:
    assert _syncs_whole_file_systems(system, release) is expected
