"""Answers on their way to a socket: bytes and ranges of files, in order.

`flush` sends as much as the socket takes and says what it waits for. It never blocks: not for the peer, and
not for the disk.
"""

from collections import deque
from collections.abc import Sequence
from enum import Enum
from socket import MSG_MORE, socket
from typing import Final, TypeAlias

from ottla.runtime.file_range import SMALL_BYTES_MAX, FileRange

Piece: TypeAlias = bytes | bytearray | memoryview | FileRange

JOIN_BYTES_MAX: Final = 64 * 1024
"""Up to here pieces are joined: one `send` of a copy is cheaper than a `sendmsg` of many pieces."""


class Flushed(Enum):
    """Where a flush ended."""

    ALL = "everything was sent"
    SOCKET_FULL = "the peer has to read first"
    COLD = "the next bytes have to come from the disk first"


class Outbox:
    """What one connection still has to send."""

    __slots__ = ("_pieces", "_socket")

    def __init__(self, sock: socket) -> None:
        self._socket = sock
        self._pieces: deque[Piece] = deque()

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, pieces: Sequence[Piece]) -> None:
        """Queue an answer."""
        self._pieces.extend(pieces)

    def clear(self) -> None:
        """Drop what was not sent."""
        self._pieces.clear()

    def flush(self) -> Flushed:
        """Send what can be sent now. Raises OSError or EOFError when the connection cannot go on."""
        pieces = self._pieces
        while pieces:
            try:
                head = pieces[0]
                if type(head) is FileRange and head.length > SMALL_BYTES_MAX:
                    if not head.send_while_warm(self._socket.fileno()):
                        return Flushed.COLD
                    pieces.popleft()
                elif (is_complete := self._send_run()) is not True:
                    return Flushed.SOCKET_FULL if is_complete is False else Flushed.COLD
            except BlockingIOError:
                return Flushed.SOCKET_FULL
        return Flushed.ALL

    def cold_range(self) -> FileRange:
        """Return the range that a flush stopped at because it is cold."""
        return next(piece for piece in self._pieces if type(piece) is FileRange)

    def _send_run(self) -> bool | None:
        """Send the pieces before the next large range, in one go. False: socket full; None: cold."""
        pieces = self._pieces
        run: list[bytes | bytearray | memoryview] = []
        size = 0
        while pieces and size < JOIN_BYTES_MAX:
            piece = pieces[0]
            if type(piece) is FileRange:
                if piece.length > SMALL_BYTES_MAX:
                    break
                content = piece.read_if_warm()
                if content is None:
                    if run:
                        break
                    return None
                piece = content
            assert not isinstance(piece, FileRange)
            run.append(piece)
            size += len(piece)
            pieces.popleft()
        data = run[0] if len(run) == 1 else b"".join(run)
        # With more to come, the kernel is told to fill the packet: the header of a large answer travels
        # with it.
        try:
            sent = self._socket.send(data, MSG_MORE if pieces else 0)
        except BlockingIOError:
            sent = 0
        if sent < size:
            pieces.appendleft(memoryview(data)[sent:])
            return False
        return True
