"""Finding records by time."""

import pytest
from tests.unit.storage.logs import NOW_MS, append, append_transactional, batch, disk_of, new_log, open_log

from ottla.model.ids import Offset
from ottla.records.attributes import Codec, TimestampType
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.read import ReadLimit

SIZE = len(batch(2))


def log_of(count: int, config: LogConfig | None = None) -> Log:
    """Make a log of batches of two records each: 10 ms from record to record."""
    log = new_log(config or LogConfig(segment_bytes=7 * SIZE, index_interval_bytes=2 * SIZE))
    for number in range(count):
        append(log, batch(timestamps=[NOW_MS + 20 * number, NOW_MS + 20 * number + 10]), leader_epoch=5)
    return log


def found(log: Log, timestamp_ms: int, limit: ReadLimit = ReadLimit.HIGH_WATERMARK) -> int | None:
    result = log.offset_for_timestamp(timestamp_ms, limit)
    return None if result is None else result.offset


@pytest.mark.parametrize("is_reopened", [False, True])
def test_every_timestamp_finds_its_first_record(is_reopened: bool) -> None:
    log = log_of(50)
    if is_reopened:
        log.close()
        log = open_log(disk_of(log), log.config, is_clean=True)
        log.update_high_watermark(log.log_end_offset)
    for offset in range(100):
        assert found(log, NOW_MS + 10 * offset) == offset
        assert found(log, NOW_MS + 10 * offset - 9) == offset


def test_the_answer_has_the_records_timestamp_and_epoch() -> None:
    assert log_of(3).offset_for_timestamp(NOW_MS + 11) == (NOW_MS + 20, 2, 5)


def test_a_time_after_all_records_finds_none() -> None:
    assert found(log_of(3), NOW_MS + 51) is None
    assert found(new_log(), 0) is None


def test_records_out_of_order_are_found_by_offset_first() -> None:
    log = new_log()
    for timestamp in (30, 10, 40, 20):
        append(log, batch(timestamps=[NOW_MS + timestamp]))
    assert found(log, NOW_MS + 5) == 0
    assert found(log, NOW_MS + 31) == 2


def test_compressed_records_are_looked_into() -> None:
    log = new_log()
    append(log, batch(timestamps=[NOW_MS, NOW_MS + 10, NOW_MS + 20], codec=Codec.ZSTD))
    assert found(log, NOW_MS + 15) == 2


def test_with_append_time_the_first_record_of_the_batch_is_found() -> None:
    log = new_log(LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    append(log, batch(3))
    append(log, batch(3), now_ms=NOW_MS + 50)
    assert found(log, NOW_MS + 1) == 3


def test_deleted_records_are_not_found() -> None:
    log = log_of(10)
    log.increment_log_start_offset(Offset(5))
    assert found(log, NOW_MS) == 5


def test_what_a_reader_may_not_see_is_not_found() -> None:
    log = new_log(LogConfig(verifies_transactions=False))
    append(log)
    append_transactional(log, 9, 0)
    append(log, batch(timestamps=[NOW_MS + 10]))
    assert found(log, NOW_MS + 5) == 2
    assert found(log, NOW_MS + 5, ReadLimit.LAST_STABLE) is None
    log.high_watermark = Offset(2)
    assert found(log, NOW_MS + 5) is None
    assert found(log, NOW_MS + 5, ReadLimit.LOG_END) == 2


def test_the_largest_timestamp_is_found_with_its_first_record() -> None:
    log = log_of(20)
    append(log, batch(timestamps=[NOW_MS + 5, NOW_MS + 9000, NOW_MS + 9000, NOW_MS]))
    append(log, batch(timestamps=[NOW_MS + 9000]))
    assert log.max_timestamp_offset() == (NOW_MS + 9000, 41, 5)


def test_a_log_without_timestamps_has_no_largest_one() -> None:
    log = new_log()
    assert log.max_timestamp_offset() is None
    append(log, batch(timestamps=[-1]))
    assert log.max_timestamp_offset() is None
