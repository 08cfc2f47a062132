"""The files of a log directory, in words: an `Item` for each batch, record, entry or line of a file.

Nothing is changed, and no server is needed. Bytes that make no sense end a file with an item that says so.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.metadata.errors import MetadataError
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.quorum.batches import decode_batch
from ottla.quorum.quorum_state import FILE as QUORUM_STATE_FILE
from ottla.quorum.quorum_state import decode_quorum_state
from ottla.quorum.snapshot_file import SUFFIX as SNAPSHOT_SUFFIX
from ottla.records.batch import BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.codec import Record
from ottla.records.control import ControlType, decode_control_type, decode_end_txn_marker
from ottla.records.errors import RecordsError
from ottla.storage.damages.damage import SUFFIX as DAMAGED_SUFFIX
from ottla.storage.file_errors import CorruptFile
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.indexes.time_index import TimeIndex
from ottla.storage.indexes.transaction_index import decode_transaction_index
from ottla.storage.log_dirs.checkpoints import (
    LEADER_EPOCH_FILE,
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
)
from ottla.storage.log_dirs.clean_shutdown import FILE as CLEAN_SHUTDOWN_FILE
from ottla.storage.log_dirs.clean_shutdown import decode_clean_shutdown
from ottla.storage.log_dirs.meta_properties import FILE as META_PROPERTIES_FILE
from ottla.storage.log_dirs.meta_properties import decode_meta_properties
from ottla.storage.log_dirs.partition_metadata import FILE as PARTITION_METADATA_FILE
from ottla.storage.log_dirs.partition_metadata import decode_partition_metadata
from ottla.storage.names import METADATA_PARTITION, FileKind, find_segment_file, parse_directory_name
from ottla.storage.producers.producer_snapshot import decode_producer_snapshot
from ottla.wire.coordinator_records.framing import (
    GROUP_RECORDS,
    TRANSACTION_RECORDS,
    UnknownCoordinatorRecord,
)
from ottla.wire.declare import fields_of
from ottla.wire.errors import WireError

_UNREADABLE: Final = (RecordsError, CorruptFile, MetadataError, WireError, ValueError)
_COORDINATORS: Final = {records.topic: records for records in (GROUP_RECORDS, TRANSACTION_RECORDS)}
_OFFSET_CHECKPOINT_SUFFIX: Final = "-offset-checkpoint"


class Item(NamedTuple):
    """One thing found in a file, in words and as facts."""

    words: str
    facts: dict[str, Any]


def is_known(path: Path) -> bool:
    """Say whether a file is one that can be put into words."""
    return (
        find_segment_file(path.name) is not None
        or path.name.endswith((SNAPSHOT_SUFFIX, _OFFSET_CHECKPOINT_SUFFIX, DAMAGED_SUFFIX))
        or path.name
        in (
            LEADER_EPOCH_FILE,
            PARTITION_METADATA_FILE,
            META_PROPERTIES_FILE,
            QUORUM_STATE_FILE,
            CLEAN_SHUTDOWN_FILE,
        )
    )


def dump_file(path: Path, *, with_records: bool) -> Iterator[Item]:
    """Say what is in a file."""
    try:
        yield from _dump(path, with_records)
    except _UNREADABLE as error:
        yield Item(f"unreadable from here on: {error}", {"kind": "unreadable", "reason": str(error)})


def _dump(path: Path, with_records: bool) -> Iterator[Item]:
    found = find_segment_file(path.name)
    if found is not None and found.kind is not FileKind.LOG:
        yield from _dump_entries(path, found.kind, found.offset)
    elif found is not None or path.name.endswith((SNAPSHOT_SUFFIX, DAMAGED_SUFFIX)):
        yield from _dump_batches(path, with_records)
    else:
        yield from _dump_small(path)


# Logs, and snapshots of the metadata, which are logs as well


def _dump_batches(path: Path, with_records: bool) -> Iterator[Item]:
    topic = _topic_of(path)
    view = mapped(path)
    end = 0
    for batch in iter_batches(view):
        yield _batch_item(batch, end)
        end += batch.size_bytes
        if not batch.crc_is_valid():
            yield Item("  its checksum does not match", {"kind": "bad_checksum", "position": end})
        elif with_records:
            yield from _record_items(batch, topic)
    left = len(view) - end
    if left and not any(view[end:]):
        yield Item(f"{left} zero bytes: preallocated space", {"kind": "room", "size_bytes": left})
    elif left:
        yield Item(
            f"{left} bytes that are not a complete batch, at {end}",
            {"kind": "torn", "position": end, "size_bytes": left},
        )


def _batch_item(batch: BatchView, position: int) -> Item:
    marks = [
        *(["transactional"] if batch.is_transactional else []),
        *(["control"] if batch.is_control else []),
        *([batch.codec.name.lower()] if batch.codec else []),
    ]
    producer = ""
    if batch.has_producer:
        producer = f", producer {batch.producer_id} epoch {batch.producer_epoch}"
        if batch.base_sequence >= 0:
            producer += f" sequence {batch.base_sequence} to {batch.last_sequence}"
    words = (
        f"batch at {position}: offsets {batch.base_offset} to {batch.last_offset}, {batch.count} records, "
        f"{batch.size_bytes} bytes, leader epoch {batch.leader_epoch}{producer}"
        f"{', ' + ', '.join(marks) if marks else ''}"
    )
    facts = {
        "kind": "batch",
        "position": position,
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "records": batch.count,
        "size_bytes": batch.size_bytes,
        "leader_epoch": batch.leader_epoch,
        "max_timestamp_ms": batch.max_timestamp,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "codec": batch.codec.name.lower(),
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "magic": batch.magic,
    }
    return Item(words, facts)


def _record_items(batch: BatchView, topic: str) -> Iterator[Item]:
    if topic == METADATA_PARTITION.topic:
        for offset, message in enumerate(decode_batch(batch).records, batch.base_offset):
            yield _message_item(offset, type(message).__name__, message)
        return
    for record in iter_batch_records(batch):
        if batch.is_control:
            yield _control_item(record)
        elif topic in _COORDINATORS:
            yield _coordinator_item(record, topic)
        else:
            yield _plain_item(record)


def _message_item(offset: int, name: str, message: Any) -> Item:
    fields = {field: _plain(getattr(message, field)) for field in fields_of(type(message))}
    told = ", ".join(f"{field} {value}" for field, value in fields.items())
    return Item(f"  {offset}: {name}: {told}", {"kind": "record", "offset": offset, "type": name, **fields})


def _control_item(record: Record) -> Item:
    kind = decode_control_type(record.key)
    words, facts = kind.name.lower(), {"kind": "control", "offset": record.offset, "type": kind.name}
    if kind in (ControlType.COMMIT, ControlType.ABORT):
        marker = decode_end_txn_marker(record)
        words += f" by coordinator epoch {marker.coordinator_epoch}"
        facts["coordinator_epoch"] = str(marker.coordinator_epoch)
    return Item(f"  {record.offset}: {words}", facts)


def _coordinator_item(record: Record, topic: str) -> Item:
    found = _COORDINATORS[topic].decode(record.key or b"", record.value)
    if isinstance(found, UnknownCoordinatorRecord):
        return Item(
            f"  {record.offset}: a record of unknown type {found.record_type}",
            {"kind": "record", "offset": record.offset, "type": found.record_type},
        )
    name = type(found.key).__name__.removesuffix("Key")
    value = None if found.value is None else _plain(found.value)
    words = f"  {record.offset}: {name} {_plain(found.key)}: {'deleted' if value is None else value}"
    return Item(
        words,
        {
            "kind": "record",
            "offset": record.offset,
            "type": name,
            "key": _plain(found.key),
            "value": value,
        },
    )


def _plain_item(record: Record) -> Item:
    key, value = _text(record.key), _text(record.value)
    headers = [[name, _text(content)] for name, content in record.headers]
    told = f", headers {headers}" if headers else ""
    return Item(
        f"  {record.offset}: key {key!r}, value {value!r}, timestamp {record.timestamp}{told}",
        {
            "kind": "record",
            "offset": record.offset,
            "timestamp_ms": record.timestamp,
            "key": key,
            "value": value,
            "headers": headers,
        },
    )


# Indexes and snapshots of producers


def _dump_entries(path: Path, kind: FileKind, base_offset: Offset) -> Iterator[Item]:
    content = path.read_bytes()
    if kind is FileKind.OFFSET_INDEX:
        for entry in OffsetIndex(base_offset, used_entries(content, 8)):
            yield Item(
                f"offset {entry.offset} is at {entry.position}",
                {"kind": "offset_index", "offset": entry.offset, "position": entry.position},
            )
    elif kind is FileKind.TIME_INDEX:
        for found in TimeIndex(base_offset, used_entries(content, 12)):
            yield Item(
                f"up to offset {found.offset} no timestamp is above {found.timestamp_ms}",
                {"kind": "time_index", "offset": found.offset, "timestamp_ms": found.timestamp_ms},
            )
    elif kind is FileKind.TRANSACTION_INDEX:
        for aborted in decode_transaction_index(content, base_offset):
            yield Item(
                f"producer {aborted.producer_id} aborted {aborted.first_offset} to {aborted.last_offset}",
                {"kind": "aborted", **aborted._asdict()},
            )
    else:
        for producer in decode_producer_snapshot(content):
            is_open = producer.transaction_first_offset >= 0
            opened = f", a transaction open from {producer.transaction_first_offset}" if is_open else ""
            yield Item(
                f"producer {producer.producer_id} epoch {producer.producer_epoch}: last sequence "
                f"{producer.last_sequence}, last offset {producer.last_offset}{opened}",
                {"kind": "producer", **producer._asdict()},
            )


def used_entries(content: bytes, entry_bytes: int) -> bytes:
    """Leave out the zeros at the end: a server that did not stop cleanly leaves an index at its full size.

    A torn entry at the end is left out as well.
    """
    end = len(content.rstrip(b"\0"))
    return content[: min(-(-end // entry_bytes), len(content) // entry_bytes) * entry_bytes]


# Small files


def _dump_small(path: Path) -> Iterator[Item]:
    content = path.read_bytes()
    if path.name == LEADER_EPOCH_FILE:
        for entry in decode_epoch_checkpoint(content):
            yield Item(
                f"leader epoch {entry.epoch} began at offset {entry.start_offset}",
                {"kind": "leader_epoch", **entry._asdict()},
            )
    elif path.name == PARTITION_METADATA_FILE:
        topic_id = str(decode_partition_metadata(content))
        yield Item(f"topic id {topic_id}", {"kind": "topic_id", "topic_id": topic_id})
    elif path.name == META_PROPERTIES_FILE:
        meta = {name: _plain(value) for name, value in decode_meta_properties(content)._asdict().items()}
        yield Item(", ".join(f"{name} {value}" for name, value in meta.items()), {"kind": "meta", **meta})
    elif path.name == QUORUM_STATE_FILE:
        state = {name: _plain(value) for name, value in decode_quorum_state(content)._asdict().items()}
        yield Item(", ".join(f"{name} {value}" for name, value in state.items()), {"kind": "quorum", **state})
    elif path.name == CLEAN_SHUTDOWN_FILE:
        epoch = decode_clean_shutdown(content)
        yield Item(
            f"stopped cleanly in broker epoch {epoch}", {"kind": "clean_shutdown", "broker_epoch": epoch}
        )
    elif path.name.endswith(_OFFSET_CHECKPOINT_SUFFIX):
        for where, offset in decode_offset_checkpoint(content).items():
            yield Item(f"{where}: {offset}", {"kind": "checkpoint", "where": str(where), "offset": offset})
    else:
        raise ValueError(f"{path.name} is not a file of a log directory")


def _topic_of(path: Path) -> str:
    if path.name == "bootstrap.checkpoint":
        return METADATA_PARTITION.topic
    try:
        return parse_directory_name(path.absolute().parent.name).partition.topic
    except CorruptFile:
        return ""


def mapped(path: Path) -> memoryview:
    """Return a file's bytes without reading all of them: a segment may have a gibibyte."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _plain(value: Any) -> Any:
    """Turn a message and what is in it into what JSON has."""
    if hasattr(value, "__wire_fields__"):
        return {name: _plain(getattr(value, name)) for name in fields_of(type(value))}
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", "backslashreplace")
