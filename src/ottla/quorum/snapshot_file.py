"""Snapshots of the metadata log as files.

    00000000000000000575-0000000002.checkpoint        (offset after the last record contained)-(its epoch)

The bytes are batches like those of the log, all in the snapshot's epoch, whose offsets count from 0 and mean
nothing:

    control batch    SNAPSHOT_HEADER with the time of the last record contained,
                     and from kraft.version 1 on KRAFT_VERSION and KRAFT_VOTERS
    data batches     the image as records, up to 1,024 in each
    control batch    SNAPSHOT_FOOTER; without it the file is not complete

Two files that formatting writes have the same form: `bootstrap.checkpoint`, whose records the first
controller writes into an empty log, and the snapshot `0-0`, which names the voters before there is a log to
do so.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from ottla.metadata.errors import MetadataError, UnknownRecord
from ottla.model.ids import Offset
from ottla.quorum.batches import MetadataBatch, decode_batch, encode_batch, encode_control_batch
from ottla.quorum.voters import VoterHistory
from ottla.records.batch import iter_batches
from ottla.records.errors import RecordsError
from ottla.wire.control_records import SnapshotFooterRecord, SnapshotHeaderRecord

BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"
SUFFIX: Final = ".checkpoint"
UNFINISHED_SUFFIX: Final = ".checkpoint.part"
DELETED_SUFFIX: Final = ".checkpoint.deleted"

_RECORDS_PER_BATCH: Final = 1024
_NAME: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """Which part of the log a snapshot stands for: everything below `end_offset`."""

    end_offset: Offset
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


FORMAT_SNAPSHOT: Final = SnapshotId(Offset(0), 0)
"""The one that formatting makes. It contains no record of the log, and is never sent to another node."""


class Snapshot(NamedTuple):
    """The content of a snapshot."""

    last_contained_timestamp_ms: int
    quorum: VoterHistory
    records: tuple[Any, ...]


def find_snapshot_id(file_name: str) -> SnapshotId | None:
    """Take the name of a complete snapshot apart, or return None for any other name."""
    match = _NAME.fullmatch(file_name)
    return None if match is None else SnapshotId(Offset(int(match[1])), int(match[2]))


def encode_snapshot(
    records: Iterable[Any],
    metadata_version: int,
    epoch: int,
    last_contained_timestamp_ms: int,
    quorum: VoterHistory,
    now_ms: int,
) -> Iterator[bytearray]:
    """Write a snapshot, one batch after the other."""
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_contained_timestamp_ms)
    control = (header, *quorum.records())
    yield encode_control_batch(control, Offset(0), epoch, now_ms)
    next_offset = len(control)
    rest = iter(records)
    while part := tuple(islice(rest, _RECORDS_PER_BATCH)):
        yield encode_batch(part, metadata_version, Offset(next_offset), epoch, now_ms)
        next_offset += len(part)
    yield encode_control_batch([SnapshotFooterRecord(version=0)], Offset(next_offset), epoch, now_ms)


def decode_snapshot(content: bytes, name: str) -> Snapshot:
    """Read a snapshot. Raises `MetadataError` for one that is not whole."""
    batches = _decode(content, name)
    control = [record for batch in batches if batch.is_control for record in batch.records]
    records = [record for batch in batches if not batch.is_control for record in batch.records]
    return Snapshot(control[0].last_contained_log_timestamp, VoterHistory().after(control), tuple(records))


def decode_quorum(content: bytes, name: str) -> VoterHistory:
    """Read only what a snapshot says about the quorum. The other records are not opened."""
    batches = _decode(content, name, control_only=True)
    return VoterHistory().after([record for batch in batches for record in batch.records])


def _decode(content: bytes, name: str, *, control_only: bool = False) -> list[MetadataBatch]:
    view = memoryview(content)
    batches: list[MetadataBatch] = []
    size = 0
    try:
        for raw in iter_batches(view):
            if raw.header.is_control or not control_only:
                batches.append(decode_batch(raw))
            size += raw.size_bytes
    except UnknownRecord:
        raise
    except (RecordsError, MetadataError) as error:
        raise MetadataError(f"snapshot {name} is damaged at position {size}: {error}") from error
    control = [record for batch in batches if batch.is_control for record in batch.records]
    if size != len(view) or not control or not isinstance(control[-1], SnapshotFooterRecord):
        raise MetadataError(f"snapshot {name} is not complete")
    if not isinstance(control[0], SnapshotHeaderRecord) or not batches[0].is_control:
        raise MetadataError(f"snapshot {name} does not start with a header")
    return batches


def encode_bootstrap(records: Sequence[Any], metadata_version: int, now_ms: int) -> bytes:
    """Write the records with which an empty metadata log begins."""
    return b"".join(encode_snapshot(records, metadata_version, 0, 0, VoterHistory(), now_ms))
