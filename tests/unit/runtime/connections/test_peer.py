"""A connection to another node: to a real one, in a simulation, and to one that answers nonsense."""

from collections.abc import Iterator
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from ottla.runtime.connections.outbox import STAGING_BYTES
from ottla.runtime.connections.peer import NotServed, Peer, PeerLost, PeerMemory, PeerSettings
from ottla.runtime.connections.receive_buffer import SharedBuffer
from ottla.runtime.poller import ServingLoop
from ottla.runtime.real_world import real_world
from ottla.testing.node import ThreadNode
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.testing.simulation.network import WINDOW_BYTES, SimulatedNetwork
from ottla.testing.simulation.node import PORT, SimulatedNode
from ottla.testing.simulation.simulation import Machine, Simulation
from ottla.testing.simulation.workers import SimulatedSyncs, SimulatedWorkers
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.vote import VoteRequest
from ottla.world.network import READABLE, Transport
from ottla.world.world import World

SERVER = "10.0.0.9"
METADATA = 12


def memory() -> PeerMemory:
    return PeerMemory(SharedBuffer(), memoryview(bytearray(STAGING_BYTES)))


class Simulated:
    """A peer in a simulation, and what it is told."""

    def __init__(self, settings: PeerSettings | None = None, host: str = SERVER) -> None:
        self.simulation = Simulation(1)
        self.network = SimulatedNetwork(self.simulation)
        self.machine = Machine(self.simulation, "me", "10.0.0.8")
        self.world = World(
            clock=self.machine,
            scheduler=self.machine,
            workers=SimulatedWorkers(self.machine),
            openers=SimulatedWorkers(self.machine),
            make_syncs=lambda deliver: SimulatedSyncs(self.machine, deliver),
            network=self.network.plug_in(self.machine),
            disk=SimulatedDisk(),
            random=self.machine.rng,
            connections_max=100,
        )
        self.lost: list[PeerLost] = []
        self.answers: list[Any] = []
        self.is_ready = False
        settings = settings or PeerSettings(learns_versions=False)
        self.peer = Peer(self.world, memory(), (host, PORT), settings, self.lost.append)

    def connect(self) -> None:
        def ready() -> None:
            self.is_ready = True

        self.peer.connect(ready)
        self.simulation.run_until(lambda: self.is_ready or bool(self.lost))

    def ask(self) -> None:
        self.peer.ask(MetadataRequest(topics=()), METADATA, self.answers.append)


class Server:
    """A machine that takes what it is sent, and answers what the test says."""

    def __init__(self, world: Simulated) -> None:
        self.simulation = world.simulation
        self.machine = Machine(world.simulation, "server", SERVER)
        self._listening = world.network.plug_in(self.machine).listen(SERVER, PORT)
        self._listening.start(10, self._accept)
        self.transport: Transport
        self.received = b""
        self.reads = True

    def _accept(self) -> None:
        self.transport = self._listening.accept()
        self.transport.watch(self._on_event, READABLE)

    def _on_event(self, _events: int) -> None:
        if not self.reads:
            self.transport.change(0)
            return
        buffer = memoryview(bytearray(100_000))
        try:
            self.received += bytes(buffer[: self.transport.receive_into(buffer)])
        except OSError:
            self.transport.change(0)

    def answer(self, content: bytes) -> None:
        self.simulation.run_for(10)
        self.transport.send(content)
        self.simulation.run_for(10)


@pytest.fixture
def real_node(tmp_path: Path) -> Iterator[ThreadNode]:
    with ThreadNode(tmp_path) as node:
        yield node


def test_a_real_node_answers(real_node: ThreadNode) -> None:
    loop = ServingLoop()
    lost: list[PeerLost] = []
    answers: list[Any] = []
    peer = Peer(real_world(loop), memory(), ("127.0.0.1", real_node.port), PeerSettings(), lost.append)

    def ask() -> None:
        for _ in range(3):
            peer.ask(MetadataRequest(topics=()), peer.version_for(MetadataRequest), answered)

    def answered(answer: Any) -> None:
        answers.append(answer)
        if len(answers) == 3:
            loop.stop()

    peer.connect(ask)
    loop.run_forever()
    assert [type(answer) for answer in answers] == [MetadataResponse] * 3
    assert answers[0].brokers[0].port == real_node.port
    with pytest.raises(NotServed, match="VOTE"):
        peer.version_for(VoteRequest)
    peer.close()
    loop.close()
    assert lost == []


def test_a_port_where_nobody_listens_is_told() -> None:
    from ottla.testing.ports import free_port

    loop = ServingLoop()
    lost: list[PeerLost] = []

    def end(error: PeerLost) -> None:
        lost.append(error)
        loop.stop()

    peer = Peer(real_world(loop), memory(), ("127.0.0.1", free_port()), PeerSettings(), end)
    peer.connect(loop.stop)
    loop.run_forever()
    loop.close()
    assert "Connection refused" in str(lost[0])
    assert peer.is_closed


