"""The scheduler of a process: asyncio's event loop, with integers for times."""

from collections.abc import Callable
from typing import Any

from ottla.runtime.poller import ServingLoop
from ottla.world.scheduler import Callback, Timer


class LoopScheduler:
    """Schedules on one event loop."""

    __slots__ = ("_loop", "call_from_thread", "call_soon", "when_idle")

    def __init__(self, loop: ServingLoop) -> None:
        self._loop = loop
        # The loop's own methods, so that they cost no call more.
        self.call_soon: Callable[..., object] = loop.call_soon
        self.call_from_thread: Callable[..., object] = loop.call_soon_threadsafe
        self.when_idle: Callable[[Callable[[], None], int], None] = loop.poller.gather

    def call_later(self, delay_ms: int, callback: Callback, *args: Any) -> Timer:
        """Call after this many milliseconds."""
        return self._loop.call_later(delay_ms / 1000, callback, *args)

    def report(self, message: str, error: Exception) -> None:
        """Write a bug of ours to the log."""
        self._loop.call_exception_handler({"message": message, "exception": error})
