"""Threads do what blocks, and nobody hears of them after they were closed."""

import asyncio
from threading import Event

from ottla.runtime.loop_scheduler import LoopScheduler
from ottla.runtime.poller import ServingLoop
from ottla.runtime.threads import Threads


def test_work_is_done_and_its_end_told_on_the_loop() -> None:
    loop = ServingLoop()
    threads = Threads(LoopScheduler(loop))
    told: list[Exception | None] = []

    def fail() -> None:
        raise ValueError("no")

    def go_on(error: Exception | None) -> None:
        told.append(error)
        threads.run(fail, end)

    def end(error: Exception | None) -> None:
        told.append(error)
        loop.stop()

    threads.run(lambda: None, go_on)
    loop.run_forever()
    threads.close()
    loop.close()
    assert told[0] is None
    assert isinstance(told[1], ValueError)


def test_what_is_asked_for_after_the_end_is_dropped() -> None:
    loop = ServingLoop()
    threads = Threads(LoopScheduler(loop))
    begun = Event()
    told: list[str] = []
    threads.run(begun.set, lambda _: told.append("begun before"))
    assert begun.wait(60)
    threads.close()
    threads.run(lambda: told.append("worked"), lambda _: told.append("begun after"))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert told == []
