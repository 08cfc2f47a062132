"""A listening socket that bounds the connections which have not shaken hands yet.

A connection over TLS is known to the server only when both sides have agreed on keys. Until then it has a
descriptor and buffers all the same, and who never says anything keeps them for ten seconds. So the listener
itself remembers what it has accepted. When there are too many, the oldest one makes room.
"""

import contextlib
import resource
import socket
from typing import Any, Final

AT_ONCE_MAX: Final = 50


class Listener(socket.socket):
    """Remembers what it has accepted, until that is `known`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.waiting_max = 100
        self._waiting: dict[int, socket.socket] = {}
        self._at_once = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, and make room for it. Raises BlockingIOError also after many at once.

        What was accepted is served, and what made room is closed, only when the event loop goes on. asyncio
        would accept as many as the backlog holds before.
        """
        if self._at_once == AT_ONCE_MAX:
            self._at_once = 0
            raise BlockingIOError
        accepted, address = super().accept()
        self._at_once += 1
        # The number may be that of one that was closed meanwhile: this one is the newest all the same.
        self._waiting.pop(accepted.fileno(), None)
        self._waiting[accepted.fileno()] = accepted
        if len(self._waiting) > self.waiting_max:
            oldest = self._waiting.pop(next(iter(self._waiting)))
            # The server reads its end, and closes it. It may have been closed before.
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        return accepted, address

    def known(self, descriptor: int) -> None:
        """Forget a connection that the server knows now."""
        self._waiting.pop(descriptor, None)


def raise_descriptor_limit() -> None:
    """Allow the process as many descriptors as it may have. Most systems give it 1,024 to begin with."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
