"""The broker epoch in which a node writes to a directory (`.ottla-broker-epoch`).

    {"version":0,"brokerEpoch":492,"directory":"131075-1763427202000000000"}

While the file is there, all below the high watermark is on disk on this node as far as its log was in sync:
no log here is without `ottla.acks.all.sync`, and no sync has failed. So after a kill or a power cut it says
what the mark of a clean stop says after a stop: the replicas here have what they had in that epoch.

    the broker is registered, before it is unfenced   written, and synced
    a log that does not wait for syncs                removed, and synced, before the setting counts
    the disk fails                                    "failed" takes its place, as far as that works
    the next start, before logs are loaded            removed, and synced: a start that is interrupted may
                                                      have cut what was damaged
    a clean stop                                      removed: its mark says more

"failed" stays until a clean stop. If only the process was started again, the kernel may still take what it
could not write for written.

`directory` tells a copy from the original: a copy may be older than what was acknowledged in the same epoch.
"""

import json
from typing import Final

from ottla.storage.log_dirs import meta_properties
from ottla.storage.log_dirs.clean_shutdown import NO_BROKER_EPOCH
from ottla.world.disk import Disk, DiskError, Reason

FILE: Final = ".ottla-broker-epoch"
VERSION: Final = 0
_FAILED: Final = b"failed"


class EpochNote:
    """The file of one log directory."""

    __slots__ = ("_directory", "_disk", "_is_barred", "_is_written", "_path", "last_epoch")

    def __init__(self, disk: Disk, directory: str) -> None:
        """Read what the last run has left. Raises `DiskError` if that cannot be done."""
        self._disk = disk
        self._directory = directory
        self._path = f"{directory}/{FILE}"
        self._is_written = False
        content = self._read()
        # A sync has failed, and nothing may be promised until a clean stop.
        self._is_barred = content == _FAILED
        self.last_epoch = _decode(content, self._identity())
        """The epoch of the last run, or -1 if it may have lost something that counts."""

    def _read(self) -> bytes:
        try:
            return self._disk.read_file(self._path)
        except DiskError as error:
            if error.reason is not Reason.NOT_FOUND:
                raise
            return b""

    def _identity(self) -> str:
        return self._disk.identity(f"{self._directory}/{meta_properties.FILE}")

    def begin(self) -> None:
        """Have the start that begins now count as one that may lose something."""
        if not self._is_barred and self._disk.exists(self._path):
            self._remove_for_good()

    def write(self, broker_epoch: int) -> None:
        """Promise from now on that what is in sync is on disk, for good."""
        if self._is_barred:
            return
        fields = {"version": VERSION, "brokerEpoch": broker_epoch, "directory": self._identity()}
        self._disk.write_file_atomically(self._path, json.dumps(fields, separators=(",", ":")).encode())
        self._is_written = True

    def withdraw(self) -> None:
        """Promise nothing any more, for good."""
        if self._is_written:
            self._is_written = False
            self._remove_for_good()

    def fail(self) -> None:
        """Promise nothing any more, on a disk that has just failed."""
        self._is_barred = True
        try:
            file = self._disk.open(self._path, create=True)
            try:
                file.truncate(0)
                file.write(0, (_FAILED,))
            finally:
                file.close()
        except DiskError:
            # If a process that comes next can still read it, then also what it has promised. Otherwise the
            # machine was restarted, and what is on disk is all there is.
            return

    def remove(self) -> None:
        """Remove the file, since a clean stop says more. Its mark is synced with the directory after this."""
        if self._disk.exists(self._path):
            self._disk.remove(self._path)

    def _remove_for_good(self) -> None:
        self._disk.remove(self._path)
        self._disk.sync_directory(self._directory)


def _decode(content: bytes, identity: str) -> int:
    try:
        fields = json.loads(content)
    except ValueError:
        return NO_BROKER_EPOCH
    match fields:
        case {"version": 0, "brokerEpoch": int(epoch), "directory": str(directory)} if directory == identity:
            return epoch
        case _:
            return NO_BROKER_EPOCH
