"""Control records: transaction markers and the types of all others."""

import pytest

from ottla.records.batch import BatchView
from ottla.records.builder import build_batch, empty_batch
from ottla.records.codec import Record
from ottla.records.control import (
    ControlType,
    EndTxnMarker,
    build_end_txn_batch,
    decode_control_type,
    decode_end_txn_marker,
    encode_control_key,
    find_control_record,
)
from ottla.records.errors import CorruptBatch, InvalidRecord


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_is_read_as_it_was_written(is_commit: bool) -> None:
    marker = EndTxnMarker(is_commit, 31)
    data = build_end_txn_batch(
        marker, timestamp=5, producer_id=9, producer_epoch=2, base_offset=40, leader_epoch=6
    )
    batch = BatchView(memoryview(data))
    record = find_control_record(batch)

    assert record is not None
    assert decode_end_txn_marker(record) == marker
    assert (record.offset, record.timestamp) == (40, 5)
    assert (batch.is_control, batch.is_transactional, batch.base_sequence) == (True, True, -1)
    assert (batch.producer_id, batch.producer_epoch, batch.leader_epoch) == (9, 2, 6)
    assert batch.crc_is_valid()


def test_keys_of_all_types_are_read_as_they_were_written() -> None:
    for control_type in ControlType:
        if control_type is not ControlType.UNKNOWN:
            assert decode_control_type(encode_control_key(control_type)) is control_type


@pytest.mark.parametrize("key", ["00000007", "00007fff", "0000ffff", "0000fffe"])
def test_types_of_the_future_are_unknown(key: str) -> None:
    assert decode_control_type(bytes.fromhex(key)) is ControlType.UNKNOWN


def test_later_versions_are_read_by_what_is_known_of_them() -> None:
    key = bytes.fromhex("0001 0001 ffff")
    value = bytes.fromhex("0001 00000005 ffff")
    assert decode_end_txn_marker(Record(0, 0, key, value)) == EndTxnMarker(True, 5)


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"])
def test_a_key_that_is_none_raises(key: bytes | None) -> None:
    with pytest.raises(InvalidRecord, match="key of a control record"):
        decode_control_type(key)


@pytest.mark.parametrize("value", [None, b"", b"\x00\x00\x00\x00\x00", b"\xff\xff\x00\x00\x00\x05"])
def test_a_marker_without_a_proper_value_raises(value: bytes | None) -> None:
    with pytest.raises(InvalidRecord, match="transaction marker"):
        decode_end_txn_marker(Record(0, 0, encode_control_key(ControlType.ABORT), value))


def test_other_control_records_are_no_markers() -> None:
    record = Record(0, 0, encode_control_key(ControlType.LEADER_CHANGE), bytes(6))
    with pytest.raises(InvalidRecord, match="LEADER_CHANGE is no transaction marker"):
        decode_end_txn_marker(record)


def test_an_emptied_control_batch_has_no_record() -> None:
    data = build_end_txn_batch(EndTxnMarker(True, 0), timestamp=5, producer_id=9, producer_epoch=2)
    emptied = empty_batch(BatchView(memoryview(data)).header)
    assert find_control_record(BatchView(memoryview(emptied))) is None


def test_a_data_batch_has_no_control_record() -> None:
    with pytest.raises(CorruptBatch, match="not a control batch"):
        find_control_record(BatchView(memoryview(build_batch([Record(0, 0, b"k", b"v")]))))
