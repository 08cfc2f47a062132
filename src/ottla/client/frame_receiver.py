"""Cuts what a socket brings into frames. A large frame is received into the very buffer that is handed on.

Answers to fetches are most of what a client receives. Through a stream reader their bytes were copied four
times after the kernel had done so; here they are not copied at all.

A size field is believed only as far as bytes have come: the buffer starts at a megabyte at most, and doubles
while it fills. Small frames are copied out, so that they do not keep a whole buffer alive.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from ottla.wire.errors import MalformedBytes
from ottla.wire.framing import FRAME_BYTES_MAX, frame_end

_BUFFER_BYTES_MIN: Final = 1 << 16
_BUFFER_BYTES_FIRST: Final = 1 << 20

Frame = bytes | memoryview


class FrameReceiver(asyncio.BufferedProtocol):
    """Calls `received` with each frame, without its size field, and `lost` once when the stream is over.

    An error that `received` raises, and a frame that no broker would send, end the stream.
    """

    def __init__(self, received: Callable[[Frame], None], lost: Callable[[Exception | None], None]) -> None:
        self._received = received
        self._lost = lost
        self._view = memoryview(bytearray(_BUFFER_BYTES_MIN))
        self._end = 0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.takes_more = asyncio.Event()
        """Set while the other side reads what is written. If no answer is awaited, look at it first."""
        self.takes_more.set()

    def pause_writing(self) -> None:
        """Take note that what was written before has not left yet."""
        self.takes_more.clear()

    def resume_writing(self) -> None:
        """Take note that it has left."""
        self.takes_more.set()

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Say where the next bytes go."""
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes that have come."""
        self._end += nbytes
        try:
            self._cut()
        except MalformedBytes as error:
            self._lost(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that the stream is over."""
        self.takes_more.set()
        self._lost(exc)
        if not self.closed.done():
            self.closed.set_result(None)

    def _cut(self) -> None:
        """Hand on the frames that are whole, and make room for the rest of the next."""
        view, start, is_given_away = self._view, 0, False
        while (
            stop := frame_end(view[: self._end], start, FRAME_BYTES_MAX)
        ) is not None and stop <= self._end:
            frame = view[start + 4 : stop]
            if len(frame) < _BUFFER_BYTES_MIN:
                self._received(bytes(frame))
            else:
                is_given_away = True
                self._received(frame)
            start = stop
        rest_bytes = self._end - start
        needed_bytes = _BUFFER_BYTES_MIN if stop is None else max(stop - start, _BUFFER_BYTES_MIN)
        is_small = len(view) < min(needed_bytes, _BUFFER_BYTES_FIRST)
        room = view
        if is_given_away or is_small or rest_bytes == len(view):
            room = memoryview(bytearray(min(needed_bytes, max(_BUFFER_BYTES_FIRST, 2 * rest_bytes))))
        if start or room is not view:
            room[:rest_bytes] = view[start : self._end]
            self._view, self._end = room, rest_bytes
