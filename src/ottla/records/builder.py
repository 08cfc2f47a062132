"""Whole batches of format 2: built from records, or emptied of them.

`seal_batch` is where a batch gets its length and its checksum. The rest decides the other header fields:

- `build_batch` takes records and whatever a producer, a coordinator or a broker has to say about them;
- `build_numbered_batch` takes records that are encoded already, as a coordinator has them;
- `empty_batch` keeps no record of a batch that itself must stay.

Batches of which some records stay are made by `ottla.storage.compaction.rewrite`, and those that get another
codec by `ottla.storage.appending.validation`.
"""

from collections.abc import Sequence
from operator import itemgetter
from struct import Struct
from typing import Final

from crc32c import crc32c

from ottla.records.attributes import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    TRANSACTIONAL_BIT,
    Codec,
    pack_attributes,
)
from ottla.records.batch import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    HEADER,
    HEADER_BYTES,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
)
from ottla.records.codec import RecordTuple, encode_numbered, encode_records
from ottla.records.compression import compress

_NO_TIMESTAMP: Final = -1
_LENGTH: Final = Struct(">i")
_CRC: Final = Struct(">I")
_timestamp_of: Final = itemgetter(1)


def seal_batch(header: BatchHeader, records_area: bytes) -> bytearray:
    """Join a header and the finished record area, and set length and checksum, which `header` cannot know.

    The batch is a bytearray, so that a leader can patch offset and epoch into it.
    """
    batch = bytearray(HEADER_BYTES + len(records_area))
    HEADER.pack_into(batch, 0, *header)
    _LENGTH.pack_into(batch, LENGTH_OFFSET, len(batch) - LOG_OVERHEAD)
    batch[HEADER_BYTES:] = records_area
    _CRC.pack_into(batch, CRC_OFFSET, crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:]))
    return batch


def build_batch(
    records: Sequence[RecordTuple],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    append_time: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    delete_horizon_ms: int | None = None,
    last_offset: int | None = None,
) -> bytearray:
    """Build a batch of at least one record.

    With an `append_time` the batch has LogAppendTime, and that as its timestamp. `last_offset` is the one of
    the last record, unless records after it are gone.
    """
    assert records, "a batch without records is what `empty_batch` makes of one that had some"
    base_timestamp = records[0][1] if delete_horizon_ms is None else delete_horizon_ms
    area = encode_records(records, base_offset, base_timestamp)
    if codec is not Codec.NONE:
        area = compress(codec, area, level)
    # The header is not made as a `BatchHeader` first, as `seal_batch` has it: coordinators and producers make
    # a batch for each request, and that would take half of the time of a small one.
    batch = bytearray(HEADER_BYTES) + area
    HEADER.pack_into(
        batch, 0,
        base_offset, len(batch) - LOG_OVERHEAD, leader_epoch, MAGIC, 0,
        pack_attributes(
            codec, append_time is not None, is_transactional, is_control, delete_horizon_ms is not None
        ),
        (records[-1][0] if last_offset is None else last_offset) - base_offset,
        base_timestamp, max(map(_timestamp_of, records)) if append_time is None else append_time,
        producer_id, producer_epoch, base_sequence, len(records),
    )  # fmt: skip
    _CRC.pack_into(batch, CRC_OFFSET, crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:]))
    return batch


def build_numbered_batch(
    fields: Sequence[bytes],
    timestamp: int,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    is_transactional: bool = False,
) -> bytearray:
    """Build a batch of records whose fields are encoded (`encode_fields`) and which have one timestamp."""
    assert fields, "a batch has at least one record"
    area = encode_numbered(fields)
    if codec is not Codec.NONE:
        area = compress(codec, area)
    batch = bytearray(HEADER_BYTES) + area
    HEADER.pack_into(
        batch, 0,
        0, len(batch) - LOG_OVERHEAD, -1, MAGIC, 0,
        codec | TRANSACTIONAL_BIT if is_transactional else codec,
        len(fields) - 1, timestamp, timestamp, producer_id, producer_epoch, -1, len(fields),
    )  # fmt: skip
    _CRC.pack_into(batch, CRC_OFFSET, crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:]))
    return batch


def empty_batch(header: BatchHeader) -> bytearray:
    """Return what stays of a batch all records of which are gone, but whose sequence or offset must stay."""
    return seal_batch(
        header._replace(
            attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
            base_timestamp=_NO_TIMESTAMP,
            count=0,
        ),
        b"",
    )
