"""Real sockets on the loop of a node: connecting, giving up, and what was gone before it was served."""

import errno
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.runtime.connections.sockets import PlainNetwork, PlainTransport
from ottla.runtime.poller import ServingLoop
from ottla.world.network import READABLE, Transport


@pytest.fixture
def loop() -> Iterator[ServingLoop]:
    loop = ServingLoop()
    yield loop
    loop.close()


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")


class Peer:
    """Somebody who listens, and who connects to that."""

    def __init__(self, loop: ServingLoop, host: str = "127.0.0.1") -> None:
        self.loop = loop
        self.network = PlainNetwork(loop)
        self.listening = self.network.listen(host, 0)
        self.accepted: list[Transport] = []
        self.listening.start(10, lambda: self.accepted.append(self.listening.accept()))
        self.connected: list[Transport] = []
        self.failed: list[OSError] = []

    def turn(self, times: int = 5) -> None:
        for _ in range(times):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def until_connected(self) -> None:
        for _ in range(1000):
            if self.connected and self.accepted:
                return
            self.turn(1)
        raise AssertionError("nobody has connected")

    def close(self) -> None:
        for transport in (*self.connected, *self.accepted):
            transport.close()
        self.listening.close()


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
def test_a_peer_is_connected_to_by_its_address(loop: ServingLoop, host: str) -> None:
    peer = Peer(loop, host)
    peer.network.connect(*peer.listening.address, peer.connected.append, peer.failed.append)
    assert not peer.connected, "never before it has returned"
    peer.until_connected()
    peer.connected[0].send(b"hello")
    buffer = memoryview(bytearray(10))
    peer.turn()
    assert bytes(buffer[: peer.accepted[0].receive_into(buffer)]) == b"hello"
    assert not peer.failed
    peer.close()


@pytest.mark.parametrize("turns", [0, 1])
def test_who_gives_up_hears_nothing_and_leaves_no_connection(loop: ServingLoop, turns: int) -> None:
    peer = Peer(loop)
    connecting = peer.network.connect(*peer.listening.address, peer.connected.append, peer.failed.append)
    loop.call_soon(connecting.cancel)
    if not turns:
        connecting.cancel()
    peer.turn()
    connecting.cancel()
    assert not peer.connected
    assert not peer.failed
    for transport in peer.accepted:
        assert transport.is_closed_by_peer(), "it was made, and is closed"
    peer.close()


def test_an_address_where_nobody_listens_is_told(loop: ServingLoop) -> None:
    peer = Peer(loop)
    host, port = peer.listening.address
    peer.close()
    peer.network.connect(host, port, peer.connected.append, peer.failed.append)
    for _ in range(1000):
        if peer.failed:
            break
        peer.turn(1)
    assert isinstance(peer.failed[0], ConnectionRefusedError)
    assert not peer.connected


def test_nobody_is_accepted_while_it_pauses(loop: ServingLoop) -> None:
    peer = Peer(loop)
    peer.listening.pause()
    peer.network.connect(*peer.listening.address, peer.connected.append, peer.failed.append)
    peer.turn()
    assert not peer.accepted
    peer.listening.resume()
    peer.until_connected()
    peer.close()


@needs_ipv6
def test_a_family_of_addresses_leaves_the_port_to_the_other(loop: ServingLoop) -> None:
    network = PlainNetwork(loop)
    four = network.listen("0.0.0.0", 0)
    six = network.listen("::", four.address[1])
    assert six.address[1] == four.address[1]
    four.close()
    six.close()


def test_names_are_found(loop: ServingLoop) -> None:
    network = PlainNetwork(loop)
    assert network.resolve("localhost") == "127.0.0.1"
    assert network.host_name() == socket.gethostname()


def test_what_is_closed_is_watched_no_more_and_its_number_may_be_used_again(loop: ServingLoop) -> None:
    peer = Peer(loop)
    peer.network.connect(*peer.listening.address, peer.connected.append, peer.failed.append)
    peer.until_connected()
    (ours,), (theirs,) = peer.connected, peer.accepted
    heard: list[int] = []
    theirs.watch(heard.append, READABLE)
    ours.send(b"hello")
    peer.turn()
    assert heard
    assert set(heard) == {READABLE}
    theirs.change(0)
    heard.clear()
    peer.turn()
    assert not heard
    theirs.change(READABLE)
    theirs.close()
    theirs.close()
    # The next connection gets the number of the one that is closed, and none of its events.
    left, right = socket.socketpair()
    with left, right:
        right.send(b"for somebody else")
        heard.clear()
        loop.poller.add(left.fileno(), lambda _events: None, READABLE)
        peer.turn()
        assert not heard
        loop.poller.discard(left.fileno())
    peer.close()


