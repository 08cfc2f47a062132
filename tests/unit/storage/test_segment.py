"""A segment's indexes, in memory and in files, and what is read of it on demand."""

import pytest
from tests.unit.storage.logs import NOW_MS, append, batch, disk_of, new_log, open_log

from ottla.model.ids import Offset, ProducerId
from ottla.storage.config import LogConfig
from ottla.storage.indexes.index_cache import IndexCache, Indexes
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.indexes.time_index import TimeIndex
from ottla.storage.indexes.transaction_index import AbortedTransaction
from ottla.storage.log import Log
from ottla.storage.names import FileKind
from ottla.storage.segment import Segment

SIZE = len(batch())
DENSE = LogConfig(index_interval_bytes=0)


def log_of(count: int) -> Log:
    log = new_log(DENSE)
    for number in range(count):
        append(log, batch(timestamps=[NOW_MS + number]))
    return log


def positions_of(segment: Segment, count: int) -> list[int]:
    found = [segment.find_batch(Offset(offset)) for offset in range(count)]
    return [-1 if place is None else place.position for place in found]


@pytest.mark.parametrize("count", [1, 2, 127, 129, 130, 300])
def test_look_ups_are_right_whatever_part_of_the_index_is_in_the_file(count: int) -> None:
    log = log_of(count)
    assert positions_of(log.active_segment, count) == [offset * SIZE for offset in range(count)]
    for offset in range(count):
        entry = log.active_segment.find_time_entry(NOW_MS + offset)
        assert entry.offset == (offset if offset else 0)


def test_entries_go_to_the_files_in_portions() -> None:
    log = log_of(300)
    segment = log.active_segment
    in_file = disk_of(log).open(segment.path_of(FileKind.OFFSET_INDEX)).size()
    assert in_file == 2 * 128 * 8
    assert segment.offset_bytes == 299 * 8
    assert segment.has_unsaved_indexes


def test_an_index_that_is_in_memory_grows_with_its_file() -> None:
    log = log_of(200)
    assert positions_of(log.active_segment, 1) == [0]
    assert log.volume.index_cache.find(log.active_segment) is not None
    for number in range(200, 500):
        append(log, batch(timestamps=[NOW_MS + number]))
    assert positions_of(log.active_segment, 500) == [offset * SIZE for offset in range(500)]


def test_indexes_that_were_not_used_lately_are_forgotten() -> None:
    cache = IndexCache(100)
    segments = [object() for _ in range(4)]
    for segment in segments[:3]:
        cache.put(segment, Indexes(OffsetIndex(Offset(0), b"x" * 32), TimeIndex(Offset(0))))
    cache.find(segments[0])
    cache.put(segments[3], Indexes(OffsetIndex(Offset(0), b"x" * 32), TimeIndex(Offset(0))))
    assert [cache.find(segment) is not None for segment in segments] == [True, False, True, True]
    assert cache.size_bytes == 96


def test_one_index_larger_than_the_bound_is_kept_while_it_is_used() -> None:
    cache = IndexCache(10)
    first, second = object(), object()
    cache.put(first, Indexes(OffsetIndex(Offset(0), b"x" * 32), TimeIndex(Offset(0))))
    assert cache.find(first) is not None
    cache.put(second, Indexes(OffsetIndex(Offset(0), b"x" * 40), TimeIndex(Offset(0))))
    assert cache.find(first) is None
    assert cache.size_bytes == 40
    cache.forget(second)
    assert cache.size_bytes == 0


def test_a_loaded_segment_reads_its_timestamps_when_asked() -> None:
    log = new_log(LogConfig(segment_bytes=3 * SIZE))
    for timestamp in (5, 9, 7, 8):
        append(log, batch(timestamps=[NOW_MS + timestamp]))
    log.close()
    disk = disk_of(log)
    again = open_log(disk, LogConfig(segment_bytes=3 * SIZE), is_clean=True)
    reads = disk.counters.reads
    old = again.segments[0]
    assert (old.largest, old.first_timestamp) == ((NOW_MS + 9, 1), NOW_MS + 5)
    assert disk.counters.reads > reads
    reads = disk.counters.reads
    assert (old.largest, old.first_timestamp) == ((NOW_MS + 9, 1), NOW_MS + 5)
    assert disk.counters.reads == reads


def test_the_first_index_entry_comes_after_the_interval() -> None:
    log = new_log(LogConfig(index_interval_bytes=2 * SIZE))
    for _ in range(8):
        append(log)
    log.active_segment.save_indexes()
    # More than two batches must lie between entries, and the first batch has none.
    assert [entry.offset for entry in log.active_segment.saved_indexes().offsets] == [3, 6]


@pytest.mark.parametrize("damage", ["zeros", "shifted", "rotten", "of another segment"])
def test_an_index_that_turns_out_to_be_damaged_is_made_anew(damage: str) -> None:
    log = new_log(LogConfig(segment_bytes=200 * SIZE, index_interval_bytes=0))
    for number in range(250):
        append(log, batch(timestamps=[NOW_MS + number]))
    log.close()
    disk = disk_of(log)
    old = open_log(disk, log.config, is_clean=True).segments[0]
    path = old.path_of(FileKind.OFFSET_INDEX)
    content = bytearray(disk.read_file(path))
    match damage:
        case "zeros":
            content[:-8] = bytes(len(content) - 8)
        case "shifted":
            content = content[1:] + content[:1]
        case "rotten":
            for position in range(7, len(content), 80):
                content[position] ^= 0x10
        case _:
            content = bytearray(b"".join([(3 * n).to_bytes(4) + (5 * n).to_bytes(4) for n in range(1, 200)]))
    disk.open(path).write(0, [content])
    again = open_log(disk, log.config, is_clean=True)
    assert positions_of(again.segments[0], 200) == [offset * SIZE for offset in range(200)]
    again.update_high_watermark(again.log_end_offset)
    for offset in range(250):
        found = again.offset_for_timestamp(NOW_MS + offset)
        assert found is not None
        assert found.offset == offset


def test_an_abort_costs_the_same_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = 0
    encode = AbortedTransaction.encode

    def counted(transaction: AbortedTransaction) -> bytes:
        nonlocal encoded
        encoded += 1
        return encode(transaction)

    monkeypatch.setattr(AbortedTransaction, "encode", counted)
    segment = log_of(1).active_segment
    wanted = [
        AbortedTransaction(ProducerId(7), Offset(number), Offset(number), Offset(number))
        for number in range(100)
    ]
    for transaction in wanted:
        segment.add_aborted(transaction)
    assert encoded == len(wanted)
    first = segment.aborted()
    segment.add_aborted(wanted[-1]._replace(first_offset=Offset(100), last_offset=Offset(100)))
    assert segment.aborted() is first, "copying it would cost as much as encoding it"
    segment.become_inactive()
    assert segment.aborted() == first
