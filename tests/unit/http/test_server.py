"""The server that satellites share."""

import socket

from ottla.http.server import listening
from ottla.http.settings import HttpSettings


def test_answers_are_sent_at_once() -> None:
    with (
        listening(HttpSettings()) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
