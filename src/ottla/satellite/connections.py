"""Connections with bounds on time and count.

A client that sends a request byte by byte, or never reads an answer, holds a connection and its memory. So a
request has to arrive within a time, an answer has to be taken, and when there are too many connections, the
one that has been without a whole request for the longest time makes room.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True)
class ConnectionLimits:
    """Bounds of a server."""

    connections: int = 500
    """With those below they leave some of the 1,024 descriptors that a process has at least."""
    handshakes: int = 200
    """How many connections may not have agreed on TLS yet."""
    head_s: float = 10.0
    """Until the first line and the headers of a request are there."""
    request_s: float = 60.0
    """Until all of a request is there."""
    answer_s: float = 60.0
    """Without a client that takes anything of an answer."""
    handshake_s: float = 10.0
    """Until TLS is agreed on."""


class BoundedConnection(H11Protocol):
    """One connection."""

    def __init__(
        self, limits: ConnectionLimits, known: Callable[[int], None] | None = None, **given: Any
    ) -> None:
        super().__init__(**given)
        self._limits = limits
        self._known = known
        self._timer: asyncio.TimerHandle | None = None
        self._is_heading = True
        self._unsent = 0
        self._waits_since_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, and make room if there are too many."""
        super().connection_made(transport)  # type: ignore[arg-type]
        if self._known is not None:
            self._known(transport.get_extra_info("socket").fileno())
        self._waits_since_s = self.loop.time()
        self._expect_head()
        if len(self.connections) > self._limits.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything."""
        self._cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        was_idle = self._timer is None and self.waits
        super().data_received(data)
        if self.transport.is_closing():
            return
        if was_idle and self._is_begun():
            self._expect_head()
        if self.conn.their_state is h11.SEND_BODY:
            if self._is_heading or self._timer is None:
                self._is_heading = False
                self._start(self._limits.request_s)
        elif not self._is_begun():
            self._cancel()
        self._never_wait_for_ever()

    def on_response_complete(self) -> None:
        """Go on with the next request, once the answer is taken."""
        self._waits_since_s = self.loop.time()
        super().on_response_complete()
        if not self._is_begun():
            self._cancel()
        self._never_wait_for_ever()
        if self.transport.get_write_buffer_size():
            self._watch_answer()

    @property
    def waits(self) -> bool:
        """Say whether no request is being served."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_served(self) -> bool:
        """Say whether all of a request is there, and it is not answered yet."""
        return not self.waits and self.conn.their_state is not h11.SEND_BODY

    @property
    def waits_since_s(self) -> float:
        """The time since when no request is being served."""
        return self._waits_since_s

    def _is_begun(self) -> bool:
        """Say whether a part of a request is there, and the rest is not."""
        state = self.conn.their_state
        return state is h11.SEND_BODY or (state is h11.IDLE and bool(self.conn.trailing_data[0]))

    def _never_wait_for_ever(self) -> None:
        is_bounded = self._timer is not None or self.timeout_keep_alive_task is not None
        if self.waits and not is_bounded and not self.transport.is_closing():
            self._expect_head()

    def _expect_head(self) -> None:
        self._is_heading = True
        self._start(self._limits.head_s)

    def _start(self, seconds: float) -> None:
        self._cancel()
        self._timer = self.loop.call_later(seconds, self.transport.abort)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch_answer(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self.loop.call_later(self._limits.answer_s, self._check_answer)

    def _check_answer(self) -> None:
        left = self.transport.get_write_buffer_size()
        if not left:
            return
        if left >= self._unsent:
            self.transport.abort()
            return
        self._watch_answer()

    def _make_room(self) -> None:
        waiting = [
            one
            for one in self.connections
            if isinstance(one, BoundedConnection) and not one.is_served and not one.transport.is_closing()
        ]
        # There is one at least: this one has had no request yet.
        min(waiting, key=lambda one: one.waits_since_s).transport.abort()
