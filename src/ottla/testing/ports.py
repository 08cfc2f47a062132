"""Ports for servers in tests."""

import random
import socket
from typing import Final

_FIRST: Final = 20_000
_LAST: Final = 32_000
"""Below 32768: from there on the system hands ports out for outgoing connections, and a server that was
stopped could find its port taken when it starts again."""


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on now."""
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(_FIRST, _LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
