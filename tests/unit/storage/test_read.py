"""Reading: which bytes of which file, how far each kind of reader sees, and what was aborted."""

import pytest
from tests.unit.storage.logs import (
    append,
    append_transactional,
    batch,
    disk_of,
    end_transaction,
    new_log,
)

from ottla.model.ids import Offset
from ottla.records.batch import iter_batches
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline, OffsetOutOfRange
from ottla.storage.log import Log
from ottla.storage.read import ReadLimit
from ottla.world.disk import Reason

BATCH_BYTES = len(batch(2))


def log_of(batches: int, *, per_segment: int | None = None, interval_bytes: int = 4096) -> Log:
    segment_bytes = 1 << 30 if per_segment is None else per_segment * BATCH_BYTES
    config = LogConfig(
        segment_bytes=segment_bytes, index_interval_bytes=interval_bytes, verifies_transactions=False
    )
    log = new_log(config)
    for _ in range(batches):
        append(log, batch(2))
    return log


def read_offsets(
    log: Log,
    offset: int,
    max_bytes: int = 1 << 20,
    limit: ReadLimit = ReadLimit.HIGH_WATERMARK,
    at_least_one_batch: bool = True,
) -> list[int]:
    """Return the base offsets of the whole batches that a read gives."""
    content = log.read(Offset(offset), max_bytes, limit, at_least_one_batch).read()
    return [view.base_offset for view in iter_batches(memoryview(content))]


def test_a_read_within_a_batch_gives_the_whole_batch() -> None:
    assert read_offsets(log_of(3), 3) == [2, 4]


@pytest.mark.parametrize("interval_bytes", [0, 100, 1 << 20])
@pytest.mark.parametrize("per_segment", [None, 3])
def test_every_offset_is_found_however_sparse_the_index(interval_bytes: int, per_segment: int | None) -> None:
    log = log_of(300, per_segment=per_segment, interval_bytes=interval_bytes)
    for offset in range(600):
        assert read_offsets(log, offset)[0] == offset - offset % 2


def test_a_read_stays_within_one_segment() -> None:
    log = log_of(7, per_segment=3)
    assert read_offsets(log, 0) == [0, 2, 4]
    assert read_offsets(log, 6) == [6, 8, 10]
    assert read_offsets(log, 12) == [12]


def test_the_last_batch_may_be_cut_off() -> None:
    result = log_of(3).read(Offset(0), 2 * BATCH_BYTES + 10)
    assert result.length == 2 * BATCH_BYTES + 10


def test_a_first_batch_larger_than_asked_for_is_given_whole() -> None:
    assert log_of(3).read(Offset(0), 1).length == BATCH_BYTES


def test_a_first_batch_that_does_not_fit_gives_nothing_where_another_partition_was_served() -> None:
    log = log_of(3)
    result = log.read(Offset(0), BATCH_BYTES - 1, at_least_one_batch=False)
    assert (result.file, result.length) == (None, 0)
    assert read_offsets(log, 0, BATCH_BYTES, at_least_one_batch=False) == [0]


def test_at_the_end_there_is_nothing_and_no_error() -> None:
    log = log_of(2)
    result = log.read(Offset(4), 100)
    assert (result.file, result.length) == (None, 0)
    assert result.high_watermark == result.log_end_offset == 4


@pytest.mark.parametrize("offset", [-1, 5, 1000])
def test_what_the_log_does_not_have_is_out_of_range(offset: int) -> None:
    with pytest.raises(OffsetOutOfRange) as refused:
        log_of(2).read(Offset(offset), 100)
    assert (refused.value.log_start_offset, refused.value.log_end_offset) == (0, 4)


def test_what_was_deleted_is_out_of_range() -> None:
    log = log_of(4)
    log.increment_log_start_offset(Offset(3))
    with pytest.raises(OffsetOutOfRange):
        log.read(Offset(2), 100)
    assert read_offsets(log, 3)[0] == 2


def test_a_consumer_sees_no_further_than_the_high_watermark() -> None:
    log = log_of(4)
    log.high_watermark = Offset(4)
    assert read_offsets(log, 0) == [0, 2]
    assert read_offsets(log, 4) == []
    assert read_offsets(log, 6) == []
    assert read_offsets(log, 0, limit=ReadLimit.LOG_END) == [0, 2, 4, 6]


def test_the_high_watermark_may_lie_in_an_earlier_segment() -> None:
    log = log_of(7, per_segment=3)
    log.high_watermark = Offset(4)
    assert read_offsets(log, 0) == [0, 2]
    assert read_offsets(log, 8) == []
    log.high_watermark = Offset(6)
    assert read_offsets(log, 0) == [0, 2, 4]


def test_a_new_high_watermark_is_seen_at_once() -> None:
    log = log_of(4)
    for high_watermark in (2, 4, 6, 4):
        log.high_watermark = Offset(high_watermark)
        assert read_offsets(log, 0) == list(range(0, high_watermark, 2))


def test_a_committed_reader_sees_no_further_than_the_last_stable_offset() -> None:
    log = log_of(1)
    append_transactional(log, 9, 0, count=2)
    append(log, batch(2))
    assert read_offsets(log, 0, limit=ReadLimit.LAST_STABLE) == [0]
    assert read_offsets(log, 0) == [0, 2, 4]
    end_transaction(log, 9, is_commit=True)
    assert read_offsets(log, 0, limit=ReadLimit.LAST_STABLE) == [0, 2, 4, 6]


