"""One timer of the event loop for all deadlines of a coordinator: it is set for the first of them."""

from collections.abc import Callable
from typing import Final

from ottla.world.clock import Clock
from ottla.world.scheduler import Scheduler, Timer

_AFTER_ERROR_MS: Final = 100


class LoopTimer:
    """Calls `fire` when the first deadline is reached. `fire` returns the next one, if there is one."""

    def __init__(self, scheduler: Scheduler, clock: Clock, fire: Callable[[], int | None]) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._fire = fire
        self._handle: Timer | None = None
        self._deadline_ms = 0

    def wake(self, deadline_ms: int) -> None:
        """See to it that `fire` is called at this monotonic time."""
        if self._handle is not None:
            if self._deadline_ms <= deadline_ms:
                return
            self._handle.cancel()
        self._deadline_ms = deadline_ms
        delay_ms = deadline_ms - self._clock.monotonic_ms()
        self._handle = self._scheduler.call_later(max(delay_ms, 0), self._due)

    def stop(self) -> None:
        """Call no more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _due(self) -> None:
        self._handle = None
        # If something goes wrong, the deadlines of all others are not to suffer for it.
        deadline_ms: int | None = self._clock.monotonic_ms() + _AFTER_ERROR_MS
        try:
            deadline_ms = self._fire()
        finally:
            if deadline_ms is not None:
                self.wake(deadline_ms)
