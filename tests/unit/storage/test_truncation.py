"""Cutting the end of a log off, and everything that was derived from it."""

import pytest
from tests.unit.storage.logs import (
    NOW_MS,
    append,
    append_transactional,
    batch,
    disk_of,
    end_transaction,
    files_of,
    new_log,
    offsets_of,
    open_log,
)

from ottla.model.ids import Offset
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.world.disk import Reason

SIZE = len(batch())
SMALL = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=0, verifies_transactions=False)


def truncate(log: Log, offset: int) -> None:
    for deletion in log.truncate_to(Offset(offset), NOW_MS):
        deletion.run(disk_of(log))


def log_of(count: int, config: LogConfig = SMALL) -> Log:
    log = new_log(config)
    for number in range(count):
        append(log, batch(timestamps=[NOW_MS + number]), leader_epoch=number // 4)
    return log


def test_records_from_the_offset_on_are_gone() -> None:
    log = log_of(8)
    truncate(log, 5)
    assert offsets_of(log) == [(number, number) for number in range(5)]
    assert log.log_end_offset == 5


def test_a_batch_that_holds_the_offset_goes_as_a_whole() -> None:
    log = new_log()
    append(log, batch(3))
    append(log, batch(3))
    truncate(log, 4)
    assert offsets_of(log) == [(0, 2)]
    assert log.log_end_offset == 3
    append(log, batch(1))
    assert offsets_of(log) == [(0, 2), (3, 3)]


def test_an_offset_at_or_above_the_end_changes_nothing() -> None:
    log = log_of(4)
    truncate(log, 4)
    truncate(log, 9)
    assert log.log_end_offset == 4
    assert log.truncations == 0


def test_later_segments_are_taken_out() -> None:
    log = log_of(8)
    assert log.truncate_to(Offset(4), NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 3]
    assert [name for name in files_of(log) if name.startswith("00000000000000000006")] == [
        "00000000000000000006.log.deleted",
        "00000000000000000006.snapshot.deleted",
    ]


def test_a_cut_at_a_segments_start_keeps_it_empty() -> None:
    log = log_of(8)
    truncate(log, 6)
    assert [(segment.base_offset, segment.size) for segment in log.segments][-1] == (6, 0)
    append(log)
    assert offsets_of(log)[-1] == (6, 6)


def test_high_watermark_and_recovery_point_do_not_stay_above_the_end() -> None:
    log = log_of(8)
    log.flush()
    truncate(log, 5)
    assert (log.high_watermark, log.recovery_point) == (5, 5)


def test_epochs_that_started_after_the_cut_are_forgotten() -> None:
    log = log_of(12)
    truncate(log, 8)
    assert log.leader_epochs.entries == [(0, 0), (1, 4)]


def test_indexes_are_cut_too() -> None:
    log = log_of(5, LogConfig(index_interval_bytes=0))
    truncate(log, 3)
    segment = log.active_segment
    assert [entry.offset for entry in segment.saved_indexes().offsets] == [1, 2]
    assert segment.largest == (NOW_MS + 2, 2)
    append(log, batch(timestamps=[NOW_MS + 1]))
    log.close()
    again = open_log(disk_of(log), is_clean=True)
    assert again.log_end_offset == 4
    assert again.active_segment.largest == (NOW_MS + 2, 2)


def test_producers_are_what_they_were_at_the_cut() -> None:
    log = new_log(SMALL)
    for sequence in range(8):
        append(log, batch(producer_id=9, epoch=0, sequence=sequence))
    truncate(log, 5)
    assert log.active_producers()[9].last_sequence == 4  # type: ignore[index]
    info = append(log, batch(producer_id=9, epoch=0, sequence=5))
    assert (info.is_duplicate, info.first_offset) == (False, 5)


def test_a_transaction_whose_marker_is_cut_is_open_again() -> None:
    log = new_log()
    append_transactional(log, 9, 0)
    end_transaction(log, 9, is_commit=False)
    assert log.last_stable_offset == 2
    truncate(log, 1)
    assert log.last_stable_offset == 0
    assert log.active_segment.aborted() == []
    assert not log.active_segment.has_aborted
    end_transaction(log, 9, is_commit=True)
    assert log.last_stable_offset == 2


def test_aborted_transactions_before_the_cut_stay() -> None:
    log = new_log()
    for sequence in range(2):
        append_transactional(log, 9, sequence)
        end_transaction(log, 9, is_commit=False)
    truncate(log, 3)
    assert log.active_segment.aborted() == [(9, 0, 1, 2)]
    append(log)
    append_transactional(log, 8, 0)
    end_transaction(log, 8, is_commit=False)
    assert [entry.last_offset for entry in log.active_segment.aborted()] == [1, 5]


def test_snapshots_above_the_cut_are_removed() -> None:
    log = log_of(8)
    truncate(log, 4)
    assert [name for name in files_of(log) if name.endswith(".snapshot")] == ["00000000000000000003.snapshot"]
    assert log.snapshot_offset == 3


def test_a_cut_below_the_first_segment_empties_the_log() -> None:
    log = log_of(8)
    log.increment_log_start_offset(Offset(4))
    log.delete_old_segments(NOW_MS)
    truncate(log, 1)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (1, 1, 1)
    append(log)
    assert offsets_of(log) == [(1, 1)]


def test_starting_afresh_forgets_everything() -> None:
    log = new_log(SMALL)
    for sequence in range(5):
        append(log, batch(producer_id=9, epoch=0, sequence=sequence), leader_epoch=3)
    log.flush()
    for deletion in log.truncate_fully_and_start_at(Offset(100), NOW_MS):
        deletion.run(disk_of(log))
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
    assert not log.active_producers()
    assert log.leader_epochs.entries == []
    assert [name for name in files_of(log) if not name.startswith("leader")] == ["00000000000000000100.log"]
    append(log, batch(), leader_epoch=4)
    log.close()
    again = open_log(disk_of(log), is_clean=True)
    assert offsets_of(again) == [(100, 100)]
    assert again.leader_epochs.entries == [(4, 100)]


def test_a_disk_that_fails_in_a_truncation_goes_offline() -> None:
    log = log_of(8)
    disk_of(log).fail("truncate", Reason.IO_ERROR)
    with pytest.raises(LogDirectoryOffline):
        log.truncate_to(Offset(4), NOW_MS)
    assert log.volume.error is not None
