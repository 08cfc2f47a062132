"""Connections that have not shaken hands are few."""

import resource
import socket
from contextlib import closing

import pytest

from ottla.satellite.listener import AT_ONCE_MAX, Listener, raise_descriptor_limit


def test_the_oldest_connection_that_says_nothing_makes_room() -> None:
    with Listener() as listener, closing(socket.socket()) as known:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.waiting_max = 2
        known.connect(listener.getsockname())
        served = listener.accept()[0]
        listener.known(served.fileno())
        clients = [socket.create_connection(listener.getsockname(), 60) for _ in range(3)]
        accepted = [listener.accept()[0] for _ in clients]
        # What is known, and what came later, goes on.
        for sender, receiver in ((served, known), (accepted[1], clients[1]), (accepted[2], clients[2])):
            sender.sendall(b"here")
            assert receiver.recv(10) == b"here"
        assert clients[0].recv(10) == b""
        for one in (served, *clients, *accepted):
            one.close()


def test_what_is_closed_takes_no_room_from_what_is_new() -> None:
    with Listener() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.waiting_max = 2
        for _ in range(5):
            # Each gets the number of the one before.
            socket.create_connection(listener.getsockname(), 60).close()
            listener.accept()[0].close()
        client = socket.create_connection(listener.getsockname(), 60)
        accepted = listener.accept()[0]
        accepted.sendall(b"here")
        assert client.recv(10) == b"here"
        client.close()
        accepted.close()


def test_a_flood_is_accepted_in_turns_with_what_it_needs() -> None:
    with Listener() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(2 * AT_ONCE_MAX)
        clients = [socket.create_connection(listener.getsockname(), 60) for _ in range(AT_ONCE_MAX + 1)]
        accepted = [listener.accept()[0] for _ in range(AT_ONCE_MAX)]
        with pytest.raises(BlockingIOError):
            listener.accept()
        accepted.append(listener.accept()[0])
        for one in (*clients, *accepted):
            one.close()


def test_a_process_takes_all_the_descriptors_that_it_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 20_000))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: wanted.append((kind, limits)))
    raise_descriptor_limit()
    assert wanted == [(resource.RLIMIT_NOFILE, (20_000, 20_000))]
