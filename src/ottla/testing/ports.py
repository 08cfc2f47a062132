"""Ports for servers in tests."""

import os
import random
import socket
from typing import Final

_FIRST: Final = 20_000
_LAST: Final = 32_000
"""Below 32768: from there on the system hands ports out for outgoing connections, and a server that was
stopped could find its port taken when it starts again."""

_untried: list[int] = []
"""In the order of chance, the next one last. A port is not used twice before all others were: a test may have
looked for one and not listen on it yet."""


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on now."""
    while True:
        if not _untried:
            _untried.extend(_shuffled_ports())
        port = _untried.pop()
        if is_free(port):
            return port


def is_free(port: int) -> bool:
    """Say whether nobody listens on a port of 127.0.0.1 now."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _shuffled_ports() -> list[int]:
    """Return the ports of this process: each worker of pytest-xdist has its own.

    Chance is the system's, because pytest plugins seed Python's in the same way in each worker.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    count = (_LAST - _FIRST) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ports = list(range(_FIRST + worker * count, _FIRST + (worker + 1) * count))
    random.SystemRandom().shuffle(ports)
    return ports
