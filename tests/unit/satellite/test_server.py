"""The server that satellites share."""

import socket

from ottla.satellite.server import listening
from ottla.satellite.settings import HttpSettings


def test_answers_are_sent_at_once() -> None:
    with (
        listening(HttpSettings()) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
