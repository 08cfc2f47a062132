"""Decoding all records at once gives what decoding one after the other gives, and refuses what it refuses."""

from collections.abc import Callable, Iterable

from hypothesis import given
from hypothesis import strategies as st
from tests.property.record_strategies import INT64, damaged, records

from ottla.records.batch import HEADER_BYTES
from ottla.records.bulk import CheckedRecords, check_numbered, decode_all
from ottla.records.codec import Record, RecordTuple, encode_records, iter_record_tuples, scan_records
from ottla.records.errors import InvalidRecord
from ottla.storage.appending.record_checks import is_one_plain_record

Decode = Callable[[bytes, int, int, int, int | None], Iterable[RecordTuple]]


def outcome(decode: Decode, area: bytes, count: int, timestamp: int, append_time: int | None) -> object:
    """Return the records, or what is said of them."""
    try:
        return [tuple(record) for record in decode(area, count, 5, timestamp, append_time)]
    except InvalidRecord as error:
        return str(error)


@given(records(base_offset=5), INT64, st.none() | INT64)
def test_sound_records_are_the_same(made: list[Record], timestamp: int, append_time: int | None) -> None:
    area = encode_records(made, 5, timestamp)
    expected = [
        tuple(record if append_time is None else record._replace(timestamp=append_time)) for record in made
    ]
    assert outcome(decode_all, area, len(made), timestamp, append_time) == expected


@given(st.data(), records(base_offset=5), st.integers(-1, 3))
def test_damaged_records_are_refused_alike(data: st.DataObject, made: list[Record], more: int) -> None:
    timestamp = made[0].timestamp
    area = data.draw(damaged(encode_records(made, 5, timestamp)))
    count = len(made) + more
    assert outcome(decode_all, area, count, timestamp, None) == outcome(
        iter_record_tuples, area, count, timestamp, None
    )


@given(st.binary(max_size=60), st.integers(0, 4))
def test_any_bytes_are_judged_alike(area: bytes, count: int) -> None:
    assert outcome(decode_all, area, count, 0, None) == outcome(iter_record_tuples, area, count, 0, None)


def scanned(area: bytes, count: int) -> CheckedRecords | None:
    """Return what checking must find, by way of `scan_records`."""
    try:
        found = list(scan_records(area, count))
    except InvalidRecord:
        return None
    if [record[0] for record in found] != list(range(count)):
        return None
    deltas = [record[1] for record in found] or [0]
    return CheckedRecords(min(deltas), max(deltas), all(record[2] for record in found))


@given(records(), INT64)
def test_sound_records_in_order_are_checked_to_their_end(made: list[Record], timestamp: int) -> None:
    in_order = [record._replace(offset=number) for number, record in enumerate(made)]
    area = encode_records(in_order, 0, timestamp)
    checked = check_numbered(area, len(area), len(made), len(made))
    assert checked is not None
    assert checked == scanned(area, len(made))
    # Of a long area not every beginning: that takes minutes, and shows nothing more.
    for known in range(0, len(area), 1 + len(area) // 200):
        assert check_numbered(area[:known], len(area), len(made) + 1, len(made)) is not None


@given(st.data(), records(), st.integers(-1, 3))
def test_damaged_records_are_found_alike(data: st.DataObject, made: list[Record], more: int) -> None:
    in_order = [record._replace(offset=number) for number, record in enumerate(made)]
    area = data.draw(damaged(encode_records(in_order, 0, made[0].timestamp)))
    count = max(len(made) + more, 1)
    assert check_numbered(area, len(area), count, count) == scanned(area, count)


@given(st.binary(max_size=60), st.integers(1, 4))
def test_any_bytes_are_checked_alike(area: bytes, count: int) -> None:
    assert check_numbered(area, len(area), count, count) == scanned(area, count)


@given(records(), st.integers(0, 3), st.integers(-2, 2))
def test_lengths_alone_show_a_wrong_count(made: list[Record], checked: int, more: int) -> None:
    in_order = [record._replace(offset=number) for number, record in enumerate(made)]
    area = encode_records(in_order, 0, made[0].timestamp)
    count = max(len(made) + more, 1)
    found = check_numbered(area, len(area), count, checked, measured_max=count)
    assert (found is not None) == (count == len(made))


@given(st.data(), records(), st.integers(0, 3))
def test_by_lengths_no_sound_records_are_refused(
    data: st.DataObject, made: list[Record], checked: int
) -> None:
    in_order = [record._replace(offset=number) for number, record in enumerate(made)]
    area = data.draw(damaged(encode_records(in_order, 0, made[0].timestamp)))
    if scanned(area, len(made)) is not None:
        assert check_numbered(area, len(area), len(made), checked, len(made)) is not None


def is_plain(area: bytes) -> bool:
    return is_one_plain_record(memoryview(bytes(HEADER_BYTES) + area))


@given(
    st.none() | st.binary(max_size=63),
    st.none() | st.binary(max_size=300) | st.sampled_from((8_190, 20_000)).map(bytes),
)
def test_one_plain_record_is_known_as_such(key: bytes | None, value: bytes | None) -> None:
    assert is_plain(encode_records([Record(0, 7, key, value)], 0, 7))


@given(st.data(), records())
def test_no_damaged_record_is_called_plain(data: st.DataObject, made: list[Record]) -> None:
    area = data.draw(damaged(encode_records([made[0]._replace(offset=0)], 0, made[0].timestamp)))
    assert check_numbered(area, len(area), 1, 1) is not None or not is_plain(area)


@given(st.binary(max_size=20), st.integers(0, 3))
def test_no_other_bytes_are_called_plain(area: bytes, zeros: int) -> None:
    # With a length that fits, so that more than the length is looked at.
    area += bytes(zeros)
    framed = bytes((2 * len(area),)) + area
    assert check_numbered(framed, len(framed), 1, 1) is not None or not is_plain(framed)


def test_a_length_of_four_bytes_is_not_taken_for_three() -> None:
    # Read as three bytes without its mark to go on, the length would fit.
    size = (0x80 << 14 | 0x00 << 7 | 0x00) >> 1
    area = bytes((0x80, 0x80, 0x80)) + bytes(size)
    assert not is_plain(area)
