"""A part of a file on its way to a socket: never read into memory when it is large.

Small ranges are read and sent together with what stands around them in one system call; large ones go by
`sendfile`. Neither may block the event loop on a disk: before a byte is sent, the kernel is asked whether
the pages are in memory (`preadv` with RWF_NOWAIT). If not, the range is cold, and a worker thread has to
`warm` it.
"""

import os
from typing import Final, Protocol

SMALL_BYTES_MAX: Final = 32 * 1024
CHUNK_BYTES: Final = 256 * 1024
"""How much of a large range is sent at once. Its first and last byte are probed before."""

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

    def send_while_warm(self, socket_descriptor: int) -> bool:
        """Send by `sendfile` as long as the pages are in memory. Say whether everything was sent.

        False: the next bytes are cold. Raises BlockingIOError when the socket takes no more.
        """
        descriptor = self.file.descriptor()
        while self.length > 0:
            chunk = min(self.length, CHUNK_BYTES)
            if not _is_warm(descriptor, self.position, chunk):
                return False
            count = os.sendfile(socket_descriptor, descriptor, self.position, chunk)
            if count == 0:
                raise EOFError(f"the file ends before position {self.position}")
            self.position += count
            self.length -= count
        return True

    def warm(self) -> None:
        """Read the first bytes from the disk, blocking: for a worker thread."""
        remaining, position = min(self.length, CHUNK_BYTES), self.position
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


_probed: Final = [bytearray(1)]


def _is_warm(descriptor: int, position: int, length: int) -> bool:
    """Say whether bytes are in memory, as far as the first and the last of them tell."""
    try:
        for probe in (position, position + length - 1):
            if os.preadv(descriptor, _probed, probe, _NOWAIT) == 0:
                raise EOFError(f"the file ends before position {probe}")
    except BlockingIOError:
        return False
    return True
