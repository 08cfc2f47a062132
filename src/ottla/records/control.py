"""Control records: what brokers and controllers write into logs for each other, not for consumers.

A control batch has the control bit, is never compressed and has no sequence. The key of a control record says
what it is; its value depends on that:

    key     version (int16 = 0) · type (int16)
    value   types 0 and 1 (the end of a transaction): version (int16 = 0) · coordinator epoch (int32)
            types 2 to 6 (the quorum's): messages, see `ottla.wire.control_records`

A transaction marker is one record in a batch that is also transactional, with the producer's id and epoch.
Readers take later versions too: fields are only ever added after those known.
"""

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from ottla.records.batch import BatchView
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.errors import CorruptBatch, InvalidRecord

_KEY: Final = Struct(">hh")
_END_TXN: Final = Struct(">hi")
_VERSION: Final = 0


class ControlType(IntEnum):
    """What a control record says. UNKNOWN stands for all types of later versions, which readers skip."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTxnMarker(NamedTuple):
    """The end of a transaction of one producer in one partition."""

    is_commit: bool
    coordinator_epoch: int

    @property
    def control_type(self) -> ControlType:
        return ControlType.COMMIT if self.is_commit else ControlType.ABORT


def encode_control_key(control_type: ControlType) -> bytes:
    """Encode the key of a control record."""
    return _KEY.pack(_VERSION, control_type)


def decode_control_type(key: bytes | None) -> ControlType:
    """Read from its key what a control record is."""
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord(0, f"the key of a control record has {_KEY.size} bytes, not {len(key or b'')}")
    version, type_id = _KEY.unpack_from(key)
    if version < _VERSION:
        raise InvalidRecord(0, f"the key of a control record has version {version}")
    return ControlType(type_id) if 0 <= type_id < len(ControlType) - 1 else ControlType.UNKNOWN


def decode_end_txn_marker(record: Record) -> EndTxnMarker:
    """Read a transaction marker from its record."""
    control_type = decode_control_type(record.key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise InvalidRecord(0, f"a control record of type {control_type.name} is no transaction marker")
    if record.value is None or len(record.value) < _END_TXN.size:
        raise InvalidRecord(0, f"a transaction marker has {_END_TXN.size} bytes")
    version, coordinator_epoch = _END_TXN.unpack_from(record.value)
    if version < _VERSION:
        raise InvalidRecord(0, f"a transaction marker of version {version}")
    return EndTxnMarker(control_type is ControlType.COMMIT, coordinator_epoch)


def find_control_record(batch: BatchView) -> Record | None:
    """Return the first record of a control batch. None if compaction has emptied it."""
    if not batch.is_control:
        raise CorruptBatch(0, "not a control batch")
    return next(iter_batch_records(batch), None)


def build_end_txn_batch(
    marker: EndTxnMarker,
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Build the batch that ends a transaction in one partition."""
    key = encode_control_key(marker.control_type)
    value = _END_TXN.pack(_VERSION, marker.coordinator_epoch)
    return build_batch(
        [Record(base_offset, timestamp, key, value)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
