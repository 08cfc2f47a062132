"""Real sockets on the loop of a node: connecting, giving up, and what was gone before it was served."""

import socket
from collections.abc import Iterator

import pytest

from ottla.runtime.connections.sockets import PlainNetwork
from ottla.runtime.poller import ServingLoop
from ottla.world.network import Transport


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
