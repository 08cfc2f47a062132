"""A part of a file on its way to a socket: never read into memory when it is large.

Small ranges are read and sent together with what stands around them in one system call; large ones go by
`sendfile`. Neither may block the event loop on a disk: before a byte is sent, the kernel is asked whether
the pages are in memory (`preadv` with RWF_NOWAIT). If not, the range is cold, and a worker thread has to
`warm` it.
"""

import os
from typing import Final, Protocol

SMALL_BYTES_MAX: Final = 32 * 1024
PROBE_BYTES: Final = 128 * 1024
"""How far apart the probes of a large range lie: the kernel's default read-ahead window."""

_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)


class ReadableFile(Protocol):
    """A file that can be sent from: one of the real disk."""

    def descriptor(self) -> int:
        """Return an open file descriptor. It stays open at least until the next call of the event loop."""

    def pin(self) -> int:
        """Return a descriptor that stays open until `unpin`, for another thread."""

    def unpin(self) -> None:
        """Let the descriptor be closed again."""


class FileRange:
    """`length` bytes of a file from `position` on. Its length is what goes into the answer's size fields."""

    __slots__ = ("file", "length", "position")

    def __init__(self, file: ReadableFile, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def read_if_warm(self) -> bytearray | None:
        """Return the bytes, or None when they would have to come from the disk."""
        content = bytearray(self.length)
        try:
            count = os.preadv(self.file.descriptor(), [content], self.position, _NOWAIT)
        except BlockingIOError:
            return None
        return content if count == self.length else None

    def is_warm(self) -> bool:
        """Say whether the first bytes to be sent are in memory, as far as probes can tell."""
        probe = bytearray(1)
        descriptor = self.file.descriptor()
        try:
            for position in (self.position, self.position + min(self.length, PROBE_BYTES) - 1):
                if os.preadv(descriptor, [probe], position, _NOWAIT) == 0:
                    raise EOFError(f"the file ends before position {position}")
        except BlockingIOError:
            return False
        return True

    def send(self, socket_descriptor: int) -> int:
        """Send what the socket takes of the warm part. Raises BlockingIOError when it takes nothing."""
        count = os.sendfile(
            socket_descriptor, self.file.descriptor(), self.position, min(self.length, PROBE_BYTES)
        )
        self.position += count
        self.length -= count
        return count

    def warm(self) -> None:
        """Read the first bytes from the disk, blocking: for a worker thread."""
        remaining, position = min(self.length, 2 * PROBE_BYTES), self.position
        scratch = memoryview(bytearray(remaining))
        descriptor = self.file.pin()
        try:
            while remaining > 0:
                count = os.preadv(descriptor, [scratch[:remaining]], position)
                if count == 0:
                    raise EOFError(f"the file ends before position {position}")
                remaining -= count
                position += count
        finally:
            self.file.unpin()
