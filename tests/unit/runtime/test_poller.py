"""The loop's selector serves clients itself, and everybody else as any selector would."""

import asyncio
import selectors
import socket
from collections.abc import Iterator
from time import monotonic_ns

import pytest

from ottla.runtime.poller import ServingLoop
from ottla.world.network import READABLE, WRITABLE

SECOND_NS = 1_000_000_000


@pytest.fixture
def loop() -> Iterator[ServingLoop]:
    loop = ServingLoop()
    yield loop
    loop.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def turn(loop: ServingLoop) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


Pair = tuple[socket.socket, socket.socket]


def test_a_handler_is_called_as_long_as_there_is_something(loop: ServingLoop, pair: Pair) -> None:
    ours, theirs = pair
    seen: list[int] = []
    loop.poller.add(ours.fileno(), seen.append, READABLE)
    turn(loop)
    assert seen == []
    theirs.send(b"x")
    turn(loop)
    turn(loop)
    assert seen == [READABLE, READABLE]
    loop.poller.change(ours.fileno(), WRITABLE)
    turn(loop)
    assert seen[-1] == WRITABLE
    loop.poller.remove(ours.fileno())
    turn(loop)
    assert len(seen) == 3


def test_what_a_handler_schedules_runs_in_the_same_turn(loop: ServingLoop, pair: Pair) -> None:
    ours, theirs = pair
    ran: list[str] = []
    loop.poller.add(ours.fileno(), lambda _: (loop.call_soon(ran.append, "later"), None)[1], READABLE)
    theirs.send(b"x")
    turn(loop)
    assert ran == ["later"]
    loop.poller.remove(ours.fileno())


def test_a_handler_that_fails_does_not_stop_the_loop(
    loop: ServingLoop, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = pair

    def fail(_: int) -> None:
        raise KeyError("a bug")

    loop.poller.add(ours.fileno(), fail, READABLE)
    theirs.send(b"x")
    turn(loop)
    turn(loop)
    assert "serving a client failed" in caplog.text
    loop.poller.remove(ours.fileno())


def test_a_handler_may_remove_another(loop: ServingLoop) -> None:
    pairs = [socket.socketpair() for _ in range(2)]
    descriptors = [ours.fileno() for ours, _ in pairs]
    left = set(descriptors)

    def remove_all(_: int) -> None:
        for descriptor in descriptors:
            if descriptor in left:
                left.discard(descriptor)
                loop.poller.remove(descriptor)

    for ours, theirs in pairs:
        loop.poller.add(ours.fileno(), remove_all, READABLE)
        theirs.send(b"x")
    turn(loop)
    assert left == set()
    for ours, theirs in pairs:
        ours.close()
        theirs.close()


def test_asyncio_works_on_it(loop: ServingLoop) -> None:
    async def talk() -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readexactly(5) * 100_000)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"hello")
        received = await reader.read(-1)
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()
        return received

    assert loop.run_until_complete(asyncio.wait_for(talk(), 30)) == b"hello" * 100_000


def test_a_file_is_registered_once(loop: ServingLoop, pair: Pair) -> None:
    ours, _ = pair
    loop.poller.register(ours, selectors.EVENT_READ, "data")
    with pytest.raises(KeyError, match="already"):
        loop.poller.register(ours, selectors.EVENT_READ)
    changed = loop.poller.modify(ours, selectors.EVENT_WRITE, "other")
    assert (changed.events, changed.data) == (selectors.EVENT_WRITE, "other")
    assert loop.poller.get_key(ours.fileno()) is changed
    assert loop.poller.select(0) == [(changed, selectors.EVENT_WRITE)]
    loop.poller.unregister(ours)
    with pytest.raises(KeyError):
        loop.poller.unregister(ours)


def test_what_is_gathered_waits_until_there_is_nothing_else_to_do(loop: ServingLoop, pair: Pair) -> None:
    ours, theirs = pair
    order: list[str] = []

    def serve(_: int) -> None:
        order.append(ours.recv(1).decode())
        if order == ["a"]:
            loop.poller.gather(lambda: order.append("together"), monotonic_ns() + 60 * SECOND_NS)
            loop.call_soon(order.append, "soon")

    loop.poller.add(ours.fileno(), serve, READABLE)
    theirs.send(b"abc")
    loop.call_later(0.1, loop.stop)
    loop.run_forever()
    assert order == ["a", "soon", "b", "c", "together"]
    loop.poller.remove(ours.fileno())


def test_what_is_gathered_does_not_wait_for_ever(loop: ServingLoop, pair: Pair) -> None:
    ours, theirs = pair
    turns = 0
    gathered: list[int] = []

    def keep_busy(_: int) -> None:
        nonlocal turns
        turns += 1
        if gathered:
            loop.poller.remove(ours.fileno())
            loop.stop()

    loop.poller.add(ours.fileno(), keep_busy, READABLE)
    theirs.send(b"x")
    loop.poller.gather(lambda: gathered.append(turns), monotonic_ns() + SECOND_NS // 20)
    loop.run_forever()
    assert len(gathered) == 1
    assert gathered[0] > 1


def test_several_may_gather_at_once(loop: ServingLoop, caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    def fail() -> None:
        raise KeyError("a bug")

    loop.poller.gather(fail, monotonic_ns() + 60 * SECOND_NS)
    for name in ("a", "b"):
        loop.poller.gather(lambda name=name: done.append(name), monotonic_ns() + 60 * SECOND_NS)  # type: ignore[misc]
    loop.call_later(0.05, loop.stop)
    loop.run_forever()
    assert done == ["a", "b"]
    assert "gathered work failed" in caplog.text


def test_what_was_gathered_may_schedule(loop: ServingLoop) -> None:
    loop.poller.gather(lambda: (loop.call_soon(loop.stop), None)[1], monotonic_ns() + 60 * SECOND_NS)
    loop.run_forever()
