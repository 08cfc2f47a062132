"""A part of a file on its way to a socket.

What is long and in memory goes by `sendfile`, without a copy. All else is read into the memory that all
connections of a loop send from, and never kept: what the socket did not take is read again. Reading may not
block the event loop on a disk, so the kernel is asked for what it has in memory (`preadv` with RWF_NOWAIT).
Where that ends the range is cold, and a worker thread has to `warm` it.

Measured on a node that answers fetches of 1 MiB over loopback, CPU seconds for a GB: 1.0 if all is read, and
0.4 at the reader; 0.3 and 0.2 by `sendfile`. Answers of 64 KB cost as much either way (see the decision
"fetch-copies").
"""

import errno
import os
from socket import socket
from typing import ClassVar, Final, Protocol

from ottla.runtime.page_cache import is_in_memory

WARMED_BYTES: Final = 256 * 1024
"""How much of a cold range is read from the disk at once."""

SENDFILE_BYTES_MIN: Final = 128 * 1024
"""From which length on a range is worth a `sendfile`, which takes two calls more."""
SENDFILE_BYTES_MAX: Final = 1 << 20
"""How much is sent by one call: a peer that reads fast must not keep the loop from the others."""
READ_BYTES_LAST: Final = 16 * 1024
"""What is left of a range at its end, to be sent together with what follows it."""

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

    can_sendfile: ClassVar = True

    def __init__(self, file: ReadableFile, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def read_warm(self, buffer: memoryview) -> int:
        """Fill `buffer` from the start of the range, as far as it is in memory. Returns how many bytes."""
        wanted = (buffer[: self.length],)
        descriptor = self.file.descriptor()
        try:
            count = os.preadv(descriptor, wanted, self.position, _NOWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            # A file system in memory (tmpfs) knows no such flag and needs none. One over a network may.
            count = os.preadv(descriptor, wanted, self.position)
        if count == 0:
            raise EOFError(f"the file ends before position {self.position}")
        return count

    def is_sendable(self) -> bool:
        """Say whether `send` is worth while and will not wait for the disk."""
        length = self.length
        if length < SENDFILE_BYTES_MIN or not self.can_sendfile:
            return False
        return is_in_memory(self.file.descriptor(), self.position, min(length, SENDFILE_BYTES_MAX))

    def send(self, sock: socket) -> bool:
        """Send from the start of the range, and forget what is sent. Returns whether the socket took all."""
        wanted = min(self.length - READ_BYTES_LAST, SENDFILE_BYTES_MAX)
        try:
            sent = os.sendfile(sock.fileno(), self.file.descriptor(), self.position, wanted)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOSYS):
                raise
            # Not every file system can: from now on everything is read.
            FileRange.can_sendfile = False
            return True
        if sent == 0:
            raise EOFError(f"the file ends before position {self.position}")
        self.skip(sent)
        return sent == wanted

    def skip(self, count: int) -> None:
        """Leave out the first bytes: they are sent."""
        self.position += count
        self.length -= count

    def warm(self) -> None:
        """Read the first bytes from the disk, blocking: for a worker thread."""
        remaining, position = min(self.length, WARMED_BYTES), self.position
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
