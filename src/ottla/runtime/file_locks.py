"""Locks on files, which say that a directory is in use."""

import errno
import fcntl
import os
from struct import Struct
from struct import error as struct_error
from typing import Final

from ottla.runtime.disk_errors import disk_error
from ottla.world.disk import DiskError, Reason

_FILE_MODE: Final = 0o600
_FLOCK: Final = Struct("hhqqi")
"""`struct flock`: type, what the start is counted from, start, length, process."""


def _holder(descriptor: int) -> str:
    """Return who holds the lock of a file. A process in another container has no number here."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        *_, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)[: _FLOCK.size])
    except (OSError, struct_error):
        process = 0
    return f"process {process}" if process > 0 else "another process"


class RealLock:
    """A lock on a file that the operating system drops if the process dies."""

    __slots__ = ("_descriptor", "_path")

    # The system's locks do not hold off the process that has them.
    _held: Final[set[str]] = set()

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        if self._path in self._held:
            raise DiskError(path, "lock", Reason.LOCKED, "this process has locked it already")
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        except OSError as error:
            raise disk_error(error, path, "lock") from error
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(self._descriptor)
            os.close(self._descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise DiskError(path, "lock", Reason.LOCKED, holder) from error
            raise disk_error(error, path, "lock") from error
        self._held.add(self._path)

    def is_in_place(self) -> bool:
        """Say whether the file that is locked is still the one at its path."""
        try:
            there = os.stat(self._path)
            held = os.fstat(self._descriptor)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)

    def release(self) -> None:
        """Let other processes have it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._held.discard(self._path)
