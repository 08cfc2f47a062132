"""Scanning records for their keys gives what decoding them gives, and never trusts a length."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records.codec import Record, encode_records
from ottla.records.errors import InvalidRecord
from ottla.storage.compaction.keys import KEY_BYTES_MAX, digest_key, scan_keys, scan_starts

field = st.one_of(st.none(), st.binary(max_size=40), st.binary(min_size=150, max_size=300))
records = st.lists(
    st.builds(
        Record,
        offset=st.integers(0, 2**31 - 1),
        timestamp=st.integers(-(2**40), 2**40),
        key=field,
        value=field,
        headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2).map(
            tuple
        ),
    ),
    max_size=20,
)


@given(records, st.binary(max_size=20), st.binary(max_size=20))
def test_a_scan_finds_what_decoding_finds(written: list[Record], before: bytes, after: bytes) -> None:
    area = encode_records(written, 0, 0)
    data = before + area + after
    scanned = scan_keys(data, len(before), len(before) + len(area), len(written))
    assert scanned.offset_deltas == [record.offset for record in written]
    assert scanned.keys == [None if record.key is None else digest_key(record.key) for record in written]
    assert scanned.has_null_key == any(record.key is None for record in written)
    assert scanned.tombstones == [at for at, record in enumerate(written) if record.value is None]
    assert len(scanned.starts) == len(written) + 1
    for at, record in enumerate(written):
        alone = data[scanned.starts[at] : scanned.starts[at + 1]]
        assert alone == encode_records([record], 0, 0)
    assert scan_starts(data, len(before), len(before) + len(area), len(written)) == scanned.starts


@settings(max_examples=300)
@given(st.binary(max_size=60), st.integers(-1, 5))
def test_any_bytes_are_scanned_or_refused(data: bytes, count: int) -> None:
    try:
        scanned = scan_keys(data, 0, len(data), count)
    except InvalidRecord:
        return
    assert len(scanned.keys) == count
    assert scanned.starts[-1] == len(data)


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_record_that_reaches_beyond_its_batch_is_refused(cut: int) -> None:
    area = encode_records([Record(0, 0, b"k" * 10, b"v" * 20)], 0, 0)
    with pytest.raises(InvalidRecord):
        scan_keys(area + bytes(100), 0, len(area) - cut, 1)


def test_a_long_key_is_never_taken_for_a_short_one() -> None:
    assert digest_key(b"k" * KEY_BYTES_MAX) == b"k" * KEY_BYTES_MAX
    assert len(digest_key(b"k" * (KEY_BYTES_MAX + 1))) > KEY_BYTES_MAX
    assert digest_key(b"k" * 40) != digest_key(b"k" * 41)
