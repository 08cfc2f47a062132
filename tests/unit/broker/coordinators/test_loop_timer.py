"""One timer of the loop for all deadlines: it is set for the first one, and survives errors."""

import asyncio

from ottla.broker.coordinators.loop_timer import LoopTimer
from ottla.runtime.loop_scheduler import LoopScheduler
from ottla.runtime.poller import ServingLoop


class LoopClock:
    """The time of an event loop, in milliseconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def monotonic_ns(self) -> int:
        return int(self._loop.time() * 1_000_000_000)


def test_an_error_does_not_stop_the_timer() -> None:
    loop = ServingLoop()
    errors: list[object] = []
    loop.set_exception_handler(lambda _loop, context: errors.append(context["exception"]))
    calls: list[int] = []

    def fire() -> int | None:
        calls.append(len(calls))
        if len(calls) == 1:
            raise ValueError("a bug")
        loop.stop()
        return None

    timer = LoopTimer(LoopScheduler(loop), LoopClock(loop), fire)
    timer.wake(timer._clock.monotonic_ms())
    loop.run_forever()
    loop.close()
    assert calls == [0, 1]
    assert [str(error) for error in errors] == ["a bug"]


def test_the_closest_deadline_counts() -> None:
    loop = ServingLoop()
    clock = LoopClock(loop)
    fired: list[int] = []

    def fire() -> int | None:
        fired.append(clock.monotonic_ms())
        loop.stop()
        return None

    timer = LoopTimer(LoopScheduler(loop), clock, fire)
    timer.wake(clock.monotonic_ms() + 3_600_000)
    timer.wake(clock.monotonic_ms())
    timer.wake(clock.monotonic_ms() + 1_800_000)
    loop.run_forever()
    timer.wake(clock.monotonic_ms())
    timer.stop()
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert len(fired) == 1
