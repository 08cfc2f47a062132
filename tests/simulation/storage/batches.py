"""Record batches for the storage tests, written and read here by hand.

The tests judge the storage engine, so they do not use its way of putting bytes together. Only uncompressed
batches of format 2 are made: to the log a batch is opaque, and a simulation has to be quick.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = 61
CRC_FROM: Final = 21
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
SEQUENCES: Final = 1 << 31

_MARKER_KEY: Final = Struct(">hh")
_MARKER_VALUE: Final = Struct(">hi")


class Record(NamedTuple):
    """A record of a batch to be made."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int


class Batch(NamedTuple):
    """A batch that was read, with everything the models look at."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    # The superclass's `count` method is of no use to a batch; Kafka's name for the field is.
    count: int  # type: ignore[assignment]
    data: bytes

    @property
    def last_sequence(self) -> int:
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset - self.base_offset) % SEQUENCES

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_abort(self) -> bool:
        """Say whether this marker, for it must be one, aborts."""
        key = read_records(self)[0].key
        assert key is not None
        return bool(_MARKER_KEY.unpack(key)[1] == 0)

    @property
    def coordinator_epoch(self) -> int:
        value = read_records(self)[0].value
        assert value is not None
        return int(_MARKER_VALUE.unpack(value)[1])


class ReadRecord(NamedTuple):
    """A record that was read."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def make_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    attributes: int = 0,
) -> bytearray:
    """Return the bytes of a batch as a producer sends it, or, with an offset, as a leader does."""
    base_timestamp = records[0].timestamp_ms
    body = b"".join([_encode_record(index, record, base_timestamp) for index, record in enumerate(records)])
    batch = bytearray(HEADER_BYTES)
    batch += body
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - 12,
        leader_epoch,
        2,
        0,
        attributes,
        len(records) - 1,
        base_timestamp,
        max(record.timestamp_ms for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    batch[17:21] = crc32c(memoryview(batch)[CRC_FROM:]).to_bytes(4)
    return batch


def make_marker(
    *,
    is_commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return the bytes of the marker that ends a transaction."""
    record = Record(_MARKER_KEY.pack(0, is_commit), _MARKER_VALUE.pack(0, coordinator_epoch), timestamp_ms)
    return make_batch(
        [record],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=TRANSACTIONAL | CONTROL,
    )


def read_batches(data: bytes) -> list[Batch]:
    """Take bytes apart into whole batches. Anything torn or damaged fails the test."""
    batches: list[Batch] = []
    position = 0
    while position < len(data):
        assert len(data) - position >= HEADER_BYTES, f"torn header at {position} of {len(data)}"
        fields = HEADER.unpack_from(data, position)
        end = position + 12 + fields[1]
        assert fields[1] >= HEADER_BYTES - 12, f"impossible length at {position}"
        assert end <= len(data), f"torn batch at {position}"
        whole = data[position:end]
        assert fields[3] == 2, f"magic {fields[3]} at {position}"
        assert crc32c(memoryview(whole)[CRC_FROM:]) == fields[4], f"damaged batch at {position}"
        base_offset, _, leader_epoch, _, _, attributes, delta = fields[:7]
        front = (base_offset, base_offset + delta, leader_epoch, attributes)
        batches.append(Batch._make((*front, *fields[7:], whole)))
        position = end
    return batches


def read_records(batch: Batch) -> list[ReadRecord]:
    """Return the records of a batch, markers included."""
    records: list[ReadRecord] = []
    at = HEADER_BYTES
    for _ in range(batch.count):
        length, at = _read_varint(batch.data, at)
        end = at + length
        timestamp_delta, at = _read_varint(batch.data, at + 1)
        offset_delta, at = _read_varint(batch.data, at)
        key, at = _read_bytes(batch.data, at)
        value, at = _read_bytes(batch.data, at)
        records.append(
            ReadRecord(batch.base_offset + offset_delta, batch.base_timestamp + timestamp_delta, key, value)
        )
        at = end
    return records


def _encode_record(index: int, record: Record, base_timestamp: int) -> bytes:
    body = b"".join(
        (
            b"\0",
            _varint(record.timestamp_ms - base_timestamp),
            _varint(index),
            _nullable(record.key),
            _nullable(record.value),
            b"\0",
        )
    )
    return _varint(len(body)) + body


def _nullable(data: bytes | None) -> bytes:
    return b"\x01" if data is None else _varint(len(data)) + data


def _varint(number: int) -> bytes:
    zigzag = number << 1 if number >= 0 else ((-number) << 1) - 1
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    zigzag = shift = 0
    while True:
        byte = data[at]
        at += 1
        zigzag |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (zigzag >> 1) ^ -(zigzag & 1), at
        shift += 7


def _read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _read_varint(data, at)
    return (None, at) if length < 0 else (data[at : at + length], at + length)