def test_a_simulated_node_answers_until_its_power_goes() -> None:
    world = Simulated(PeerSettings(), "10.0.0.1")
    node = SimulatedNode(world.simulation, world.network)
    node.start()
    world.connect()
    assert world.peer.version_for(MetadataRequest) >= METADATA
    world.ask()
    world.simulation.run_until(lambda: bool(world.answers))
    assert isinstance(world.answers[0], MetadataResponse)
    world.ask()
    node.cut_power()
    world.simulation.run_until(lambda: bool(world.lost))
    assert "Connection reset by peer" in str(world.lost[0])
    assert world.answers[1] is world.lost[0]


def test_a_machine_that_is_off_is_given_up() -> None:
    world = Simulated(PeerSettings(connect_timeout_ms=500))
    world.connect()
    assert [str(error) for error in world.lost] == [f"{SERVER}:{PORT}: no connection within 500 ms"]
    assert world.simulation.now_us < 600_000


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (pack(">i", -5), "a frame announces -5 bytes"),
        (pack(">i", 0x7FFFFFFF), "a frame announces 2147483647 bytes"),
        (pack(">ii", 4, 99), "response 99 arrived instead of 1"),
        (pack(">ih", 2, 0), "has no correlation id"),
        (pack(">ii", 4, 1), "invalid response"),
        (pack(">iiB", 5, 1, 0) + b"\xff" * 3, "invalid response"),
    ],
)
def test_nonsense_closes_the_connection_and_is_told(content: bytes, complaint: str) -> None:
    world = Simulated()
    server = Server(world)
    world.connect()
    world.ask()
    world.ask()
    server.answer(content)
    (error,) = world.lost
    assert complaint in str(error)
    assert world.answers == [error, error]
    assert world.peer.is_closed
    assert world.peer.in_flight == 0


def test_an_answer_that_nobody_asked_for_closes_the_connection() -> None:
    world = Simulated()
    server = Server(world)
    world.connect()
    server.answer(pack(">ii", 4, 1))
    assert "unexpected response" in str(world.lost[0])


def test_a_silent_node_is_given_up() -> None:
    world = Simulated(PeerSettings(learns_versions=False, request_timeout_ms=700))
    Server(world)
    world.connect()
    world.ask()
    world.simulation.run_until(lambda: bool(world.lost))
    assert "METADATA was not answered in time" in str(world.lost[0])
    assert world.answers == world.lost


def test_a_node_that_closes_ends_what_waits() -> None:
    world = Simulated()
    server = Server(world)
    world.connect()
    world.ask()
    world.simulation.run_for(10)
    server.transport.close()
    world.simulation.run_until(lambda: bool(world.lost))
    assert "it closed the connection" in str(world.lost[0])


def test_a_node_that_does_not_read_fills_the_peer_and_not_the_memory() -> None:
    settings = PeerSettings("x" * 1000, learns_versions=False, in_flight_max=10_000, unsent_bytes_max=50_000)
    world = Simulated(settings)
    server = Server(world)
    server.reads = False
    world.connect()
    world.simulation.run_for(10)
    while not world.peer.is_full:
        world.ask()
    unread = world.peer._unsent_bytes
    assert 50_000 <= unread < 52_000
    server.reads = True
    server.transport.change(READABLE)
    world.simulation.run_until(lambda: world.peer._unsent_bytes == 0)
    world.simulation.run_for(100)
    assert len(server.received) == WINDOW_BYTES + unread


def test_so_many_requests_may_be_in_flight() -> None:
    world = Simulated(PeerSettings(learns_versions=False, in_flight_max=3))
    Server(world)
    world.connect()
    for _ in range(3):
        assert not world.peer.is_full
        world.ask()
    assert world.peer.is_full


def test_who_closes_is_not_told_that_it_is_lost_but_requests_are() -> None:
    world = Simulated()
    Server(world)
    world.connect()
    world.ask()
    world.peer.close()
    world.simulation.run_for(100)
    assert world.lost == []
    assert isinstance(world.answers[0], PeerLost)


def test_an_owner_may_close_while_it_is_answered() -> None:
    world = Simulated()
    server = Server(world)
    world.connect()
    told: list[Any] = []

    def close(answer: Any) -> None:
        told.append(answer)
        world.peer.close()

    for _ in range(2):
        world.peer.ask(ApiVersionsRequest(), 0, close)
    server.answer(pack(">iihi", 10, 1, 0, 0) + pack(">iihi", 10, 2, 0, 0))
    assert [type(answer) for answer in told] == [ApiVersionsResponse, PeerLost]
    assert world.lost == []
