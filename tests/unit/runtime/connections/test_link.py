"""A lasting way to another node, in a simulation."""

from typing import Any

import pytest
from tests.unit.runtime.connections.test_peer import SERVER, Server, Simulated

from ottla.runtime.connections.link import Link, new_peer_memory
from ottla.runtime.connections.peer import PeerLost, PeerSettings
from ottla.testing.simulation.node import PORT
from ottla.wire.messages.metadata import MetadataRequest

REQUEST_TIMEOUT_MS = 30_000


def test_what_is_asked_again_when_a_connection_breaks_goes_to_the_next_one() -> None:
    world = Simulated()
    server = Server(world)
    settings = PeerSettings(learns_versions=False, request_timeout_ms=REQUEST_TIMEOUT_MS)
    link = Link(world.world, new_peer_memory(), SERVER, PORT, settings)
    told: list[Any] = []

    def ask() -> None:
        link.ask(MetadataRequest(topics=()), answered, version=12)

    def answered(answer: Any) -> None:
        told.append(answer)
        if len(told) == 1:
            ask()

    ask()
    world.simulation.run_until(lambda: bool(server.received))
    first, length = server.transport, len(server.received)
    first.close()
    world.simulation.run_until(lambda: len(server.received) > length, within_ms=REQUEST_TIMEOUT_MS // 2)
    assert len(told) == 1
    assert isinstance(told[0], PeerLost)
    assert server.transport is not first


def test_a_node_is_found_by_its_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Simulated()
    server = Server(world)
    monkeypatch.setattr(world.world.network, "resolve", {"node.example": SERVER}.__getitem__)
    settings = PeerSettings(learns_versions=False)
    link = Link(world.world, new_peer_memory(), "node.example", PORT, settings)
    link.ask(MetadataRequest(topics=()), lambda _answer: None, version=12)
    world.simulation.run_until(lambda: bool(server.received), within_ms=REQUEST_TIMEOUT_MS // 2)
    assert server.received


def test_a_peer_that_is_closed_answers_what_it_is_asked() -> None:
    world = Simulated()
    Server(world)
    world.connect()
    world.peer.close()
    world.ask()
    world.simulation.run_until(lambda: bool(world.answers))
    assert isinstance(world.answers[0], PeerLost)
