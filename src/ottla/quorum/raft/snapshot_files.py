"""The snapshots of a metadata log as its replicas exchange them: slices of files, and downloads.

A download goes to a `.checkpoint.part` file. It becomes a snapshot when all of it is there and can be read:
what a leader sends is not believed before.
"""

from typing import Final

from ottla.metadata.errors import MetadataError
from ottla.quorum.snapshot_file import (
    FORMAT_SNAPSHOT,
    SUFFIX,
    UNFINISHED_SUFFIX,
    Snapshot,
    SnapshotId,
    decode_quorum,
    decode_snapshot,
)
from ottla.quorum.snapshots import Snapshots
from ottla.quorum.voters import VoterHistory
from ottla.records.errors import RecordsError
from ottla.world.disk import Disk, File

SNAPSHOT_BYTES_MAX: Final = 1 << 31
"""Larger snapshots are not fetched: positions beyond are refused by Apache Kafka, too."""


class BadSnapshot(Exception):
    """A piece of a snapshot that cannot be right, or a whole that cannot be read."""


class Download:
    """A snapshot that is being fetched."""

    def __init__(self, disk: Disk, directory: str, snapshot_id: SnapshotId) -> None:
        self.id = snapshot_id
        self.position = 0
        self._disk = disk
        self._directory = directory
        self._path = f"{directory}/{snapshot_id.file_name}"
        self._size: int | None = None
        self._file: File = disk.open(self._path.removesuffix(SUFFIX) + UNFINISHED_SUFFIX, create=True)
        self._file.truncate(0)

    def add(self, position: int, size: int, piece: bytes, bytes_max: int) -> bool:
        """Take the next piece. Says whether it was the last. Raises `BadSnapshot` for any other."""
        if position != self.position:
            raise BadSnapshot(f"a piece from {position} on came instead of one from {self.position} on")
        if self._size not in (None, size) or size > SNAPSHOT_BYTES_MAX:
            raise BadSnapshot(f"its size is {size} now, it was {self._size}")
        if not piece or len(piece) > bytes_max or position + len(piece) > size:
            raise BadSnapshot(f"a piece of {len(piece)} bytes at {position} does not fit a size of {size}")
        self._size = size
        self._file.write(position, (piece,))
        self.position += len(piece)
        return self.position == size

    def freeze(self) -> Snapshot:
        """Make the file a snapshot. When this returns, it survives a power cut."""
        content = self._file.read(0, self.position)
        try:
            snapshot = decode_snapshot(content, self.id.file_name)
        except (MetadataError, RecordsError) as error:
            raise BadSnapshot(str(error)) from error
        self._file.sync()
        self._file.close()
        self._disk.rename(self._file.path, self._path)
        self._disk.sync_directory(self._directory)
        return snapshot

    def drop(self) -> None:
        """Give up. The file goes."""
        self._file.close()
        if self._disk.exists(self._file.path):
            self._disk.remove(self._file.path)


class SnapshotFiles:
    """The snapshots in the directory of a metadata log. Which there are is known without looking."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._snapshots = Snapshots(disk, directory)
        self._snapshots.delete_left_overs()
        self.ids: list[SnapshotId] = []
        self.look_again()

    def look_again(self) -> None:
        """Take note of what has been written or deleted since."""
        self.ids = [stored.id for stored in self._snapshots.list()]

    @property
    def earliest(self) -> SnapshotId | None:
        return self.ids[0] if self.ids else None

    @property
    def latest(self) -> SnapshotId | None:
        return self.ids[-1] if self.ids else None

    @property
    def latest_to_send(self) -> SnapshotId | None:
        """The newest one that may be sent to others."""
        return self.ids[-1] if self.ids and self.ids[-1] != FORMAT_SNAPSHOT else None

    def read_quorum(self, snapshot_id: SnapshotId) -> VoterHistory:
        """Return what a snapshot says about the quorum. Its other records are not opened."""
        path = f"{self._directory}/{snapshot_id.file_name}"
        return decode_quorum(self._disk.read_file(path), path)

    def find_size(self, snapshot_id: SnapshotId) -> int | None:
        """Return how large a snapshot is, or None if it is not there, or not for others."""
        if snapshot_id not in self.ids or snapshot_id == FORMAT_SNAPSHOT:
            return None
        return self._open(snapshot_id).size()

    def read_slice(self, snapshot_id: SnapshotId, position: int, length: int) -> bytes:
        return self._open(snapshot_id).read(position, length)

    def download(self, snapshot_id: SnapshotId) -> Download:
        """Begin to fetch a snapshot."""
        return Download(self._disk, self._directory, snapshot_id)

    def keep_from(self, snapshot_id: SnapshotId) -> None:
        """Delete the snapshots before this one: their part of the log is gone."""
        for old in self.ids:
            if old < snapshot_id:
                self._snapshots.delete(old)
        self.look_again()

    def _open(self, snapshot_id: SnapshotId) -> File:
        return self._disk.open(f"{self._directory}/{snapshot_id.file_name}")
