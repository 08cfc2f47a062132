"""Answers on their way to a peer: bytes and ranges of files, in order.

`flush` sends as much as the transport takes and says what it waits for. It never blocks: not for the peer,
and not for the disk. Long ranges go straight from their files. All else goes through memory that all
outboxes of a loop share, so that a head, records and a tail leave in one call, and a peer that does not read
costs nothing.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final, TypeAlias

from ottla.runtime.connections.file_range import SENDFILE_BYTES_MIN, FileRange
from ottla.world.network import Transport

Piece: TypeAlias = bytes | bytearray | memoryview | FileRange

STAGING_BYTES: Final = 128 * 1024
"""How much is sent at once. With Kafka's send buffers of 100 KB (the kernel doubles that) more was slower."""


FLUSH_BYTES_MAX: Final = 4 << 20
"""How much is sent to one peer before others have their turn."""


class HeldAnswer(list[Piece]):
    """The pieces of an answer whose memory is counted: `release` is called when it is sent or dropped."""

    __slots__ = ("release",)

    def __init__(self, pieces: Iterable[Piece], release: Callable[[], None]) -> None:
        super().__init__(pieces)
        self.release = release


class Flushed(Enum):
    """Where a flush ended."""

    ALL = "everything was sent"
    SOCKET_FULL = "the peer has to read first"
    COLD = "the next bytes have to come from the disk first"


class Outbox:
    """What one connection still has to send."""

    __slots__ = ("_pieces", "_staging", "_transport")

    def __init__(self, transport: Transport, staging: memoryview) -> None:
        """`staging` may be used by others between two calls."""
        self._transport = transport
        self._staging = staging
        self._pieces: deque[Piece] = deque()

    def __bool__(self) -> bool:
        return bool(self._pieces)

    @property
    def size_bytes(self) -> int:
        """How many bytes wait."""
        return sum(map(len, self._pieces))

    def add(self, pieces: Sequence[Piece]) -> None:
        """Queue an answer."""
        self._pieces.extend(filter(len, pieces))

    def clear(self) -> None:
        """Drop what was not sent."""
        self._pieces.clear()

    def flush(self) -> Flushed:
        """Send what can be sent now. Raises OSError or EOFError when the connection cannot go on."""
        pieces, transport = self._pieces, self._transport
        flushed_bytes = 0
        try:
            while pieces:
                if flushed_bytes > FLUSH_BYTES_MAX:
                    # The socket is writable still, so this goes on at once after everybody else.
                    return Flushed.SOCKET_FULL
                piece = pieces[0]
                if type(piece) is FileRange and piece.is_sendable(transport):
                    if not piece.send(transport):
                        return Flushed.SOCKET_FULL
                    continue
                staged, taken = self._stage()
                if not staged:
                    return Flushed.COLD
                send = transport.send_more if taken < len(pieces) else transport.send
                sent = send(self._staging[:staged])
                self._drop(sent)
                flushed_bytes += sent
                if sent < staged:
                    return Flushed.SOCKET_FULL
        except BlockingIOError:
            return Flushed.SOCKET_FULL
        return Flushed.ALL

    def cold_range(self) -> FileRange:
        """Return the range that a flush stopped at because it is cold."""
        head = self._pieces[0]
        assert isinstance(head, FileRange), "a flush stops only at a range of a file"
        return head

    def _stage(self) -> tuple[int, int]:
        """Copy what comes next to the shared buffer. Returns how many bytes, and of how many whole pieces."""
        staging = self._staging
        staged = taken = 0
        for piece in self._pieces:
            size = len(piece)
            room = len(staging) - staged
            if type(piece) is FileRange:
                if staged and size >= SENDFILE_BYTES_MIN:
                    break
                count = piece.read_warm(staging[staged:])
            elif size <= room:
                staging[staged : staged + size] = piece  # type: ignore[assignment]
                count = size
            else:
                staging[staged:] = memoryview(piece)[:room]  # type: ignore[arg-type]
                count = room
            staged += count
            if count < size:
                break
            taken += 1
            if staged == len(staging):
                break
        return staged, taken

    def _drop(self, sent: int) -> None:
        """Forget what was sent."""
        pieces = self._pieces
        while sent:
            piece = pieces[0]
            size = len(piece)
            if sent >= size:
                pieces.popleft()
                sent -= size
            elif type(piece) is FileRange:
                piece.skip(sent)
                return
            else:
                pieces[0] = memoryview(piece)[sent:]  # type: ignore[arg-type]
                return
