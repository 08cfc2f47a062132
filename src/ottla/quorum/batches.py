"""The batches of the metadata log and of its snapshots: bytes to records and back.

A batch holds either metadata records or control records of the quorum. It is never compressed, has no
producer, and all its records have the time at which the leader appended them. A metadata record has no key.
The key of a control record is its version (int16, 0) and its type (int16), and its value is a message whose
first field is the version it is written in.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.metadata.errors import MetadataError
from ottla.metadata.image import Position
from ottla.metadata.record_versions import record_version
from ottla.model.ids import Offset
from ottla.records.attributes import CONTROL_BIT, Codec
from ottla.records.batch import HEADER, HEADER_BYTES, LOG_OVERHEAD, MAGIC, BatchView
from ottla.records.codec import Record, decode_records, encode_records
from ottla.wire.codec import decode, encode
from ottla.wire.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from ottla.wire.metadata_records.framing import decode_metadata_record, encode_metadata_record

BATCH_BYTES_MAX: Final = 8 * 1024 * 1024

_CONTROL_TYPES: Final[dict[int, type[Any]]] = {
    2: LeaderChangeMessage,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}
_CONTROL_KEYS: Final = {cls: bytes((0, 0, 0, number)) for number, cls in _CONTROL_TYPES.items()}


class MetadataBatch(NamedTuple):
    """One batch, read. `position` is where its last record lies."""

    base_offset: Offset
    position: Position
    is_control: bool
    records: tuple[Any, ...]


def encode_batch(
    records: Sequence[Any], metadata_version: int, base_offset: Offset, epoch: int, now_ms: int
) -> bytes:
    """Write metadata records as one batch, each in the version that `metadata_version` allows."""
    values = [encode_metadata_record(record, record_version(record, metadata_version)) for record in records]
    return _encode([(None, value) for value in values], 0, base_offset, epoch, now_ms)


def encode_control_batch(messages: Sequence[Any], base_offset: Offset, epoch: int, now_ms: int) -> bytes:
    """Write control records as one batch."""
    pairs = [(_CONTROL_KEYS[type(message)], encode(message, message.version)) for message in messages]
    return _encode(pairs, CONTROL_BIT, base_offset, epoch, now_ms)


def decode_batch(batch: BatchView) -> MetadataBatch:
    """Read a batch. Raises `RecordsError` or `MalformedBytes` for bytes that are none."""
    header = batch.header
    if not batch.crc_is_valid():
        raise MetadataError(f"the batch at offset {header.base_offset} of the metadata log is damaged")
    if header.codec is not Codec.NONE:
        raise MetadataError(f"the batch at offset {header.base_offset} of the metadata log is compressed")
    records = decode_records(
        bytes(batch.records_bytes), header.count, header.base_offset, header.base_timestamp
    )
    open_record = _open_control if header.is_control else _open_metadata
    return MetadataBatch(
        Offset(header.base_offset),
        Position(Offset(header.last_offset), header.leader_epoch, header.max_timestamp),
        header.is_control,
        tuple(open_record(record) for record in records),
    )


def _encode(
    pairs: Sequence[tuple[bytes | None, bytes]], attributes: int, base_offset: Offset, epoch: int, now_ms: int
) -> bytes:
    assert pairs, "a batch has records"
    body = encode_records(
        (Record(base_offset + delta, now_ms, key, value) for delta, (key, value) in enumerate(pairs)),
        base_offset,
        now_ms,
    )
    batch = bytearray(HEADER_BYTES + len(body))
    batch[HEADER_BYTES:] = body
    length, last = len(batch) - LOG_OVERHEAD, len(pairs) - 1
    HEADER.pack_into(
        batch, 0, base_offset, length, epoch, MAGIC, 0, attributes, last, now_ms, now_ms, -1, -1, -1, last + 1
    )
    BatchView(memoryview(batch)).patch_max_timestamp(now_ms)
    return bytes(batch)


def _open_metadata(record: Record) -> Any:
    if record.value is None:
        raise MetadataError(f"the record at offset {record.offset} of the metadata log has no value")
    return decode_metadata_record(record.value).record


def _open_control(record: Record) -> Any:
    if record.key is None or record.value is None or len(record.key) != 4 or len(record.value) < 2:
        raise MetadataError(f"the record at offset {record.offset} of the metadata log is no control record")
    number = int.from_bytes(record.key[2:], signed=True)
    cls = _CONTROL_TYPES.get(number)
    if cls is None:
        raise MetadataError(f"the control record at offset {record.offset} has the unknown type {number}")
    return decode(cls, record.value, int.from_bytes(record.value[:2], signed=True))
