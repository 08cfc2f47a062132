"""Load a metadata log: the newest snapshot, then the batches after it."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.metadata.errors import MetadataError
from ottla.metadata.image import EMPTY_IMAGE, Position
from ottla.metadata.loader import MetadataLoader
from ottla.model.ids import Offset
from ottla.quorum.batches import MetadataBatch, decode_batch
from ottla.quorum.snapshot_file import FORMAT_SNAPSHOT, SnapshotId
from ottla.quorum.snapshots import Snapshots
from ottla.quorum.voters import VoterHistory
from ottla.records.batch import iter_batches
from ottla.storage.log import Log
from ottla.storage.names import FileKind, find_segment_file
from ottla.storage.read import ReadLimit
from ottla.world.disk import Disk

_READ_BYTES: Final = 1 << 20

UNFINISHED_REPAIR_FILE: Final = ".ottla-unfinished-repair"
"""In the log directory while the metadata is repaired. Until that is done, it may not be used."""


class LoadedLog(NamedTuple):
    """What a metadata log contains, up to `end_offset`."""

    loader: MetadataLoader
    snapshot_id: SnapshotId
    quorum: VoterHistory
    end_offset: Offset
    tail_bytes: int
    """How much of it comes after the snapshot."""


def is_blank(disk: Disk, path: str) -> bool:
    """Say whether nothing was ever written to a metadata log, or nothing of it is left."""
    if not disk.exists(path):
        return True
    if any(stored.id != FORMAT_SNAPSHOT for stored in Snapshots(disk, path).list()):
        return False
    files = [(find_segment_file(entry.name), entry.size) for entry in disk.list(path)]
    return not any(size for file, size in files if file is not None and file.kind is FileKind.LOG)


def load_metadata(log: Log, snapshots: Snapshots, *, with_tail: bool = True) -> LoadedLog:
    """Load the newest snapshot and, `with_tail`, everything after it, committed or not."""
    snapshot_id, quorum, loader = load_snapshot(snapshots)
    if not log.log_start_offset <= snapshot_id.end_offset <= log.log_end_offset:
        raise MetadataError(
            f"the newest snapshot of {log.path} ends at {snapshot_id.end_offset}, but the log has offsets "
            f"from {log.log_start_offset} to {log.log_end_offset}"
        )
    if not with_tail:
        return LoadedLog(loader, snapshot_id, quorum, snapshot_id.end_offset, 0)
    size_bytes = 0
    for batch in read_batches(log, snapshot_id.end_offset, log.log_end_offset):
        if batch.is_control:
            loader.skip(batch.position)
            quorum = quorum.after(batch.records)
        else:
            loader.feed(batch.records, batch.position)
        size_bytes += batch.size_bytes
    return LoadedLog(loader, snapshot_id, quorum, log.log_end_offset, size_bytes)


def load_snapshot(snapshots: Snapshots) -> tuple[SnapshotId, VoterHistory, MetadataLoader]:
    """Load the newest snapshot, or nothing if there is none."""
    loader = MetadataLoader(EMPTY_IMAGE)
    newest = snapshots.read_newest()
    if newest is None:
        return FORMAT_SNAPSHOT, VoterHistory(), loader
    snapshot_id, snapshot = newest
    if snapshot_id.end_offset > 0:
        last = Position(
            Offset(snapshot_id.end_offset - 1), snapshot_id.epoch, snapshot.last_contained_timestamp_ms
        )
        loader.feed(snapshot.records, last)
    return snapshot_id, snapshot.quorum, loader


def read_batches(log: Log, offset: Offset, end: Offset) -> Iterator[MetadataBatch]:
    """Yield the batches from `offset` to below `end`, committed or not."""
    while offset < end:
        chunk = log.read(offset, _READ_BYTES, ReadLimit.LOG_END).read()
        for raw in iter_batches(memoryview(chunk)):
            if raw.last_offset < offset:
                # A read starts with the batch that holds the offset.
                continue
            if raw.base_offset >= end:
                return
            # Snapshots end where a batch does. Only what a repair has put in may lie across that, and says
            # nothing.
            batch = decode_batch(raw)
            offset = Offset(batch.position.offset + 1)
            yield batch
