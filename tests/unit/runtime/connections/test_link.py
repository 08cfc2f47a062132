"""A lasting way to another node, in a simulation."""

import itertools
from typing import Any

import pytest
from tests.unit.runtime.connections.test_peer import SERVER, Server, Simulated

from ottla.runtime.connections.link import BACK_OFF_MS_MIN, WAITING_MAX, Link, new_peer_memory
from ottla.runtime.connections.peer import PeerLost, PeerSettings, Unanswered
from ottla.testing.simulation.node import PORT
from ottla.wire.messages.metadata import MetadataRequest

REQUEST_TIMEOUT_MS = 30_000


def test_what_is_asked_again_when_a_connection_breaks_goes_to_the_next_one() -> None:
    world = Simulated()
    server = Server(world)
    settings = PeerSettings(learns_versions=False, request_timeout_ms=REQUEST_TIMEOUT_MS)
    link = Link(world.world, new_peer_memory(), lambda: (SERVER, PORT), settings)
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
    link = Link(world.world, new_peer_memory(), lambda: ("node.example", PORT), settings)
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


def test_a_node_that_nobody_knows_is_looked_for_again() -> None:
    world = Simulated()
    server = Server(world)
    known: list[tuple[str, int]] = []
    settings = PeerSettings(learns_versions=False)
    link = Link(world.world, new_peer_memory(), lambda: known[0] if known else None, settings)
    told: list[Any] = []
    link.ask(MetadataRequest(topics=()), told.append, version=12)
    assert told == []
    world.simulation.run_until(lambda: bool(told))
    assert isinstance(told[0], Unanswered)
    known.append((SERVER, PORT))
    link.ask(MetadataRequest(topics=()), told.append, version=12)
    world.simulation.run_until(lambda: bool(server.received))
    assert len(told) == 1


def test_a_host_name_that_takes_too_long_to_look_up_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Simulated()
    monkeypatch.setattr(world.world.workers, "run", lambda _work, _done: None)
    settings = PeerSettings(learns_versions=False, connect_timeout_ms=700)
    link = Link(world.world, new_peer_memory(), lambda: ("node.example", PORT), settings)
    told: list[Any] = []
    link.ask(MetadataRequest(topics=()), told.append, version=12)
    world.simulation.run_until(lambda: bool(told), within_ms=1000)
    assert isinstance(told[0], Unanswered)
    assert "node.example" in str(told[0])


def test_only_so_many_requests_wait_for_a_connection() -> None:
    world = Simulated()
    Server(world)
    link = Link(world.world, new_peer_memory(), lambda: (SERVER, PORT), PeerSettings())
    told: list[Any] = []
    for _ in range(WAITING_MAX + 1):
        link.ask(MetadataRequest(topics=()), told.append)
    world.simulation.run_until(lambda: bool(told))
    assert len(told) == 1
    assert "waiting" in str(told[0])


def test_a_connection_is_not_tried_again_at_once() -> None:
    """Nobody knows the node. Who asks again after each failure makes no more attempts than allowed."""
    world = Simulated()
    attempts: list[int] = []

    def find_address() -> None:
        attempts.append(1)

    settings = PeerSettings(learns_versions=False)
    link = Link(world.world, new_peer_memory(), find_address, settings, BACK_OFF_MS_MIN)

    def ask(_answer: object = None) -> None:
        link.ask(MetadataRequest(topics=()), ask, version=12)

    ask()
    began_ms = world.simulation.now_us // 1000
    world.simulation.run_until(lambda: len(attempts) > 20)
    assert world.simulation.now_us // 1000 - began_ms >= 20 * BACK_OFF_MS_MIN


def attempts_of(world: Simulated, link: Link, failures: list[int], count: int) -> list[int]:
    """Ask again after each failure, and return how long it took until each next attempt."""

    def ask(_answer: object = None) -> None:
        link.ask(MetadataRequest(topics=()), ask, version=12)

    ask()
    world.simulation.run_until(lambda: len(failures) > count)
    return [after - before for before, after in itertools.pairwise(failures)]


def test_attempts_come_later_each_time_until_one_succeeds() -> None:
    world = Simulated()
    attempts: list[int] = []
    place: list[tuple[str, int]] = []

    def find_address() -> tuple[str, int] | None:
        attempts.append(world.simulation.now_us // 1000)
        return place[0] if place else None

    settings = PeerSettings(learns_versions=False)
    link = Link(world.world, new_peer_memory(), find_address, settings, 1_000)
    waits = attempts_of(world, link, attempts, 7)
    assert waits[:7] == [50, 100, 200, 400, 800, 1000, 1000]

    server = Server(world)
    place.append((SERVER, PORT))
    link.ask(MetadataRequest(topics=()), lambda _answer: None, version=12)
    world.simulation.run_until(lambda: bool(server.received))
    place.clear()
    attempts.clear()
    server.transport.close()
    world.simulation.run_until(lambda: len(attempts) > 2)
    # It was well for a moment, so the next trouble is a new one.
    assert attempts[1] - attempts[0] <= 2 * BACK_OFF_MS_MIN


def test_a_link_that_is_closed_refuses_what_waits_and_what_comes() -> None:
    world = Simulated()
    link = Link(world.world, new_peer_memory(), lambda: None, PeerSettings(learns_versions=False))
    told: list[Any] = []
    link.ask(MetadataRequest(topics=()), told.append, version=12)
    link.close()
    link.close()
    assert len(told) == 1
    assert isinstance(told[0], PeerLost)
    link.ask(MetadataRequest(topics=()), told.append, version=12)
    world.simulation.run_until(lambda: len(told) > 1)
    assert isinstance(told[1], PeerLost)
