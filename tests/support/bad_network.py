"""A proxy before a broker that cuts, delays and lets connections overtake each other, by one seed.

A connection breaks before an answer, in the middle of one, or after it. What the client had sent before still
arrives, perhaps after what it sends on its next connection.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from random import Random
from types import TracebackType
from typing import Final, Self

from ottla.testing.ports import free_port

_PIECE_BYTES: Final = 1 << 16
_LATE_S: Final = 0.3


class BadNetwork:
    """Forwards connections to a broker whose advertised address is this one."""

    def __init__(self, seed: int, *, breaks_after: int = 50, late: float = 0.05) -> None:
        """On average so many answers pass before a connection breaks, and at most twice as many. 0: all."""
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.breaks_after = breaks_after
        self.late = late
        self.met: Counter[str] = Counter()
        self._random = Random(f"bad network {seed}")
        self._until_break = breaks_after
        self._target = ("", 0)
        self._tasks: set[asyncio.Task[None]] = set()

    def leads_to(self, bootstrap: str) -> Self:
        """Say where the broker is."""
        host, _, port = bootstrap.rpartition(":")
        self._target = host, int(port)
        return self

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a server runs this in a task"
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        asking = asyncio.create_task(self._pass_requests(reader, far_writer))
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._pass_answers(far_reader, writer)
        finally:
            writer.transport.abort()
            # What was sent before the connection broke arrives all the same, sooner or later.
            with suppress(OSError):
                await asking
            far_writer.close()

    async def _pass_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await _read(reader):
            if self._strikes(self.late):
                self.met["a late request"] += 1
                await asyncio.sleep(self._random.uniform(0, _LATE_S))
            writer.write(data)
            await writer.drain()

    async def _pass_answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readexactly(4)
            answer = head + await reader.readexactly(int.from_bytes(head))
            if self._strikes(self.late):
                self.met["a late answer"] += 1
                await asyncio.sleep(self._random.uniform(0, _LATE_S))
            if self._breaks():
                place = self._random.choice((0, self._random.randrange(len(answer)), len(answer)))
                self.met["a broken connection"] += 1
                writer.write(answer[:place])
                await writer.drain()
                return
            writer.write(answer)
            await writer.drain()

    def _breaks(self) -> bool:
        if not self.breaks_after:
            return False
        self._until_break -= 1
        if self._until_break > 0:
            return False
        self._until_break = self._random.randint(1, 2 * self.breaks_after)
        return True

    def _strikes(self, chance: float) -> bool:
        return self._random.random() < chance


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(_PIECE_BYTES)
    except OSError:
        return b""