def test_a_connection_that_fails_is_told_once_and_leaves_nothing_watched(loop: ServingLoop) -> None:
    peer = Peer(loop)
    host, port = peer.listening.address
    peer.close()
    connecting = peer.network.connect(host, port, peer.connected.append, peer.failed.append)
    for _ in range(1000):
        if peer.failed:
            break
        peer.turn(1)
    peer.turn()
    assert len(peer.failed) == 1
    assert not peer.connected
    connecting.cancel()
    # An address that cannot be connected to at all is told in the same way, and never at once.
    peer.network.connect("no address", 1, peer.connected.append, peer.failed.append)
    assert len(peer.failed) == 1
    peer.turn()
    assert len(peer.failed) == 2


def test_an_address_that_is_taken_is_refused_and_given_back(loop: ServingLoop) -> None:
    network = PlainNetwork(loop)
    first = network.listen("127.0.0.1", 0)
    first.start(1, lambda: None)
    with pytest.raises(OSError, match="in use"):
        network.listen("127.0.0.1", first.address[1])
    first.close()
    first.close()
    network.listen("127.0.0.1", first.address[1]).close()


def test_small_answers_are_not_held_back_and_buffers_are_as_large_as_asked_for(loop: ServingLoop) -> None:
    peer = Peer(loop)
    peer.network.connect(*peer.listening.address, peer.connected.append, peer.failed.append)
    peer.until_connected()
    for transport in (*peer.connected, *peer.accepted):
        assert isinstance(transport, PlainTransport)
        option = transport._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert option
    assert peer.accepted[0].peer_port == peer.connected[0].local[1]
    assert peer.accepted[0].local == peer.listening.address
    peer.close()
    sizes = []
    for wanted in (-1, 20_000):
        listening = peer.network.listen("127.0.0.1", 0, wanted)
        sizes.append(listening._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
        listening.close()
    # The kernel doubles what is asked for.
    assert sizes[1] == 40_000
    assert sizes[0] != sizes[1]


def test_a_part_of_a_file_is_sent_without_a_copy(loop: ServingLoop, tmp_path: Path) -> None:
    peer = Peer(loop)
    peer.network.connect(*peer.listening.address, peer.connected.append, peer.failed.append)
    peer.until_connected()
    (tmp_path / "log").write_bytes(b"0123456789")
    with (tmp_path / "log").open("rb") as opened:
        file: Any = SimpleNamespace(descriptor=opened.fileno)
        ours = peer.connected[0]
        assert isinstance(ours, PlainTransport)
        assert ours.sends_files
        ours.send_more(b"head ")
        assert ours.send_file(file, 3, 4) == 4
        buffer = memoryview(bytearray(20))
        found = b""
        while len(found) < 9:
            peer.turn(1)
            with suppress(BlockingIOError):
                found += bytes(buffer[: peer.accepted[0].receive_into(buffer)])
        assert found == b"head 3456"
    peer.close()


@pytest.mark.parametrize(
    ("number", "is_over"), [(errno.EINVAL, True), (errno.ENOSYS, True), (errno.EPIPE, False)]
)
def test_files_that_cannot_be_sent_so_are_sent_otherwise_from_then_on(
    loop: ServingLoop, monkeypatch: pytest.MonkeyPatch, number: int, is_over: bool
) -> None:
    def refuse(*_told: Any) -> int:
        raise OSError(number, "no")

    monkeypatch.setattr(PlainTransport, "can_sendfile", True)
    monkeypatch.setattr("os.sendfile", refuse)
    left, right = socket.socketpair()
    with left, right:
        transport = PlainTransport(loop, left, "h", 1)
        file: Any = SimpleNamespace(descriptor=lambda: 0)
        if is_over:
            assert transport.send_file(file, 0, 1) is None
            assert not transport.sends_files
        else:
            with pytest.raises(BrokenPipeError):
                transport.send_file(file, 0, 1)
            assert transport.sends_files
