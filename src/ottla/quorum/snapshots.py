"""The snapshots of a metadata log: found, read, written in steps, and deleted when they are too many.

A snapshot is written to a `.checkpoint.part` file, synced and renamed, so that one with its final name is
whole. Writing is cut into steps of one batch, because a node has other things to do meanwhile, and an image
does not change under it.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.metadata.features import metadata_version_of
from ottla.metadata.image import MetadataImage
from ottla.metadata.snapshot_records import snapshot_records
from ottla.model.ids import Offset
from ottla.quorum.snapshot_file import (
    DELETED_SUFFIX,
    SUFFIX,
    UNFINISHED_SUFFIX,
    Snapshot,
    SnapshotId,
    decode_snapshot,
    encode_snapshot,
    find_snapshot_id,
)
from ottla.quorum.voters import VoterHistory
from ottla.world.disk import Disk

_LEFT_OVER: Final = (UNFINISHED_SUFFIX, DELETED_SUFFIX)


class StoredSnapshot(NamedTuple):
    """A snapshot in the directory."""

    id: SnapshotId
    size_bytes: int
    written_ms: int


class Snapshots:
    """The snapshots in the directory of a metadata log."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory

    def list(self) -> list[StoredSnapshot]:
        """Return all whole snapshots, the oldest first."""
        found = []
        for entry in self._disk.list(self._directory):
            snapshot_id = find_snapshot_id(entry.name)
            if snapshot_id is not None:
                found.append(StoredSnapshot(snapshot_id, entry.size, entry.modified_ms))
        return sorted(found)

    def read_newest(self) -> tuple[SnapshotId, Snapshot] | None:
        """Return the newest snapshot, or None if there is none, not even the one of formatting."""
        stored = self.list()
        return None if not stored else (stored[-1].id, self.read(stored[-1].id))

    def read(self, snapshot_id: SnapshotId) -> Snapshot:
        """Read a snapshot."""
        path = self._path(snapshot_id)
        return decode_snapshot(self._disk.read_file(path), path)

    def write(self, image: MetadataImage, quorum: VoterHistory, now_ms: int) -> Iterator[None]:
        """Write a snapshot of an image, one batch for each step. It exists when the last step is done."""
        snapshot_id = id_of(image)
        path = self._path(snapshot_id)
        unfinished = path.removesuffix(SUFFIX) + UNFINISHED_SUFFIX
        file = self._disk.open(unfinished, create=True)
        file.truncate(0)
        size = 0
        batches = encode_snapshot(
            snapshot_records(image),
            metadata_version_of(image.features),
            snapshot_id.epoch,
            image.position.timestamp_ms,
            quorum,
            now_ms,
        )
        for batch in batches:
            file.write(size, (batch,))
            size += len(batch)
            yield
        file.sync()
        file.close()
        self._disk.rename(unfinished, path)
        self._disk.sync_directory(self._directory)

    def delete(self, snapshot_id: SnapshotId) -> None:
        """Delete a snapshot."""
        self._disk.remove(self._path(snapshot_id))

    def delete_left_overs(self) -> None:
        """Delete what an interrupted writer or deleter left behind."""
        for entry in self._disk.list(self._directory):
            if entry.name.endswith(_LEFT_OVER):
                self._disk.remove(f"{self._directory}/{entry.name}")

    def _path(self, snapshot_id: SnapshotId) -> str:
        return f"{self._directory}/{snapshot_id.file_name}"


def id_of(image: MetadataImage) -> SnapshotId:
    """Return the name that a snapshot of an image has."""
    return SnapshotId(Offset(image.offset + 1), image.position.epoch)


def surplus(
    stored: list[StoredSnapshot], log_bytes: int, bytes_max: int, age_ms_max: int, now_ms: int
) -> list[SnapshotId]:
    """Return which snapshots may go, the oldest first. The newest stays in any case.

    As in Kafka, they go one by one while log and snapshots together are larger than `bytes_max`, or while the
    oldest is older than `age_ms_max`. A negative bound is none. What the log has from before the oldest that
    stays may go with them.
    """
    gone: list[SnapshotId] = []
    total = log_bytes + sum(snapshot.size_bytes for snapshot in stored)
    for snapshot in stored[:-1]:
        is_too_much = 0 <= bytes_max < total
        is_too_old = 0 <= age_ms_max < now_ms - snapshot.written_ms
        if not is_too_much and not is_too_old:
            break
        gone.append(snapshot.id)
        total -= snapshot.size_bytes
    return gone
