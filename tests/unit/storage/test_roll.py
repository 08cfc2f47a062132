"""When a segment is full, and what rolling leaves behind."""

from tests.unit.storage import logs
from tests.unit.storage.logs import NOW_MS, append, batch, disk_of, files_of, new_disk, new_log

from ottla.model.ids import Offset
from ottla.storage.config import LogConfig
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.producers.producer_snapshot import decode_producer_snapshot
from ottla.storage.volume import Volume

SIZE = len(batch())


def bases_of(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_segment_is_filled_to_the_last_byte() -> None:
    log = new_log(LogConfig(segment_bytes=2 * SIZE))
    for _ in range(5):
        append(log)
    assert bases_of(log) == [0, 2, 4]


def test_one_byte_too_many_starts_a_segment() -> None:
    log = new_log(LogConfig(segment_bytes=2 * SIZE - 1))
    for _ in range(3):
        append(log)
    assert bases_of(log) == [0, 1, 2]


def test_age_is_counted_in_the_time_of_the_records() -> None:
    log = new_log(LogConfig(segment_ms=1000))
    append(log, batch(timestamps=[NOW_MS - 5000]))
    append(log, batch(timestamps=[NOW_MS - 4000]), now_ms=NOW_MS + 100_000)
    assert bases_of(log) == [0]
    append(log, batch(timestamps=[NOW_MS - 3999]))
    assert bases_of(log) == [0, 2]


def test_the_first_batch_counts_however_late_others_are() -> None:
    log = new_log(LogConfig(segment_ms=1000))
    append(log, batch(timestamps=[NOW_MS - 1000]))
    append(log, batch(timestamps=[NOW_MS - 5000]))
    append(log, batch(timestamps=[NOW_MS]))
    assert bases_of(log) == [0]
    append(log, batch(timestamps=[NOW_MS + 1]))
    assert bases_of(log) == [0, 3]


def test_without_timestamps_age_is_counted_by_the_clock() -> None:
    log = new_log(LogConfig(segment_ms=1000))
    append(log, batch(timestamps=[-1]))
    append(log, batch(timestamps=[-1]), now_ms=NOW_MS + 1000)
    assert bases_of(log) == [0]
    append(log, batch(timestamps=[-1]), now_ms=NOW_MS + 1001)
    assert bases_of(log) == [0, 2]


def test_jitter_rolls_a_segment_earlier() -> None:
    disk = new_disk()
    volume = Volume(disk, logs.ROOT, pick_jitter_ms=lambda bound_ms: bound_ms - 1)
    config = LogConfig(segment_ms=1000, segment_jitter_ms=301)
    log = load_log(volume, LoadRequest(logs.PATH, logs.PARTITION, config, now_ms=NOW_MS))
    append(log, batch(timestamps=[NOW_MS]))
    append(log, batch(timestamps=[NOW_MS + 700]))
    append(log, batch(timestamps=[NOW_MS + 701]))
    assert bases_of(log) == [0, 2]


def test_offsets_too_far_from_the_base_start_a_segment() -> None:
    log = new_log()
    log.append_as_follower(batch())
    log.append_as_follower(batch(base_offset=2**31 - 1))
    log.append_as_follower(batch(base_offset=2**31))
    assert bases_of(log) == [0, 2**31]


def test_even_an_empty_segment_does_not_take_offsets_too_far_away() -> None:
    log = new_log()
    log.append_as_follower(batch(base_offset=2**33))
    assert bases_of(log) == [0, 2**33]
    assert log.read(Offset(2**33), 100).length == 0
    log.update_high_watermark(log.log_end_offset)
    assert log.read(Offset(2**33), 100).length == SIZE


def test_a_full_offset_index_starts_a_segment() -> None:
    log = new_log(LogConfig(index_interval_bytes=0, segment_index_bytes=24))
    for _ in range(8):
        append(log, batch(timestamps=[-1]))
    # No entry for the first batch, three for the next ones, and then it is full.
    assert bases_of(log) == [0, 4]


def test_a_full_time_index_starts_a_segment() -> None:
    log = new_log(LogConfig(index_interval_bytes=0, segment_index_bytes=36))
    for number in range(8):
        append(log, batch(timestamps=[NOW_MS + number]))
    assert bases_of(log) == [0, 3, 6]


def test_a_completed_segment_has_its_indexes_and_the_last_time_entry() -> None:
    log = new_log(LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=0))
    for number in range(4):
        append(log, batch(timestamps=[NOW_MS + number]))
    completed = log.segments[0]
    assert not completed.has_unsaved_indexes
    indexes = completed.saved_indexes()
    assert list(indexes.offsets) == [(1, SIZE), (2, 2 * SIZE)]
    assert list(indexes.times) == [(NOW_MS + 1, 1), (NOW_MS + 2, 2)]


def test_the_largest_timestamp_is_the_last_time_entry_even_without_others() -> None:
    log = new_log(LogConfig(segment_bytes=2 * SIZE))
    for timestamp in (NOW_MS + 9, NOW_MS + 3, NOW_MS + 4):
        append(log, batch(timestamps=[timestamp]))
    assert list(log.segments[0].saved_indexes().times) == [(NOW_MS + 9, 0)]


def test_rolling_takes_a_producer_snapshot_at_the_new_base() -> None:
    log = new_log(LogConfig(segment_bytes=2 * len(batch(producer_id=9, epoch=0, sequence=0))))
    for sequence in range(3):
        append(log, batch(producer_id=9, epoch=0, sequence=sequence))
    assert [name for name in files_of(log) if name.endswith(".snapshot")] == ["00000000000000000002.snapshot"]
    (entry,) = decode_producer_snapshot(disk_of(log).read_file(f"{log.path}/00000000000000000002.snapshot"))
    assert (entry.producer_id, entry.last_sequence, entry.last_offset) == (9, 1, 1)


def test_rolling_asks_for_a_flush() -> None:
    log = new_log(LogConfig(segment_bytes=2 * SIZE))
    assert [append(log).flush_is_due for _ in range(3)] == [False, False, True]
