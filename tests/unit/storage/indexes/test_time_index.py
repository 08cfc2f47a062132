"""The time index, against the bytes that Apache Kafka 4.3.1 wrote for a segment."""

import pytest

from ottla.model.ids import NO_TIMESTAMP, Offset
from ottla.storage.file_errors import CorruptFile
from ottla.storage.indexes.time_index import TimeIndex, TimestampOffset

KAFKA_BYTES = bytes.fromhex("0000018bd02cd140000000030000018bd02dbba000000004")
KAFKA_ENTRIES = [(1700004680000, 78), (1700004740000, 79)]
BASE = Offset(75)


def kafka_index() -> TimeIndex:
    return TimeIndex(BASE, KAFKA_BYTES)


def test_entries_are_those_of_kafkas_dump() -> None:
    assert [tuple(entry) for entry in kafka_index()] == KAFKA_ENTRIES


def test_appending_the_same_entries_gives_the_same_bytes() -> None:
    index = TimeIndex(BASE)
    for timestamp_ms, offset in KAFKA_ENTRIES:
        assert index.maybe_append(timestamp_ms, Offset(offset))
    assert index.entries == KAFKA_BYTES


def test_a_timestamp_that_is_not_later_adds_nothing() -> None:
    index = kafka_index()
    assert not index.maybe_append(1700004740000, Offset(80))
    assert not index.maybe_append(5, Offset(81))
    assert index.entries == KAFKA_BYTES


def test_no_timestamp_adds_nothing() -> None:
    index = TimeIndex(BASE)
    assert not index.maybe_append(NO_TIMESTAMP, Offset(76))
    assert len(index) == 0


@pytest.mark.parametrize(
    ("target_ms", "found"),
    [
        (0, (NO_TIMESTAMP, 75)),
        (1700004679999, (NO_TIMESTAMP, 75)),
        (1700004680000, (1700004680000, 78)),
        (1700004739999, (1700004680000, 78)),
        (1800000000000, (1700004740000, 79)),
    ],
)
def test_looking_starts_at_the_last_entry_at_or_before_the_time(
    target_ms: int, found: tuple[int, int]
) -> None:
    assert kafka_index().find(target_ms) == found


@pytest.mark.parametrize(("offset", "kept"), [(78, 0), (79, 1), (80, 2)])
def test_truncating_forgets_batches_that_reach_the_offset(offset: int, kept: int) -> None:
    index = kafka_index()
    index.truncate_to(Offset(offset))
    assert [tuple(entry) for entry in index] == KAFKA_ENTRIES[:kept]


def test_a_sound_index_passes_the_check() -> None:
    kafka_index().check()
    TimeIndex(BASE).check()
    assert kafka_index().last == TimestampOffset(1700004740000, Offset(79))


@pytest.mark.parametrize(
    "content", [KAFKA_BYTES[:-5], KAFKA_BYTES + bytes(12), bytes(24)], ids=["torn", "padded", "only padding"]
)
def test_an_index_that_cannot_be_relied_on_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFile, match="time index"):
        TimeIndex(BASE, content).check()
