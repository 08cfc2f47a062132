"""What a node asks of the loop that it runs on: when its code is called.

Everything of a node happens in one thread, one call after the other, so no part of it needs a lock. Times are
integers. Two runs of a simulation add them up in the same way, which floats would not promise.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

Callback: TypeAlias = Callable[..., object]


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Do not make the call. Nothing happens if it was made already, or cancelled."""


class Scheduler(Protocol):
    """The loop of one node."""

    def call_soon(self, callback: Callback, *args: Any) -> object:
        """Call after everything that is due now, in the order of these requests."""

    def call_later(self, delay_ms: int, callback: Callback, *args: Any) -> Timer:
        """Call after this many milliseconds. A delay of 0 lets all others run first."""

    def when_idle(self, callback: Callable[[], None], at_latest_ns: int) -> None:
        """Call once there is nothing else to do, or at the latest at this time of the monotonic clock.

        It is for work that is cheaper the more of it comes together.
        """

    def call_from_thread(self, callback: Callback, *args: Any) -> object:
        """Do what `call_soon` does, from any thread. It is the only method that another thread may call."""

    def report(self, message: str, error: Exception) -> None:
        """Write a bug of ours to the log: a callback failed, and there is nobody to raise the error to."""
