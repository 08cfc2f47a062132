"""A proxy before a broker that does what it is told: cut at an answer, fall silent, refuse.

Unlike `tests.support.bad_network` it draws nothing: a case says which answer is cut, and where.
"""

import asyncio
import threading
from collections import Counter, deque
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Final, Self

from ottla.testing.ports import free_port

_PIECE_BYTES: Final = 1 << 16


class Place(Enum):
    """Where a connection breaks at an answer."""

    BEFORE = "before"
    IN = "in"
    AFTER = "after"


class Gate:
    """Forwards connections to a broker whose advertised address is this one."""

    def __init__(self) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.cuts: Counter[int] = Counter()
        """By API key, how many connections were cut at an answer to it."""
        self._target = ("", 0)
        self._every: dict[int, tuple[int, Place]] = {}
        self._seen: Counter[int] = Counter()
        self._loop = asyncio.new_event_loop()
        self._speaks = asyncio.Event()
        self._speaks.set()
        self._admits = True
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gate")

    def __enter__(self) -> Self:
        self._thread.start()
        started = asyncio.start_server(self._forward, "127.0.0.1", self.port)
        self._server = asyncio.run_coroutine_threadsafe(started, self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        # A task that was cut off while it waits for another goes on with its end.
        while tasks := asyncio.all_tasks(self._loop) - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=0.1)

    def leads_to(self, bootstrap: str) -> Self:
        """Say where the broker is."""
        host, _, port = bootstrap.rpartition(":")
        self._target = host, int(port)
        return self

    def cut_each(self, api_key: int, every: int, place: Place) -> None:
        """Break the connection at each so many-th answer to requests of one kind."""
        self._every[api_key] = every, place
        self._seen.clear()

    def cut_no_more(self) -> None:
        """Let all answers through."""
        self._every = {}

    def be_silent(self) -> None:
        """Let requests through, and no answers."""
        self._loop.call_soon_threadsafe(self._speaks.clear)

    def speak(self) -> None:
        """Let answers through again."""
        self._loop.call_soon_threadsafe(self._speaks.set)

    def close(self) -> None:
        """Break all connections, and admit no new ones."""

        def shut() -> None:
            self._admits = False
            for writer in self._writers:
                writer.transport.abort()

        self._loop.call_soon_threadsafe(shut)

    def open(self) -> None:
        """Admit connections again."""
        self._admits = True

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._admits:
            writer.transport.abort()
            return
        self._writers.add(writer)
        asked: deque[int] = deque()
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        asking = asyncio.create_task(self._pass_requests(reader, far_writer, asked))
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._pass_answers(far_reader, writer, asked)
        finally:
            self._writers.discard(writer)
            writer.transport.abort()
            with suppress(OSError, asyncio.IncompleteReadError):
                await asking
            far_writer.close()

    async def _pass_requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[int]
    ) -> None:
        while True:
            head = await reader.readexactly(4)
            request = await reader.readexactly(int.from_bytes(head))
            asked.append(int.from_bytes(request[:2]))
            writer.write(head + request)
            await writer.drain()

    async def _pass_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[int]
    ) -> None:
        while True:
            head = await reader.readexactly(4)
            answer = head + await reader.readexactly(int.from_bytes(head))
            await self._speaks.wait()
            place = self._place_of_cut(asked.popleft())
            if place is not None:
                keeps = {Place.BEFORE: 0, Place.IN: len(answer) // 2, Place.AFTER: len(answer)}[place]
                writer.write(answer[:keeps])
                await writer.drain()
                writer.close()
                return
            writer.write(answer)
            await writer.drain()

    def _place_of_cut(self, api_key: int) -> Place | None:
        every, place = self._every.get(api_key, (0, Place.BEFORE))
        self._seen[api_key] += 1
        if not every or self._seen[api_key] % every:
            return None
        self.cuts[api_key] += 1
        return place
