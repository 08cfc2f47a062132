"""Calls of clients that are cut off at each of their awaits, one after the other.

A scene makes one call through a `Cut`, and then sees that the client is as good as ever. It is played again
and again: the call is cancelled when it begins to wait for the first time, then as soon as that wait is over,
then at the second wait, and so on, until it comes to its end. After each play no task and no connection may
be left.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, TypeVar

from ottla.broker.lifecycle.format_options import FormatOptions
from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Simulation
from ottla.wire.config_kinds import ResourceType

T = TypeVar("T")

_SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
}
WAITS_MAX: Final = 400
AT_END: Final = -1
"""Cut off when the work is done, but the caller has not got what came of it."""
_QUIET_S: Final = 5


class Cut:
    """Cancels one call at one of its awaits. `was_cut` says whether it came to that."""

    def __init__(self, at: int, *, is_late: bool) -> None:
        self._at = at
        self.is_at_end = at == AT_END
        self._is_late = is_late
        self._waits = 0
        self.was_cut = False

    def __str__(self) -> str:
        return f"cut off at wait {self._at}, {'when it is over' if self._is_late else 'when it begins'}"

    async def __call__(self, call: Coroutine[Any, Any, T]) -> T | None:
        """Make the call. Returns None if it was cut off."""
        try:
            driven: Awaitable[T] = _Driven(call, self)
            return await driven
        except asyncio.CancelledError:
            if not self.was_cut:
                raise
            task = asyncio.current_task()
            assert task is not None, "a scene runs in a task"
            while task.uncancel():
                pass
            return None

    def wait(self, future: Any) -> Generator[Any, None, Any]:
        """Wait for what the call waits for, or cut it off."""
        self._waits += 1
        if self._waits != self._at:
            return (yield future)
        self.was_cut = True
        if not self._is_late:
            task = asyncio.current_task()
            assert task is not None, "a scene runs in a task"
            task.cancel()
            return (yield future)
        yield future
        raise asyncio.CancelledError


class _Driven:
    """A coroutine whose waits are counted."""

    def __init__(self, call: Coroutine[Any, Any, Any], cut: Cut) -> None:
        self._call = call
        self._cut = cut

    def __await__(self) -> Generator[Any, None, Any]:
        resume: Callable[[], Any] = lambda: self._call.send(None)  # noqa: E731 - it is replaced below
        while True:
            try:
                future = resume()
            except StopIteration as end:
                return end.value
            try:
                value = yield from self._cut.wait(future)
            except BaseException as error:
                resume = _throwing(self._call, error)
            else:
                resume = _sending(self._call, value)


def _throwing(call: Coroutine[Any, Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: call.throw(error)


def _sending(call: Coroutine[Any, Any, Any], value: Any) -> Callable[[], Any]:
    return lambda: call.send(value)


Scene = Callable[["Stage", Cut], Awaitable[None]]
BlockingScene = Callable[["Stage", Cut], None]


class Stage:
    """A node, and names that nobody has used before."""

    def __init__(self, features: tuple[str, ...] = ()) -> None:
        self.simulation = Simulation(1)
        self.network = SimulatedNetwork(self.simulation)
        options = FormatOptions(features=features)
        self.node = SimulatedNode(self.simulation, self.network, 1, _SETTINGS, options)
        self.loop = simulated_loop(self.simulation, self.network)
        self.bootstrap = self.node.bootstrap
        self.node.start()
        self._names = 0

    def name(self, what: str) -> str:
        """Return a name of its own."""
        self._names += 1
        return f"{what}-{self._names}"

    async def topic(self, partitions: int = 1) -> str:
        """Make a topic."""
        name = self.name("topic")
        async with Admin(self.bootstrap) as admin:
            await admin.topics.create(name, partitions=partitions)
        return name

    async def share_group(self) -> str:
        """Return a share group that begins at the beginning."""
        group = self.name("group")
        async with Admin(self.bootstrap) as admin:
            await admin.configs.alter(ResourceType.GROUP, group, {"share.auto.offset.reset": "earliest"})
        return group

    async def values(self, topic: str) -> list[bytes]:
        """Return all committed values of a topic, partition by partition."""
        found: list[bytes] = []
        async with Consumer(
            self.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer:
            for where in sorted(await consumer.partitions_for(topic)):
                end = (await consumer.end_offsets([where]))[where]
                consumer.assign([where])
                while await consumer.position(where) < end:
                    found += [record.value or b"" for record in await consumer.poll(500)]
        return found

    async def committed(self, group: str, topic: str) -> list[int | None]:
        """Return what a group has committed in each partition of a topic."""
        async with Consumer(self.bootstrap, group_id=group) as consumer:
            found = await consumer.committed(sorted(await consumer.partitions_for(topic)))
        return [None if item is None else item.offset for item in found.values()]

    def play(self, scene: Scene, cut: Cut) -> None:
        """Play a scene, and see that it leaves nothing behind."""

        async def whole() -> None:
            async with asyncio.timeout(600):
                await scene(self, cut)
            await self._check_left()

        self.loop.run(whole(), within_ms=1_200_000)

    def play_blocking(self, scene: "BlockingScene", cut: Cut) -> None:
        """Play a scene of clients that have no event loop."""
        scene(self, cut)
        self.loop.run(self._check_left())

    async def _check_left(self) -> None:
        deadline_s = self.loop.time() + _QUIET_S
        while (left := self._left()) and self.loop.time() < deadline_s:
            await asyncio.sleep(0.1)
        assert not left, f"left behind: {left}"

    def _left(self) -> list[Any]:
        tasks = asyncio.all_tasks(self.loop) - {asyncio.current_task()}
        connections = self.network._transports[self.loop.machine.host]
        return [*(task.get_coro() for task in tasks), *(transport.name for transport in connections)]


def cut_everywhere(scene: Scene, features: tuple[str, ...] = ()) -> int:
    """Play a scene with the call cut off at each of its waits. Returns how many there are."""
    stage = Stage(features)
    return _cut_everywhere(lambda cut: stage.play(scene, cut))


def interrupt_everywhere(scene: BlockingScene, stage: Stage) -> int:
    """Play a scene of clients without an event loop, with Ctrl-C at each wait of the call, and at its end."""
    cut = Cut(AT_END, is_late=True)
    try:
        stage.play_blocking(scene, cut)
    except BaseException as error:
        error.add_note("Ctrl-C came when the call was done, and had not returned")
        raise
    return _cut_everywhere(lambda cut: stage.play_blocking(scene, cut))


def _cut_everywhere(play: Callable[[Cut], None]) -> int:
    for at in range(1, WAITS_MAX):
        for is_late in (False, True):
            cut = Cut(at, is_late=is_late)
            try:
                play(cut)
            except BaseException as error:
                error.add_note(f"the call was {cut}")
                raise
            if not cut.was_cut:
                return at - 1
    raise AssertionError(f"the call waits more than {WAITS_MAX} times")
