"""The note of the broker epoch: it is there only while nothing that counts can be lost."""

import shutil
from pathlib import Path

import pytest
from tests.unit.storage.log_dirs.test_directory import META, ROOT, create, formatted_disk, start
from tests.unit.storage.logs import append, batch

from ottla.runtime.disk import RealDisk
from ottla.storage.config import LogConfig
from ottla.storage.log_dirs.clean_shutdown import NO_BROKER_EPOCH
from ottla.storage.log_dirs.directory_checkpoints import CheckpointKind
from ottla.storage.log_dirs.epoch_note import FILE, EpochNote
from ottla.storage.log_dirs.opening import format_directory
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.world.disk import DiskError, Reason

EPOCH = 492
PATH = f"{ROOT}/{FILE}"


@pytest.fixture
def disk() -> SimulatedDisk:
    """A directory in which a broker serves in an epoch."""
    disk = formatted_disk()
    directory = start(disk)
    append(create(directory), batch(3))
    directory.logs[next(iter(directory.logs))].flush()
    directory.note_epoch(EPOCH)
    return disk


def test_the_epoch_is_known_after_a_power_cut(disk: SimulatedDisk) -> None:
    disk.cut_power()
    assert start(disk).find_kept_epoch() == EPOCH


def test_a_start_that_is_interrupted_keeps_nothing(disk: SimulatedDisk) -> None:
    disk.kill()
    start(disk)
    disk.cut_power()
    assert start(disk).find_kept_epoch() == NO_BROKER_EPOCH


def test_after_a_clean_stop_its_mark_says_it(disk: SimulatedDisk) -> None:
    disk.kill()
    directory = start(disk)
    directory.note_epoch(EPOCH)
    directory.close(EPOCH + 1)
    assert not disk.exists(PATH)
    directory = start(disk)
    assert (directory.clean_stop_epoch, directory.find_kept_epoch()) == (EPOCH + 1, NO_BROKER_EPOCH)


def test_a_log_that_does_not_wait_for_syncs_withdraws_it(disk: SimulatedDisk) -> None:
    disk.kill()
    directory = start(disk)
    directory.note_epoch(EPOCH)
    directory.volume.promise_nothing()
    disk.cut_power()
    assert start(disk).find_kept_epoch() == NO_BROKER_EPOCH


def test_it_is_not_written_beside_a_log_that_does_not_wait_for_syncs(disk: SimulatedDisk) -> None:
    disk.kill()
    directory = start(disk, LogConfig(acks_all_sync=False))
    directory.note_epoch(EPOCH)
    assert not disk.exists(PATH)


def test_a_log_that_lost_what_was_synced_keeps_nothing(disk: SimulatedDisk) -> None:
    disk.kill()
    log = disk.open(f"{ROOT}/orders-0/00000000000000000000.log")
    log.write(70, (b"damage",))
    assert start(disk).find_kept_epoch() == NO_BROKER_EPOCH


def test_a_log_that_ends_below_its_high_watermark_keeps_nothing(disk: SimulatedDisk) -> None:
    disk.kill()
    directory = start(disk)
    (log,) = directory.logs.values()
    append(log, batch(2))
    log.update_high_watermark(log.log_end_offset)
    directory.checkpoint_now(CheckpointKind.HIGH_WATERMARK)
    directory.note_epoch(EPOCH)
    disk.kill()
    file = disk.open(f"{ROOT}/orders-0/00000000000000000000.log")
    file.truncate(file.size() - 1)
    assert start(disk).find_kept_epoch() == NO_BROKER_EPOCH


def test_after_a_failed_sync_nothing_is_kept_until_a_clean_stop(disk: SimulatedDisk) -> None:
    disk.kill()
    directory = start(disk)
    directory.note_epoch(EPOCH)
    directory.volume.fail(DiskError(ROOT, "sync", Reason.IO_ERROR))
    for _ in range(2):
        # Only the process is started again.
        disk.kill()
        directory = start(disk)
        assert directory.find_kept_epoch() == NO_BROKER_EPOCH
        directory.note_epoch(EPOCH)
    directory.close(EPOCH)
    start(disk).note_epoch(EPOCH + 1)
    disk.kill()
    assert start(disk).find_kept_epoch() == EPOCH + 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"version":0}',
        b'{"version":1,"brokerEpoch":492,"directory":"/data/meta.properties"}',
    ],
)
def test_a_file_that_cannot_be_read_says_nothing(disk: SimulatedDisk, content: bytes) -> None:
    disk.write_file_atomically(PATH, content)
    assert EpochNote(disk, ROOT).last_epoch == NO_BROKER_EPOCH


def test_a_copy_of_a_directory_keeps_nothing(tmp_path: Path) -> None:
    original, copy = str(tmp_path / "original"), str(tmp_path / "copy")
    disk = RealDisk()
    format_directory(disk, original, META)
    EpochNote(disk, original).write(EPOCH)
    shutil.copytree(original, copy)
    assert EpochNote(disk, original).last_epoch == EPOCH
    assert EpochNote(disk, copy).last_epoch == NO_BROKER_EPOCH
