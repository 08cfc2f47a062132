"""Places that requesters share fairly: nobody takes all of them, and those who wait take turns.

Each schema may take ten seconds of computing. With one queue for all, twenty of them would keep everybody
else waiting for minutes.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

REQUESTER: Final[ContextVar[str]] = ContextVar("requester", default="")
"""The user who asks in this task, or the address where there are no users."""


class TooManyWait(Exception):
    """A requester, or all together, have too many questions."""


class FairPlaces:
    """Some places. One requester has all but one of them at most."""

    def __init__(self, places: int, waiting_max: int) -> None:
        self._free = places
        self._each_max = max(1, places - 1)
        self._waiting_max = waiting_max
        self._taken: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Have a place within the block. Raises TooManyWait."""
        who = REQUESTER.get()
        await self._take(who)
        try:
            yield
        finally:
            self._give_back(who)

    async def _take(self, who: str) -> None:
        if self._may(who) and who not in self._waiting:
            self._grant(who)
            return
        mine = self._waiting.setdefault(who, deque())
        # Half of the room is for others.
        if len(mine) >= self._waiting_max // 2 or sum(map(len, self._waiting.values())) >= self._waiting_max:
            raise TooManyWait
        turn = asyncio.get_running_loop().create_future()
        mine.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back(who)
            else:
                self._forget(who, turn)
            raise

    def _may(self, who: str) -> bool:
        return self._free > 0 and self._taken[who] < self._each_max

    def _grant(self, who: str) -> None:
        self._free -= 1
        self._taken[who] += 1

    def _give_back(self, who: str) -> None:
        self._free += 1
        self._taken[who] -= 1
        if not self._taken[who]:
            del self._taken[who]
        for other in list(self._waiting):
            if not self._may(other):
                continue
            turn = self._waiting[other][0]
            self._forget(other, turn)
            # One that has had a turn comes last.
            if other in self._waiting:
                self._waiting.move_to_end(other)
            self._grant(other)
            turn.set_result(None)

    def _forget(self, who: str, turn: "asyncio.Future[None]") -> None:
        self._waiting[who].remove(turn)
        if not self._waiting[who]:
            del self._waiting[who]
