"""The batches of the metadata log and of its snapshots: bytes to records and back.

A batch holds either metadata records or control records of the quorum. It is never compressed, has no
producer, and all its records have the time at which the leader appended them. A metadata record has no key.
The value of a control record is a message whose first field is the version it is written in.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ottla.metadata.errors import MetadataError, UnknownRecord
from ottla.metadata.image import Position
from ottla.metadata.record_versions import record_version
from ottla.model.ids import Offset
from ottla.records.attributes import Codec
from ottla.records.batch import BatchView
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.control import ControlType, decode_control_type, encode_control_key
from ottla.records.errors import RecordsError
from ottla.wire.codec import decode, encode
from ottla.wire.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from ottla.wire.errors import MalformedBytes
from ottla.wire.metadata_records.framing import (
    UnknownMetadataRecord,
    decode_metadata_record,
    encode_metadata_record,
)

BATCH_BYTES_MAX: Final = 8 * 1024 * 1024

_MESSAGES: Final[dict[ControlType, type[Any]]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_KEYS: Final = {message: encode_control_key(kind) for kind, message in _MESSAGES.items()}


class MetadataBatch(NamedTuple):
    """One batch, read. `position` is where its last record lies."""

    base_offset: Offset
    position: Position
    is_control: bool
    records: tuple[Any, ...]
    size_bytes: int


def encode_batch(
    records: Iterable[Any], metadata_version: int, base_offset: Offset, epoch: int, now_ms: int
) -> bytearray:
    """Write metadata records as one batch, each in the version that `metadata_version` allows."""
    values = [encode_metadata_record(record, record_version(record, metadata_version)) for record in records]
    framed = [Record(offset, now_ms, None, value) for offset, value in enumerate(values, base_offset)]
    return build_batch(framed, base_offset=base_offset, leader_epoch=epoch)


def encode_control_batch(messages: Sequence[Any], base_offset: Offset, epoch: int, now_ms: int) -> bytearray:
    """Write control records as one batch."""
    framed = [
        Record(offset, now_ms, _KEYS[type(message)], encode(message, message.version))
        for offset, message in enumerate(messages, base_offset)
    ]
    return build_batch(framed, base_offset=base_offset, leader_epoch=epoch, is_control=True)


def decode_batch(batch: BatchView) -> MetadataBatch:
    """Read a batch. Raises `MetadataError` for one that is damaged or that this release does not know."""
    header = batch.header
    try:
        if not batch.crc_is_valid() or header.codec is not Codec.NONE:
            raise MetadataError(f"the batch of metadata at offset {header.base_offset} is damaged")
        open_record = _open_control if header.is_control else _open_metadata
        records = tuple(open_record(record) for record in iter_batch_records(batch))
    except UnknownMetadataRecord as error:
        raise UnknownRecord(f"the batch of metadata at offset {header.base_offset}: {error}") from error
    except (RecordsError, MalformedBytes) as error:
        raise MetadataError(f"the batch of metadata at offset {header.base_offset}: {error}") from error
    position = Position(Offset(header.last_offset), header.leader_epoch, header.max_timestamp)
    return MetadataBatch(Offset(header.base_offset), position, header.is_control, records, batch.size_bytes)


def _open_metadata(record: Record) -> Any:
    return decode_metadata_record(record.value or b"").record


def _open_control(record: Record) -> Any:
    kind = decode_control_type(record.key)
    message = _MESSAGES.get(kind)
    if message is None or record.value is None:
        raise MetadataError(f"a control record of type {kind.name} at offset {record.offset}")
    return decode(message, record.value, int.from_bytes(record.value[:2], signed=True))
