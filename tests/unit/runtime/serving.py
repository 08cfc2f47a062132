"""Running a test on the event loop that a node has."""

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial

from ottla.runtime.clock import SystemClock
from ottla.runtime.flusher import TOGETHER_MIN, Flusher
from ottla.runtime.loop_scheduler import LoopScheduler
from ottla.runtime.poller import ServingLoop
from ottla.runtime.real_world import real_world
from ottla.runtime.recovery import LoadingLogs
from ottla.runtime.sync_workers import SyncWorkers
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.volume import Volume


def run_serving(main: Coroutine[object, object, None]) -> None:
    """Run something to its end."""
    with asyncio.Runner(loop_factory=ServingLoop) as runner:
        runner.run(main)


def serving_loop() -> ServingLoop:
    """Return the loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ServingLoop)
    return loop


def new_flusher(threads: int = 4, together_min: int = TOGETHER_MIN) -> Flusher:
    """Return a flusher on the loop that runs."""
    loop = serving_loop()
    make_syncs = partial(SyncWorkers, loop, threads=threads)
    return Flusher(LoopScheduler(loop), SystemClock(), make_syncs, threads, together_min)


def load_logs(volume: Volume, requests: Sequence[LoadRequest], processes: int) -> list[Log]:
    """Load logs on a loop of their own. Raises what that fails with."""
    logs: list[Log] = []

    async def load() -> None:
        loop = serving_loop()
        loaded: asyncio.Future[list[Log]] = loop.create_future()
        world = real_world(loop)
        LoadingLogs(world, volume, requests, loaded.set_result, loaded.set_exception, processes).begin()
        logs.extend(await loaded)
        world.workers.close()

    run_serving(load())
    return logs


async def drain(flusher: Flusher) -> None:
    """Wait until no sync is under way."""
    drained = asyncio.Event()
    flusher.drain(drained.set)
    await drained.wait()