def test_a_committed_reader_is_told_what_was_aborted() -> None:
    log = log_of(1)
    append_transactional(log, 9, 0)
    append_transactional(log, 8, 0)
    end_transaction(log, 9, is_commit=False)
    end_transaction(log, 8, is_commit=True)
    append_transactional(log, 9, 1)
    end_transaction(log, 9, is_commit=False)
    result = log.read(Offset(0), 1 << 20, ReadLimit.LAST_STABLE)
    assert result.aborted == ((9, 2), (9, 6))
    assert log.read(Offset(5), 1 << 20, ReadLimit.LAST_STABLE).aborted == ((9, 6),)


def test_other_readers_are_told_nothing_of_transactions() -> None:
    log = log_of(1)
    append_transactional(log, 9, 0)
    end_transaction(log, 9, is_commit=False)
    assert log.read(Offset(0), 100).aborted is None
    assert log.read(Offset(0), 100, ReadLimit.LAST_STABLE).aborted == ((9, 2),)
    assert log.read(Offset(4), 100, ReadLimit.LAST_STABLE).aborted == ()


def test_a_marker_in_a_later_segment_is_found() -> None:
    log = log_of(0, per_segment=2)
    append_transactional(log, 9, 0, count=2)
    for _ in range(6):
        append(log, batch(2))
    end_transaction(log, 9, is_commit=False)
    append(log, batch(2))
    assert len(log.segments) > 3
    result = log.read(Offset(0), 1 << 20, ReadLimit.LAST_STABLE)
    assert result.aborted == ((9, 0),)
    assert result.file is log.segments[0].file


def test_what_was_aborted_after_the_bytes_that_are_read_is_not_told() -> None:
    log = log_of(0, interval_bytes=0)
    for sequence in range(20):
        append(log, batch(2))
        append_transactional(log, 9, sequence)
        end_transaction(log, 9, is_commit=False)
    result = log.read(Offset(0), 2 * BATCH_BYTES, ReadLimit.LAST_STABLE)
    assert result.aborted is not None
    assert 1 <= len(result.aborted) < 5


def test_a_segment_of_which_compaction_left_nothing_is_skipped() -> None:
    log = new_log()
    log.append_as_follower(batch(2))
    log.append_as_follower(batch(1, base_offset=10))
    log.update_high_watermark(Offset(11))
    assert read_offsets(log, 5) == [10]


def test_a_disk_that_cannot_be_read_takes_the_directory_offline() -> None:
    log = log_of(3)
    disk_of(log).fail("read", Reason.IO_ERROR)
    with pytest.raises(LogDirectoryOffline, match=r"00000000000000000000\.log"):
        log.read(Offset(0), 100)
    assert log.volume.error is not None


def test_a_read_tells_the_offsets_of_the_same_moment() -> None:
    log = log_of(3)
    log.increment_log_start_offset(Offset(1))
    append_transactional(log, 9, 0)
    result = log.read(Offset(2), 100)
    offsets = (
        result.log_start_offset,
        result.last_stable_offset,
        result.high_watermark,
        result.log_end_offset,
    )
    assert offsets == (1, 6, 7, 7)


def test_an_old_segment_is_read_to_its_end_whatever_the_high_watermark_above_it() -> None:
    log = log_of(9, per_segment=3)
    log.high_watermark = Offset(14)
    assert read_offsets(log, 2) == [2, 4]
    assert read_offsets(log, 6) == [6, 8, 10]
    assert read_offsets(log, 12) == [12]


def test_a_reader_at_the_end_goes_on_where_it_was() -> None:
    log = log_of(3)
    for end in range(6, 60, 2):
        assert read_offsets(log, end) == []
        append(log, batch(2))
        append(log, batch(2))
        assert read_offsets(log, end) == [end, end + 2]
        assert read_offsets(log, end + 1) == [end, end + 2]
        log.truncate_to(Offset(end + 2), 0)
        log.update_high_watermark(log.log_end_offset)


def test_what_is_known_of_the_end_survives_no_other_batch_there() -> None:
    log = log_of(3)
    assert read_offsets(log, 6) == []
    log.truncate_to(Offset(4), 0)
    append(log, batch(5))
    log.update_high_watermark(log.log_end_offset)
    assert read_offsets(log, 6) == [4]


def test_what_is_known_of_the_end_does_not_outlive_the_segment() -> None:
    log = log_of(3, per_segment=3)
    assert read_offsets(log, 6) == []
    append(log, batch(2))
    assert len(log.segments) == 2
    assert read_offsets(log, 6) == [6]


@pytest.mark.parametrize("per_segment", [None, 3])
def test_who_reads_batch_after_batch_needs_no_index(per_segment: int | None) -> None:
    log = log_of(30, per_segment=per_segment, interval_bytes=1 << 20)
    reads = disk_of(log).counters.reads
    for offset in range(0, 60, 2):
        assert log.read(Offset(offset), BATCH_BYTES).length == BATCH_BYTES
    # One for each batch, and at the start of a segment one more.
    assert disk_of(log).counters.reads - reads <= 30 + 2 * len(log.segments)


def test_what_is_known_of_batches_does_not_outlive_a_truncation() -> None:
    log = log_of(6)
    assert read_offsets(log, 4, BATCH_BYTES) == [4]
    assert read_offsets(log, 8, BATCH_BYTES) == [8]
    log.truncate_to(Offset(2), 0)
    for size in (3, 1, 7):
        append(log, batch(size))
    log.update_high_watermark(log.log_end_offset)
    assert read_offsets(log, 4, BATCH_BYTES) == [2]
    assert read_offsets(log, 5, 1) == [5]
    assert read_offsets(log, 6) == [6]
    assert read_offsets(log, 10) == [6]
