"""Writers that come before the transaction before theirs is complete.

A client of version 2 may begin its next transaction as soon as the outcome of the last one is decided. Its
first write waits here until the markers are written, for a while: then it is refused, and the client tries
again.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.coordination.runtime.timers import Timers, Wake
from ottla.world.clock import Clock


class _Waiting(NamedTuple):
    """A write that waits for the transaction before its own."""

    number: int
    go_on: Callable[[], None]


class WaitingWriters:
    """The writers that wait, by transactional id."""

    def __init__(self, clock: Clock, wake: Wake, wait_ms_max: int) -> None:
        self.timers = Timers(clock, wake)
        self._wait_ms_max = wait_ms_max
        self._waiting: dict[str, list[_Waiting]] = {}
        self._count = 0

    def add(self, transactional_id: str, go_on: Callable[[], None]) -> None:
        """Call `go_on` when the transaction is complete, or when that takes too long."""
        self._count += 1
        waiting = _Waiting(self._count, go_on)
        self._waiting.setdefault(transactional_id, []).append(waiting)

        def give_up(_now_ms: int) -> None:
            others = [one for one in self._waiting.pop(transactional_id, []) if one is not waiting]
            if others:
                self._waiting[transactional_id] = others
            go_on()

        self.timers.schedule(waiting.number, self._wait_ms_max, give_up)

    def wake(self, transactional_id: str) -> None:
        """Let all go on that wait for a transaction to be complete."""
        for waiting in self._waiting.pop(transactional_id, ()):
            self.timers.cancel(waiting.number)
            waiting.go_on()
