"""What a flush covers, and what is never believed after one failed."""

import pytest
from tests.unit.storage.logs import (
    append,
    append_transactional,
    batch,
    disk_of,
    end_transaction,
    new_disk,
    new_log,
    offsets_of,
    open_log,
)

from ottla.model.ids import Offset
from ottla.storage.compaction.swap import _retire
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.storage.syncing import flush
from ottla.storage.syncing.flush import FlushTicket
from ottla.world.disk import DiskError, Reason

SIZE = len(batch())
SMALL = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=0, verifies_transactions=False)


def start(log: Log) -> FlushTicket:
    ticket = log.start_flush()
    assert ticket is not None
    return ticket


def names_of(ticket: FlushTicket) -> list[str]:
    paths = [*[file.path for file in ticket.files], *ticket.paths, *[path for path, _ in ticket.contents]]
    return sorted([path.rpartition("/")[2] for path in paths])


def test_what_was_flushed_survives_a_power_cut() -> None:
    disk = new_disk()
    log = open_log(disk)
    append(log)
    append(log)
    log.flush()
    assert log.recovery_point == 2
    disk.cut_power()
    assert offsets_of(open_log(disk)) == [(0, 0), (1, 1)]


def test_there_is_nothing_to_do_twice() -> None:
    log = new_log()
    append(log)
    log.flush()
    assert log.start_flush() is None


def test_after_the_first_flush_an_append_costs_one_sync() -> None:
    log = new_log()
    append(log)
    log.flush()
    append(log)
    ticket = start(log)
    assert names_of(ticket) == ["00000000000000000000.log"]
    assert (ticket.offset, ticket.directory) == (2, "")


def test_appends_during_a_sync_are_not_covered_by_it() -> None:
    log = new_log()
    append(log)
    ticket = start(log)
    append(log)
    flush.run(ticket, disk_of(log))
    log.finish_flush(ticket)
    assert log.recovery_point == 1
    assert start(log).offset == 2


def test_the_first_flush_covers_names_and_epochs() -> None:
    log = new_log()
    append(log, leader_epoch=3)
    ticket = start(log)
    assert ticket.directory == log.path
    assert names_of(ticket) == ["00000000000000000000.log", "leader-epoch-checkpoint"]
    flush.run(ticket, disk_of(log))
    assert disk_of(log).read_file(f"{log.path}/leader-epoch-checkpoint") == b"0\n1\n3 0\n"


def test_a_flush_covers_all_that_belongs_to_completed_segments() -> None:
    log = new_log(LogConfig(segment_bytes=4 * SIZE, verifies_transactions=False))
    append(log)
    append_transactional(log, 9, 0)
    end_transaction(log, 9, is_commit=False)
    for _ in range(2):
        append(log)
    ticket = start(log)
    completed = [name for name in names_of(ticket) if name.startswith("00000000000000000000")]
    assert completed == [f"00000000000000000000.{kind}" for kind in ("index", "log", "timeindex", "txnindex")]
    assert any(name.endswith(".snapshot") for name in names_of(ticket))


def test_a_sync_that_fails_takes_the_directory_offline_for_good() -> None:
    log = new_log()
    append(log)
    ticket = start(log)
    disk_of(log).fail("sync", Reason.IO_ERROR)
    with pytest.raises(DiskError) as failed:
        flush.run(ticket, disk_of(log))
    assert log.fail_flush(ticket, failed.value)
    disk_of(log).heal()
    assert log.recovery_point == 0
    with pytest.raises(LogDirectoryOffline):
        log.start_flush()


def test_a_flush_in_this_thread_fails_the_same_way() -> None:
    log = new_log()
    append(log)
    disk_of(log).fail("sync", Reason.IO_ERROR)
    with pytest.raises(LogDirectoryOffline, match="orders-0"):
        log.flush()
    assert log.volume.error is not None


def test_a_truncation_meanwhile_keeps_the_recovery_point_down() -> None:
    log = new_log()
    for _ in range(4):
        append(log)
    ticket = start(log)
    log.truncate_to(Offset(1), 0)
    append(log)
    append(log)
    flush.run(ticket, disk_of(log))
    log.finish_flush(ticket)
    assert log.recovery_point <= 1
    log.flush()
    assert log.recovery_point == 3


def test_a_segment_deleted_meanwhile_is_no_failure_of_the_disk() -> None:
    log = new_log(SMALL)
    for _ in range(8):
        append(log)
    ticket = start(log)
    log.increment_log_start_offset(Offset(4))
    assert log.delete_old_segments(0)
    with pytest.raises(DiskError) as failed:
        flush.run(ticket, disk_of(log))
    assert not log.fail_flush(ticket, failed.value)
    log.flush()
    assert log.recovery_point == 8


def test_a_segment_compacted_meanwhile_is_no_failure_of_the_disk() -> None:
    log = new_log(SMALL)
    for _ in range(8):
        append(log)
    first = log.segments[0]
    ticket = start(log)._replace(paths=(first.file.path,))
    _retire(first)
    with pytest.raises(DiskError) as failed:
        flush.run(ticket, disk_of(log))
    assert not log.fail_flush(ticket, failed.value)


def test_a_file_that_is_simply_missing_is_a_failure_of_the_disk() -> None:
    log = new_log(SMALL)
    for _ in range(8):
        append(log)
    disk_of(log).remove(log.segments[0].file.path)
    ticket = start(log)
    with pytest.raises(DiskError) as failed:
        flush.run(ticket, disk_of(log))
    assert log.fail_flush(ticket, failed.value)


def test_closing_leaves_files_that_need_no_recovery() -> None:
    disk = new_disk()
    log = open_log(disk, SMALL)
    for _ in range(7):
        append(log)
    log.close()
    disk.cut_power()
    reads = disk.counters.read_bytes
    again = open_log(disk, SMALL, is_clean=True)
    assert again.log_end_offset == again.recovery_point == 7
    assert disk.counters.read_bytes - reads < 6 * SIZE


def test_closing_a_log_that_was_not_touched_costs_nothing() -> None:
    disk = new_disk()
    log = open_log(disk)
    append(log)
    log.close()
    again = open_log(disk, is_clean=True)
    assert again.start_close() is None
