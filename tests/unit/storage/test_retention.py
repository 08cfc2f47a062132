"""Letting go of the oldest records."""

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
from ottla.storage.errors import OffsetOutOfRange
from ottla.storage.log import Log

SIZE = len(batch())
KEEPS_ALL = LogConfig(segment_bytes=2 * SIZE, retention_ms=-1, verifies_transactions=False)


def log_of(count: int, config: LogConfig = KEEPS_ALL) -> Log:
    log = new_log(config)
    for number in range(count):
        append(log, batch(timestamps=[NOW_MS + number]))
    return log


def bases_of(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_without_limits_everything_stays() -> None:
    log = log_of(9)
    assert log.delete_old_segments(NOW_MS * 2) == []
    assert log.log_start_offset == 0


def test_segments_older_than_the_limit_go() -> None:
    log = log_of(9, LogConfig(segment_bytes=2 * SIZE, retention_ms=1000))
    # The newest of the first two segments have timestamps 1 and 3.
    assert log.delete_old_segments(NOW_MS + 1001) == []
    log.delete_old_segments(NOW_MS + 1004)
    assert bases_of(log) == [4, 6, 8]
    assert log.log_start_offset == 4


def test_a_young_segment_protects_the_ones_behind_it() -> None:
    log = new_log(LogConfig(segment_bytes=SIZE, retention_ms=1000))
    for timestamp in (0, 5000, 0, 0):
        append(log, batch(timestamps=[NOW_MS + timestamp]), now_ms=NOW_MS + 5000)
    log.delete_old_segments(NOW_MS + 2000)
    assert bases_of(log) == [1, 2, 3]


def test_the_active_segment_may_go_too_and_a_new_one_starts_at_the_end() -> None:
    log = log_of(3, LogConfig(segment_bytes=2 * SIZE, retention_ms=1000))
    log.delete_old_segments(NOW_MS + 10_000)
    assert (bases_of(log), log.log_start_offset, log.log_end_offset) == ([3], 3, 3)
    append(log)
    assert offsets_of(log) == [(3, 3)]
    # An empty one has nothing to let go of.
    log.delete_old_segments(NOW_MS + 100_000_000)
    log.delete_old_segments(NOW_MS + 200_000_000)
    assert bases_of(log) == [4]


def test_a_segment_without_timestamps_is_as_old_as_its_file() -> None:
    log = new_log(LogConfig(retention_ms=1000))
    append(log, batch(timestamps=[-1]))
    assert log.delete_old_segments(NOW_MS + 1000) == []
    assert log.delete_old_segments(NOW_MS + 1001)


def test_size_is_kept_at_or_above_the_limit() -> None:
    log = log_of(9, LogConfig(segment_bytes=2 * SIZE, retention_ms=-1, retention_bytes=5 * SIZE))
    log.delete_old_segments(NOW_MS)
    # Nine batches; without the first two segments there are five, without a third there would be three.
    assert bases_of(log) == [4, 6, 8]


def test_what_not_every_replica_has_stays() -> None:
    log = log_of(9, LogConfig(segment_bytes=2 * SIZE, retention_ms=1000))
    log.high_watermark = Offset(3)
    log.delete_old_segments(NOW_MS * 2)
    assert bases_of(log) == [2, 4, 6, 8]


def test_a_topic_that_is_only_compacted_keeps_old_segments() -> None:
    config = LogConfig(
        segment_bytes=2 * SIZE, retention_ms=1000, retention_bytes=0, is_deleted=False, is_compacted=True
    )
    log = log_of(9, config)
    assert log.delete_old_segments(NOW_MS * 2) == []
    log.increment_log_start_offset(Offset(5))
    log.delete_old_segments(NOW_MS * 2)
    assert bases_of(log) == [4, 6, 8]


def test_deleted_records_are_gone_at_once_and_their_segments_with_the_next_run() -> None:
    log = log_of(9)
    assert log.increment_log_start_offset(Offset(5))
    assert offsets_of(log) == [(number, number) for number in range(5, 9)]
    assert bases_of(log) == [0, 2, 4, 6, 8]
    log.delete_old_segments(NOW_MS)
    assert bases_of(log) == [4, 6, 8]
    assert log.log_start_offset == 5


def test_deleting_what_is_deleted_changes_nothing() -> None:
    log = log_of(5)
    log.increment_log_start_offset(Offset(3))
    assert not log.increment_log_start_offset(Offset(2))
    assert log.log_start_offset == 3


def test_more_than_the_high_watermark_cannot_be_deleted() -> None:
    log = log_of(5)
    log.high_watermark = Offset(3)
    with pytest.raises(OffsetOutOfRange):
        log.increment_log_start_offset(Offset(4))


def test_all_records_can_be_deleted() -> None:
    log = log_of(5)
    log.increment_log_start_offset(Offset(5))
    log.delete_old_segments(NOW_MS)
    assert bases_of(log) == [4]
    assert log.read(Offset(5), 100).length == 0


def test_deleted_records_take_their_leader_epochs_with_them() -> None:
    log = new_log(KEEPS_ALL)
    for epoch in range(6):
        append(log, leader_epoch=epoch)
    log.increment_log_start_offset(Offset(3))
    assert log.leader_epochs.entries == [(3, 3), (4, 4), (5, 5)]


def test_an_open_transaction_that_was_deleted_holds_back_what_is_left() -> None:
    log = new_log(KEEPS_ALL)
    append_transactional(log, 9, 0)
    append(log)
    log.increment_log_start_offset(Offset(2))
    append(log)
    assert (log.log_start_offset, log.last_stable_offset) == (2, 2)
    end_transaction(log, 9, is_commit=True)
    assert log.last_stable_offset == log.high_watermark == 4


def test_files_are_renamed_first_and_removed_later() -> None:
    log = log_of(5)
    log.config = LogConfig(segment_bytes=2 * SIZE, file_delete_delay_ms=777)
    log.increment_log_start_offset(Offset(4))
    deletions = log.delete_old_segments(NOW_MS)
    assert [deletion.delay_ms for deletion in deletions] == [777, 777]
    deleted = [name for name in files_of(log) if name.endswith(".deleted")]
    assert "00000000000000000002.snapshot.deleted" in deleted
    assert len(deleted) == 7
    for deletion in deletions:
        deletion.run(disk_of(log))
        # Another time does no harm: the whole directory may be gone by then.
        deletion.run(disk_of(log))
    assert not [name for name in files_of(log) if name.endswith(".deleted")]


def test_a_read_under_way_still_finds_the_bytes_of_a_deleted_segment() -> None:
    log = log_of(5)
    result = log.read(Offset(0), 1 << 20)
    before = result.read()
    log.increment_log_start_offset(Offset(4))
    log.delete_old_segments(NOW_MS)
    assert result.read() == before


def test_a_start_finds_the_log_as_retention_left_it() -> None:
    log = log_of(5)
    log.increment_log_start_offset(Offset(4))
    log.delete_old_segments(NOW_MS)
    log.close()
    again = open_log(disk_of(log), KEEPS_ALL, is_clean=True)
    assert (again.log_start_offset, again.log_end_offset) == (4, 5)
    assert not [name for name in files_of(again) if name.endswith(".deleted")]
