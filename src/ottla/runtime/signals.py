"""SIGTERM, SIGINT and SIGHUP: the first asks to stop in order, the second stops at once.

A terminal that is closed sends SIGHUP, often twice. So SIGHUP never counts as the second. A process that was
started to outlive its terminal (`nohup`) ignores it, and goes on ignoring it.
"""

import os
import signal
from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import partial
from typing import Final

STOPPED_AT_ONCE: Final = 1
"""The exit code of a process that was not given time to stop in order."""


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that ask this process to stop."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return (signal.SIGTERM, signal.SIGINT)
    return (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopSignals:
    """Calls `stop` at the first signal. At the second the process ends as if it had crashed."""

    def __init__(self, loop: AbstractEventLoop, stop: Callable[[], None]) -> None:
        self._loop = loop
        self._stop = stop
        self._is_stopping = False

    def install(self) -> None:
        """Listen for signals from now on."""
        for number in stop_signals():
            self._loop.add_signal_handler(number, partial(self.received, number))

    def received(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Act on a signal."""
        if self._is_stopping and number == signal.SIGHUP:
            return
        if self._is_stopping:
            # No handler may run any more, not even one that flushes: whatever hangs may hang there.
            os._exit(STOPPED_AT_ONCE)
        self._is_stopping = True
        self._stop()
