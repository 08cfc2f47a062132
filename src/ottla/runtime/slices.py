"""Rounds over all that a node has, cut into slices: a node with many partitions goes on serving in between.

The steps of a round are a generator, which may be left for a while wherever it yields. Partitions may come
and go meanwhile.
"""

from collections.abc import Iterator
from typing import Final

from ottla.world.clock import Clock
from ottla.world.scheduler import Scheduler, Timer

SLICE_NS: Final = 2_000_000


class Slices:
    """Rounds under way, by name."""

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._timers: dict[str, Timer] = {}

    def run(self, name: str, steps: Iterator[None]) -> None:
        """Begin a round, unless the one before is still under way. The first slice is done at once."""
        if name not in self._timers:
            self._go_on(name, steps)

    def stop(self) -> None:
        """Do not go on with anything."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _go_on(self, name: str, steps: Iterator[None]) -> None:
        self._timers.pop(name, None)
        deadline_ns = self._clock.monotonic_ns() + SLICE_NS
        for _ in steps:
            if self._clock.monotonic_ns() >= deadline_ns:
                self._timers[name] = self._scheduler.call_later(0, self._go_on, name, steps)
                return
