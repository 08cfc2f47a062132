"""The offset index, against the bytes that Apache Kafka 4.3.1 wrote for a segment."""

import pytest

from ottla.model.ids import FilePosition, Offset
from ottla.storage.file_errors import CorruptFile
from ottla.storage.indexes.offset_index import OffsetIndex, OffsetPosition

# The file of the segment at 15 of a topic with 512-byte index intervals, and what Kafka's dump says of it.
KAFKA_BYTES = bytes.fromhex("000000030000023e000000060000047a00000009000006b90000000c000008f8")
KAFKA_ENTRIES = [(18, 574), (21, 1146), (24, 1721), (27, 2296)]
BASE = Offset(15)


def kafka_index() -> OffsetIndex:
    return OffsetIndex(BASE, KAFKA_BYTES)


def test_entries_are_those_of_kafkas_dump() -> None:
    assert [tuple(entry) for entry in kafka_index()] == KAFKA_ENTRIES


def test_appending_the_same_entries_gives_the_same_bytes() -> None:
    index = OffsetIndex(BASE)
    for offset, position in KAFKA_ENTRIES:
        index.append(Offset(offset), FilePosition(position))
    assert index.entries == KAFKA_BYTES


@pytest.mark.parametrize(
    ("target", "found"),
    [(15, (15, 0)), (17, (15, 0)), (18, (18, 574)), (20, (18, 574)), (24, (24, 1721)), (99, (27, 2296))],
)
def test_scan_starts_at_the_last_entry_at_or_before_the_target(target: int, found: tuple[int, int]) -> None:
    assert kafka_index().find_scan_position(Offset(target)) == found


def test_an_empty_index_points_at_the_start_of_the_segment() -> None:
    index = OffsetIndex(BASE)
    assert index.find_scan_position(Offset(17)) == OffsetPosition(BASE, FilePosition(0))
    assert index.last == OffsetPosition(BASE, FilePosition(0))


@pytest.mark.parametrize(("offset", "kept"), [(15, 0), (18, 0), (19, 1), (24, 2), (28, 4)])
def test_truncating_forgets_batches_that_reach_the_offset(offset: int, kept: int) -> None:
    index = kafka_index()
    index.truncate_to(Offset(offset))
    assert [tuple(entry) for entry in index] == KAFKA_ENTRIES[:kept]


def test_a_sound_index_passes_the_check() -> None:
    kafka_index().check(log_bytes=2297)
    OffsetIndex(BASE).check(log_bytes=0)


@pytest.mark.parametrize(
    "content",
    [
        KAFKA_BYTES[:-1],
        KAFKA_BYTES + bytes(8),
        bytes(8),
        KAFKA_BYTES + bytes.fromhex("ffffffff00000900"),
    ],
    ids=["torn", "padded with zeros", "nothing but padding", "negative offset"],
)
def test_an_index_that_cannot_be_relied_on_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFile, match="offset index"):
        OffsetIndex(BASE, content).check(log_bytes=100_000)


def test_an_entry_beyond_the_log_file_is_refused() -> None:
    with pytest.raises(CorruptFile, match="the log file has 2296 bytes"):
        kafka_index().check(log_bytes=2296)
