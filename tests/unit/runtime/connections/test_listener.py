"""Who may connect and who must go."""

import errno
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from struct import pack

import pytest

from ottla.runtime.connections.connection import Connection
from ottla.runtime.connections.listener import ConnectionLimits, Listeners
from ottla.runtime.connections.outbox import Piece
from ottla.runtime.connections.sockets import PlainNetwork, PlainTransport
from ottla.runtime.loop_scheduler import LoopScheduler
from ottla.runtime.poller import ServingLoop
from ottla.runtime.threads import Threads
from ottla.world.network import Transport


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms

    def monotonic_ns(self) -> int:
        return 1_000_000 * self.ms


class Echo:
    """Answers what was asked, or parks it."""

    def receive(self, frame: memoryview) -> Sequence[Piece] | None:
        return None if bytes(frame) == b"park" else [bytes(frame)]

    def close(self) -> None:
        """Nothing has to be let go."""


class World:
    """Listeners on a loop that is turned by hand."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.loop = ServingLoop()
        self.clock = Clock()
        scheduler = LoopScheduler(self.loop)
        self.listeners = Listeners(scheduler, self.clock, limits, lambda _: Echo(), Threads(scheduler).run)
        listening = PlainNetwork(self.loop).listen("127.0.0.1", 0, limits.send_buffer_bytes)
        self.address = listening.address
        self.listeners.add("PLAINTEXT", listening)
        self.listeners.start()
        self.clients: list[socket.socket] = []

    def connect(self, sent: bytes = b"") -> socket.socket:
        client = socket.create_connection(self.address)
        client.settimeout(10)
        client.sendall(sent)
        self.clients.append(client)
        self.turn()
        return client

    def turn(self) -> None:
        for _ in range(5):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def sweep_after(self, ms: int) -> None:
        self.clock.ms += ms
        assert self.listeners._sweep_timer is not None
        self.listeners._sweep_timer.cancel()
        self.listeners._sweep()

    def end(self) -> None:
        self.listeners.close()
        for client in self.clients:
            client.close()
        self.loop.close()


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(getattr(request, "param", ConnectionLimits()))
    yield world
    world.end()


def is_closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("world", [ConnectionLimits(connections_max=2)], indirect=True)
def test_connections_above_the_limit_are_refused(world: World) -> None:
    first, second, third = world.connect(), world.connect(), world.connect()
    assert [is_closed(client) for client in (first, second, third)] == [False, False, True]
    first.close()
    world.turn()
    assert not is_closed(world.connect())
    assert (world.listeners.accepted, world.listeners.refused) == (3, 1)


@pytest.mark.parametrize("world", [ConnectionLimits(connections_max=1)], indirect=True)
def test_a_connection_whose_session_cannot_end_leaves_its_place_to_others(world: World) -> None:
    class Endless(Echo):
        def close(self) -> None:
            raise RuntimeError("a bug of ours")

    world.listeners.make_session = lambda _: Endless()
    for _ in range(3):
        client = world.connect()
        assert not is_closed(client)
        client.close()
        world.turn()
    assert not world.listeners.connections


def test_a_connection_that_cannot_be_served_is_told_of(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def make_session(_: Connection) -> Echo:
        raise OSError(28, "No space left on device")

    world.listeners.make_session = make_session
    assert is_closed(world.connect())
    assert "cannot serve a connection: 127.0.0.1: [Errno 28] No space left on device" in caplog.text


@pytest.mark.parametrize(
    "world",
    [
        ConnectionLimits(connections_per_ip_max=1),
        ConnectionLimits(connections_per_ip_overrides={"127.0.0.1": 1}),
    ],
    indirect=True,
)
def test_one_address_has_a_limit_of_its_own(world: World) -> None:
    assert [is_closed(client) for client in (world.connect(), world.connect())] == [False, True]


@pytest.mark.parametrize("world", [ConnectionLimits(connections_per_ip_max=2)], indirect=True)
def test_each_connection_that_closes_leaves_a_place_to_its_address(world: World) -> None:
    first, second = world.connect(), world.connect()
    for _ in range(3):
        # One of the two stays all the time.
        first.close()
        world.turn()
        first = world.connect()
        assert not is_closed(first)
        assert is_closed(world.connect())
    second.close()
    first.close()
    world.turn()
    assert not world.listeners._per_ip
    assert [is_closed(client) for client in (world.connect(), world.connect(), world.connect())] == [
        False,
        False,
        True,
    ]


def test_so_many_that_were_turned_away_wait_and_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[tuple[Callable[..., object], object]] = []

    class Later:
        def call_later(self, _ms: int, callback: Callable[..., object], client: object) -> None:
            waiting.append((callback, client))

    monkeypatch.setattr("ottla.runtime.connections.listener.TURNED_AWAY_MAX", 1)
    monkeypatch.setattr(world.listeners, "_ask_admission", lambda *_: (0, 3_600_000))
    monkeypatch.setattr(world.listeners, "_scheduler", Later())
    first, second = world.connect(), world.connect()
    # Each holds a descriptor until its time is over: a flood must not take them all.
    assert [is_closed(client) for client in (first, second)] == [False, True]
    callback, client = waiting.pop()
    callback(client)
    assert is_closed(first)
    third = world.connect()
    assert not is_closed(third), "there is a place again"
    assert (world.listeners.accepted, world.listeners.refused) == (0, 3)
    callback, client = waiting.pop()
    callback(client)


def test_a_silent_connection_goes_and_a_parked_one_stays(world: World) -> None:
    silent = world.connect()
    parked = world.connect(pack(">i", 4) + b"park")
    world.sweep_after(601_000)
    world.turn()
    assert is_closed(silent)
    assert not is_closed(parked)


def test_a_frame_that_does_not_end_in_time_ends_the_connection(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    stuck = world.connect(pack(">i", 104_857_600))
    world.sweep_after(29_000)
    assert not is_closed(stuck)
    world.sweep_after(3_000)
    assert is_closed(stuck)
    assert "4 bytes of a frame" in caplog.text


def test_a_large_frame_that_arrives_at_a_decent_rate_has_more_time(world: World) -> None:
    steady = world.connect(pack(">i", 50_000_000))
    for _ in range(40):
        steady.sendall(b"x" * 1_100_000)
        world.turn()
        world.sweep_after(1000)
    assert not is_closed(steady)


def test_garbage_is_told_in_one_line_and_an_own_bug_with_its_traceback(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    garbage = world.connect(pack(">i", -5))
    world.turn()
    assert is_closed(garbage)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]

    world.connect()
    connection: Connection = next(iter(world.listeners.connections))
    connection.fail(KeyError("bug"))
    assert caplog.records[-1].levelno == logging.ERROR
    assert caplog.records[-1].exc_info


def test_no_client_is_accepted_after_the_listeners_stopped(world: World) -> None:
    stays = world.connect()
    world.listeners.stop_accepting()
    with pytest.raises(ConnectionRefusedError):
        world.connect()
    stays.sendall(pack(">i", 2) + b"hi")
    world.turn()
    assert stays.recv(10) == b"hi"


@pytest.mark.parametrize("world", [ConnectionLimits(send_buffer_bytes=30_000)], indirect=True)
def test_connections_get_the_send_buffer_that_was_asked_for(world: World) -> None:
    world.connect()
    (connection,) = world.listeners.connections
    transport = connection._transport
    assert isinstance(transport, PlainTransport)
    # Linux doubles what is asked for, to have room for its own bookkeeping.
    assert transport._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 60_000


def test_who_cannot_be_accepted_because_descriptors_are_used_up_waits_for_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (listening,) = world.listeners._listening.values()
    accept, tried = listening.accept, 0

    def fail() -> Transport:
        nonlocal tried
        tried += 1
        raise OSError(errno.EMFILE, "Too many open files")

    later: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    class Later:
        def call_later(self, _ms: int, callback: Callable[..., object], *args: object) -> None:
            later.append((callback, args))

    monkeypatch.setattr(world.listeners, "_scheduler", Later())
    monkeypatch.setattr(listening, "accept", fail)
    client = world.connect()
    world.turn()
    assert tried == 1, "it is not asked again and again"
    assert "Too many open files" in caplog.text
    monkeypatch.setattr(listening, "accept", accept)
    ((callback, args),) = later
    callback(*args)
    world.turn()
    assert world.listeners.accepted == 1
    assert not is_closed(client)
