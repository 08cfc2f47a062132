"""The frame of a record batch: its 61-byte header, read and patched in place, without a copy.

    off size  field                    off size  field
     0   8    base offset               27  8    base timestamp (or delete horizon, bit 6)
     8   4    length after this field   35  8    max timestamp
    12   4    leader epoch              43  8    producer id
    16   1    magic = 2                 51  2    producer epoch
    17   4    CRC-32C of 21..end        53  4    base sequence
    21   2    attributes                57  4    number of records
    23   4    last offset delta         61       records, as one compressed block if there is a codec

Base offset and leader epoch lie outside the CRC, so a leader may set them without touching the records.
Attributes and max timestamp lie inside it: patching them recomputes it.

Messages of format 0 and 1 share the first 12 bytes and the place of the magic, so they are walked by the
same `iter_batches`, which gives them as `LegacyBatchView`. Opening the records is not done here.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from crc32c import crc32c

from ottla.records.attributes import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    TRANSACTIONAL_BIT,
    Codec,
    TimestampType,
    codec_of,
    timestamp_type_of,
)
from ottla.records.errors import CorruptBatch

MAGIC: Final = 2
LOG_OVERHEAD: Final = 12
HEADER_BYTES: Final = 61

LENGTH_OFFSET: Final = 8
LEADER_EPOCH_OFFSET: Final = 12
CRC_OFFSET: Final = 17
ATTRIBUTES_OFFSET: Final = 21
ATTRIBUTES_LOW_BYTE: Final = 22
"""Where all attribute bits are that have a meaning today."""
_MAGIC_OFFSET: Final = 16
_MAX_TIMESTAMP_OFFSET: Final = 35

# Smallest value of the length field, by magic: a message without key and value, a batch without records.
_LENGTH_MIN: Final = (14, 22, HEADER_BYTES - LOG_OVERHEAD)

HEADER: Final = Struct(">qiibIhiqqqhii")
_PREFIX: Final = Struct(">qi")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_INT64: Final = Struct(">q")
assert HEADER.size == HEADER_BYTES

SEQUENCE_MASK: Final = 0x7FFFFFFF


def last_sequence_of(base_sequence: int, last_offset_delta: int) -> int:
    """Return the sequence of the last record. After 2^31 - 1 comes 0; no sequence stays none (-1)."""
    if base_sequence < 0:
        return base_sequence
    return (base_sequence + last_offset_delta) & SEQUENCE_MASK


class BatchHeader(NamedTuple):
    """All header fields of a batch of format 2, unpacked at once."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    # The superclass's `count` method is useless to a header; Kafka's name for the field is.
    count: int  # type: ignore[assignment]

    @property
    def size_bytes(self) -> int:
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        return last_sequence_of(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        return timestamp_type_of(self.attributes)

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0


class BatchView:
    """A batch of format 2 where it lies. `view` starts at the batch and may reach beyond it.

    A view of the header alone (61 bytes read from a file) serves for everything but the records, the
    checksum and the patches that change it.
    """

    __slots__ = ("view",)

    def __init__(self, view: memoryview) -> None:
        if len(view) < HEADER_BYTES:
            raise CorruptBatch(0, f"{len(view)} bytes, a header has {HEADER_BYTES}")
        self.view = view

    @property
    def header(self) -> BatchHeader:
        """All fields in one go. Cheaper than three properties."""
        return BatchHeader._make(HEADER.unpack_from(self.view))

    @property
    def base_offset(self) -> int:
        offset: int = _INT64.unpack_from(self.view)[0]
        return offset

    @property
    def batch_length(self) -> int:
        length: int = _INT32.unpack_from(self.view, LENGTH_OFFSET)[0]
        return length

    @property
    def size_bytes(self) -> int:
        return LOG_OVERHEAD + self.batch_length

    @property
    def leader_epoch(self) -> int:
        epoch: int = _INT32.unpack_from(self.view, 12)[0]
        return epoch

    @property
    def magic(self) -> int:
        return self.view[_MAGIC_OFFSET]

    @property
    def crc(self) -> int:
        crc: int = _UINT32.unpack_from(self.view, CRC_OFFSET)[0]
        return crc

    @property
    def attributes(self) -> int:
        attributes: int = _INT16.unpack_from(self.view, ATTRIBUTES_OFFSET)[0]
        return attributes

    @property
    def last_offset_delta(self) -> int:
        delta: int = _INT32.unpack_from(self.view, 23)[0]
        return delta

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def base_timestamp(self) -> int:
        timestamp: int = _INT64.unpack_from(self.view, 27)[0]
        return timestamp

    @property
    def max_timestamp(self) -> int:
        timestamp: int = _INT64.unpack_from(self.view, _MAX_TIMESTAMP_OFFSET)[0]
        return timestamp

    @property
    def producer_id(self) -> int:
        producer_id: int = _INT64.unpack_from(self.view, 43)[0]
        return producer_id

    @property
    def producer_epoch(self) -> int:
        epoch: int = _INT16.unpack_from(self.view, 51)[0]
        return epoch

    @property
    def base_sequence(self) -> int:
        sequence: int = _INT32.unpack_from(self.view, 53)[0]
        return sequence

    @property
    def last_sequence(self) -> int:
        return last_sequence_of(self.base_sequence, self.last_offset_delta)

    @property
    def count(self) -> int:
        count: int = _INT32.unpack_from(self.view, 57)[0]
        return count

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        return timestamp_type_of(self.attributes)

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.has_delete_horizon else None

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0

    @property
    def records_bytes(self) -> memoryview:
        """The records as they lie there, compressed if the batch has a codec."""
        return self.view[HEADER_BYTES : self._end()]

    def crc_is_valid(self) -> bool:
        """Say whether the stored checksum is the one of the bytes from the attributes to the end."""
        return crc32c(self.view[ATTRIBUTES_OFFSET : self._end()]) == self.crc

    def patch_append_time(self, timestamp_ms: int) -> None:
        """Make `timestamp_ms` the timestamp of all records, as LogAppendTime has it."""
        _INT16.pack_into(self.view, ATTRIBUTES_OFFSET, self.attributes | APPEND_TIME_BIT)
        self.patch_max_timestamp(timestamp_ms)

    def clear_append_time(self, max_timestamp_ms: int | None = None) -> None:
        """Give the records their own timestamps back. Their maximum is the caller's to know."""
        _INT16.pack_into(self.view, ATTRIBUTES_OFFSET, self.attributes & ~APPEND_TIME_BIT)
        self.patch_max_timestamp(self.max_timestamp if max_timestamp_ms is None else max_timestamp_ms)

    def patch_max_timestamp(self, timestamp_ms: int) -> None:
        """Set the max timestamp and recompute the checksum over it."""
        _INT64.pack_into(self.view, _MAX_TIMESTAMP_OFFSET, timestamp_ms)
        _UINT32.pack_into(self.view, CRC_OFFSET, crc32c(self.view[ATTRIBUTES_OFFSET : self._end()]))

    def _end(self) -> int:
        """Return where the batch ends, all of which must be there."""
        size_bytes = self.size_bytes
        if not HEADER_BYTES <= size_bytes <= len(self.view):
            raise CorruptBatch(0, f"length field says {size_bytes} bytes, {len(self.view)} are there")
        return size_bytes


class LegacyBatchView(BatchView):
    """A message of format 0 or 1, alone or as the wrapper of a compressed message set.

    It answers as a batch does, as far as it can. Its offset field holds the offset of its *last* record,
    and how many records a wrapper holds is not known before it is opened (`count` is -1).
    """

    __slots__ = ()

    def __init__(self, view: memoryview) -> None:
        if len(view) < LOG_OVERHEAD + _LENGTH_MIN[0]:
            raise CorruptBatch(0, f"{len(view)} bytes are too short for a message")
        # Assigned here, not by the superclass, because its header is longer than a whole message may be.
        self.view = view

    @property
    def header(self) -> BatchHeader:
        raise CorruptBatch(0, f"format {self.magic} has no batch header")

    @property
    def leader_epoch(self) -> int:
        return -1

    @property
    def crc(self) -> int:
        crc: int = _UINT32.unpack_from(self.view, 12)[0]
        return crc

    @property
    def attributes(self) -> int:
        return self.view[17]

    @property
    def last_offset_delta(self) -> int:
        return 0

    @property
    def base_timestamp(self) -> int:
        return self.max_timestamp

    @property
    def max_timestamp(self) -> int:
        if self.magic == 0:
            return -1
        timestamp: int = _INT64.unpack_from(self.view, 18)[0]
        return timestamp

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.NONE if self.magic == 0 else timestamp_type_of(self.attributes)

    @property
    def producer_id(self) -> int:
        return -1

    @property
    def producer_epoch(self) -> int:
        return -1

    @property
    def base_sequence(self) -> int:
        return -1

    @property
    def count(self) -> int:
        return -1 if self.codec else 1

    @property
    def is_transactional(self) -> bool:
        return False

    @property
    def is_control(self) -> bool:
        return False

    @property
    def has_delete_horizon(self) -> bool:
        return False

    @property
    def records_bytes(self) -> memoryview:
        """The message itself: it is its own only record, or the wrapper of several."""
        return self.view[: self._end()]

    def crc_is_valid(self) -> bool:
        """Say whether the checksum (CRC-32 of IEEE here) is the one of the bytes from the magic on."""
        return crc32(self.view[_MAGIC_OFFSET : self._end()]) == self.crc

    def patch_append_time(self, timestamp_ms: int) -> None:
        raise CorruptBatch(0, f"format {self.magic} is only read, not set to {timestamp_ms}")

    def patch_max_timestamp(self, timestamp_ms: int) -> None:
        raise CorruptBatch(0, f"format {self.magic} is only read, not set to {timestamp_ms}")

    def clear_append_time(self, max_timestamp_ms: int | None = None) -> None:
        raise CorruptBatch(0, f"format {self.magic} is only read, not set to {max_timestamp_ms}")

    def _end(self) -> int:
        size_bytes = self.size_bytes
        if not LOG_OVERHEAD + _LENGTH_MIN[self.magic] <= size_bytes <= len(self.view):
            raise CorruptBatch(0, f"length field says {size_bytes} bytes, {len(self.view)} are there")
        return size_bytes


def iter_batches(view: memoryview) -> Iterator[BatchView]:
    """Walk the whole batches of `view` in order, each as a view of exactly its bytes.

    A batch that is cut off at the end is left out: it is what a fetch or a crash leaves behind. A size or
    a magic that no batch can have raises `CorruptBatch`, since nothing after it can be found any more.
    """
    position = 0
    end = len(view)
    while end - position >= LOG_OVERHEAD:
        batch_length: int = _PREFIX.unpack_from(view, position)[1]
        magic = view[position + _MAGIC_OFFSET] if end - position > _MAGIC_OFFSET else 0
        if magic > MAGIC:
            raise CorruptBatch(position, f"magic {magic}, known are 0 to {MAGIC}")
        if batch_length < _LENGTH_MIN[magic]:
            raise CorruptBatch(position, f"length {batch_length} is below the least, {_LENGTH_MIN[magic]}")
        next_position = position + LOG_OVERHEAD + batch_length
        if next_position > end:
            return
        batch = view[position:next_position]
        yield BatchView(batch) if magic == MAGIC else LegacyBatchView(batch)
        position = next_position
