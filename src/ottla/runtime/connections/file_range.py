"""A part of a file on its way to a peer.

What is long and in memory goes straight from its file, without a copy, where the transport can do that. All
else is read into the memory that all connections of a loop send from, and never kept: what the transport did
not take is read again. Reading may not block the event loop on a disk, so only what is in memory is read.
Where that ends the range is cold, and a worker has to `warm` it.

Measured on a node that answers fetches of 1 MiB over loopback, CPU seconds for a GB: 1.0 if all is read, and
0.4 at the reader; 0.3 and 0.2 by `sendfile`. Answers of 64 KB cost as much either way (see the decision
"fetch-copies").
"""

from typing import Final

from ottla.world.disk import File
from ottla.world.network import Transport

WARMED_BYTES: Final = 256 * 1024
"""How much of a cold range is read from the disk at once."""

SENDFILE_BYTES_MIN: Final = 128 * 1024
"""From which length on a range is worth a `sendfile`, which takes two calls more."""
SENDFILE_BYTES_MAX: Final = 1 << 20
"""How much is sent by one call: a peer that reads fast must not keep the loop from the others."""
READ_BYTES_LAST: Final = 16 * 1024
"""What is left of a range at its end, to be sent together with what follows it."""


class FileRange:
    """`length` bytes of a file from `position` on. Its length is what goes into the answer's size fields."""

    __slots__ = ("file", "length", "position")

    def __init__(self, file: File, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def read_warm(self, buffer: memoryview) -> int:
        """Fill `buffer` from the start of the range, as far as it is in memory. Returns how many bytes."""
        return self.file.read_now(self.position, buffer[: self.length])

    def is_sendable(self, transport: Transport) -> bool:
        """Say whether `send` is worth while and will not wait for the disk."""
        length = self.length
        if length < SENDFILE_BYTES_MIN or not transport.sends_files:
            return False
        return self.file.is_in_memory(self.position, min(length, SENDFILE_BYTES_MAX))

    def send(self, transport: Transport) -> bool:
        """Send from the start of the range, and forget what is sent. Returns whether all of it was taken."""
        wanted = min(self.length - READ_BYTES_LAST, SENDFILE_BYTES_MAX)
        sent = transport.send_file(self.file, self.position, wanted)
        if sent is None:
            # This file cannot be sent so. The transport knows now, and it will be read.
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
        """Read the first bytes from the disk, blocking: for a worker."""
        self.file.warm(self.position, min(self.length, WARMED_BYTES))
