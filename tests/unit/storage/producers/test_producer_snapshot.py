"""Producer snapshots, against the bytes that Apache Kafka 4.3.1 wrote at a clean stop."""

import pytest
from crc32c import crc32c

from ottla.model.ids import NO_OFFSET, Offset, ProducerId
from ottla.storage.file_errors import CorruptFile
from ottla.storage.producers.producer_snapshot import (
    ProducerSnapshotEntry,
    decode_producer_snapshot,
    encode_producer_snapshot,
)

KAFKA_BYTES = bytes.fromhex(
    "0001c3e9e47600000002"
    "000000000000000d000affffffffffffffffffffffff00000000000001a1e072fc3b00000000ffffffffffffffff"
    "000000000000000e000000000001000000000000000b000000000000018bcfe568caffffffffffffffffffffffff"
)
AFTER_A_MARKER = ProducerSnapshotEntry(ProducerId(13), 10, -1, NO_OFFSET, 0, 1794766994491, 0, NO_OFFSET)
AFTER_DATA = ProducerSnapshotEntry(ProducerId(14), 0, 1, Offset(11), 0, 1700000000202, -1, NO_OFFSET)

OPEN_TRANSACTION = bytes.fromhex(
    "0001da09b59400000001000000000000000d0000000000040000000000000004000000040000018bcfe56808ffffffff0000000000000000"
)


def test_kafkas_bytes_are_read_and_written_back() -> None:
    entries = decode_producer_snapshot(KAFKA_BYTES)
    assert entries == [AFTER_A_MARKER, AFTER_DATA]
    assert encode_producer_snapshot(entries) == KAFKA_BYTES


def test_an_open_transaction_is_kept() -> None:
    (entry,) = decode_producer_snapshot(OPEN_TRANSACTION)
    assert entry.transaction_first_offset == 0
    assert (entry.last_sequence, entry.last_offset, entry.offset_delta) == (4, 4, 4)


def test_no_producers_is_a_snapshot_too() -> None:
    assert decode_producer_snapshot(encode_producer_snapshot([])) == []


def test_every_damaged_byte_is_noticed() -> None:
    for position in range(len(KAFKA_BYTES)):
        damaged = bytearray(KAFKA_BYTES)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptFile):
            decode_producer_snapshot(bytes(damaged))


def test_every_cut_is_noticed() -> None:
    for length in range(len(KAFKA_BYTES)):
        with pytest.raises(CorruptFile):
            decode_producer_snapshot(KAFKA_BYTES[:length])


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_a_count_that_the_bytes_do_not_bear_out_is_refused(count: int) -> None:
    body = count.to_bytes(4, signed=True) + KAFKA_BYTES[10:]
    with pytest.raises(CorruptFile, match=f"{count} entries announced"):
        decode_producer_snapshot(b"\x00\x01" + crc32c(body).to_bytes(4) + body)
