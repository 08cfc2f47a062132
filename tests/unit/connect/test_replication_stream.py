"""What is read of a slot, and which statuses its server gets meanwhile."""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from ottla.connect.connectors.sql.database import DatabaseGone
from ottla.connect.connectors.sql.replication_stream import ReadTo, ReplicationStream

ROOM = 8 << 20


class Server:
    """What libpq shows of a connection. A byte in the socket stands for messages that can be read."""

    def __init__(self) -> None:
        self._end, self._mine = socket.socketpair()
        self.socket = self._mine.fileno()
        self.waiting: deque[bytes] = deque()
        self.told: list[int] = []
        self.is_ended = False
        self.is_broken = False

    def send(self, *messages: bytes) -> None:
        self.waiting += messages
        self._end.send(b"x")

    def data(self, *payloads: bytes) -> None:
        self.send(*(struct.pack(">cQQq", b"w", 1, 1, 0) + payload for payload in payloads))

    def keepalive(self, lsn: int, *, wants_answer: bool = False) -> None:
        self.send(struct.pack(">cQqB", b"k", lsn, 0, wants_answer))

    def close(self) -> None:
        self._end.close()
        self._mine.close()

    def consume_input(self) -> None:
        if self.is_broken:
            raise psycopg.OperationalError("the connection is lost")
        self._mine.setblocking(False)
        try:
            self._mine.recv(1 << 10)
        except BlockingIOError:
            return

    def get_copy_data(self, _async: int) -> tuple[int, bytes]:
        if self.waiting:
            data = self.waiting.popleft()
            return len(data), data
        return (-1, b"") if self.is_ended else (0, b"")

    def get_result(self) -> Any:
        return SimpleNamespace(error_message=b"ERROR: the slot was dropped")

    def put_copy_data(self, data: bytes) -> None:
        kind, written, flushed, applied, _when, _wants = struct.unpack(">cQQQqB", data)
        assert (kind, written, applied) == (b"r", flushed, flushed)
        self.told.append(flushed)

    def flush(self) -> int:
        return 0


def run(story: Any, *, tell_every_s: float = 60.0) -> None:
    async def whole() -> None:
        server = Server()
        connection: Any = SimpleNamespace(pgconn=server, close=server.close)
        stream = ReplicationStream(connection, tell_every_s)
        try:
            async with asyncio.timeout(60):
                told: Coroutine[Any, Any, None] = story(server, stream)
                await told
        finally:
            stream.close()

    asyncio.run(whole())


def test_messages_are_read_in_order_and_no_more_than_wanted() -> None:
    async def story(server: Server, stream: ReplicationStream) -> None:
        server.data(b"a", b"b", b"c")
        server.keepalive(7)
        server.keepalive(9)
        assert await stream.read(2, 60) == [b"a", b"b"]
        # Of several places only the last one counts.
        assert await stream.read(9, 60) == [b"c", ReadTo(9)]
        assert await stream.read(9, 0.001) == []
        assert server.told == []

    run(story)


def test_a_reader_that_waits_gets_what_comes() -> None:
    async def story(server: Server, stream: ReplicationStream) -> None:
        reading = asyncio.ensure_future(stream.read(9, 60))
        await asyncio.sleep(0)
        server.data(b"a")
        assert await reading == [b"a"]

    run(story)


def test_what_is_not_read_is_bounded_and_the_server_hears_from_it_all_the_same() -> None:
    async def story(server: Server, stream: ReplicationStream) -> None:
        piece = b"x" * (1 << 20)
        server.data(*[piece] * 40)
        while len(server.told) < 5:
            await asyncio.sleep(0.001)
        assert len(server.waiting) >= 40 - ROOM / len(piece) - 1
        read = [message for _ in range(40) for message in await stream.read(1, 60)]
        assert read == [piece] * 40

    run(story, tell_every_s=0.001)


def test_the_server_hears_what_is_confirmed_and_answers_are_given_at_once() -> None:
    async def story(server: Server, stream: ReplicationStream) -> None:
        stream.confirm(5)
        stream.confirm(4)
        stream.confirm(5)
        assert server.told == [5]
        server.keepalive(9, wants_answer=True)
        assert await stream.read(9, 60) == [ReadTo(9)]
        # What was read is not what is in the topic.
        assert server.told == [5, 5]

    run(story)


@pytest.mark.parametrize(("how", "reason"), [("is_ended", "the slot was dropped"), ("is_broken", "is lost")])
def test_an_end_is_an_error_behind_what_came_before(how: str, reason: str) -> None:
    async def story(server: Server, stream: ReplicationStream) -> None:
        server.data(b"a")
        assert await stream.read(9, 60) == [b"a"]
        setattr(server, how, True)
        with pytest.raises(DatabaseGone, match=reason):
            await stream.read(9, 60)
        stream.confirm(5)
        assert server.told == []

    run(story)
