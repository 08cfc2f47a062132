"""Who asks much waits for himself, and not in front of others."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ottla.registry.checking.fair_places import REQUESTER, FairPlaces, TooManyWait


class World:
    """Requesters that stay in their places until they are told to go."""

    def __init__(self, places: int = 2, waiting_max: int = 200) -> None:
        self.places = FairPlaces(places, waiting_max)
        self.inside: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, name: str) -> None:
        """Ask as the requester that the first letter names."""
        self._tasks[name] = asyncio.create_task(self._ask(name))
        await self._settle()

    async def _ask(self, name: str) -> None:
        REQUESTER.set(name[0])
        async with self.places.place():
            self.inside.append(name)
            self._ends[name] = asyncio.Event()
            try:
                await self._ends[name].wait()
            finally:
                self.inside.remove(name)

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await self._settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)
        await self._settle()

    def error(self, name: str) -> BaseException | None:
        return self._tasks[name].exception() if self._tasks[name].done() else None

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


def _story(tell: Callable[[World], Awaitable[None]], **given: int) -> None:
    async def run() -> None:
        world = World(**given)
        await tell(world)
        await world.close()

    asyncio.run(run())


def test_nobody_has_all_places() -> None:
    async def tell(world: World) -> None:
        for number in range(5):
            await world.ask(f"a{number}")
        assert world.inside == ["a0"]
        await world.ask("b0")
        assert world.inside == ["a0", "b0"]

    _story(tell)


def test_those_who_wait_take_turns() -> None:
    async def tell(world: World) -> None:
        for name in ("a0", "b0", "a1", "a2", "c0", "d0"):
            await world.ask(name)
        await world.end("b0")
        # a has a place already.
        assert world.inside == ["a0", "c0"]
        await world.end("a0")
        assert world.inside == ["c0", "a1"]
        await world.end("a1")
        assert world.inside == ["c0", "d0"]
        await world.end("c0")
        assert world.inside == ["d0", "a2"]

    _story(tell)


def test_a_single_place_is_for_everybody() -> None:
    async def tell(world: World) -> None:
        for name in ("a0", "a1", "b0"):
            await world.ask(name)
        await world.end("a0")
        assert world.inside == ["a1"]
        await world.end("a1")
        assert world.inside == ["b0"]

    _story(tell, places=1)


def test_one_requester_fills_half_of_the_room_to_wait_in() -> None:
    async def tell(world: World) -> None:
        for number in range(4):
            await world.ask(f"a{number}")
        assert isinstance(world.error("a3"), TooManyWait)
        for name in ("b0", "b1", "b2"):
            await world.ask(name)
            assert world.error(name) is None
        await world.ask("c0")
        assert isinstance(world.error("c0"), TooManyWait)

    _story(tell, places=2, waiting_max=4)


@pytest.mark.parametrize("name", ["a0", "a1"])
def test_who_is_cancelled_leaves_nothing_behind(name: str) -> None:
    async def tell(world: World) -> None:
        await world.ask("a0")
        await world.ask("a1")
        await world.cancel(name)
        await world.ask("b0")
        (left,) = {"a0", "a1"} - {name}
        assert sorted(world.inside) == [left, "b0"]
        await world.end(left)
        await world.end("b0")
        for other in ("c0", "d0"):
            await world.ask(other)
        assert world.inside == ["c0", "d0"]

    _story(tell)
