"""SIGTERM and SIGINT: the first asks to stop in order, the second stops at once."""

import os
import signal
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Final

STOPPED_AT_ONCE: Final = 1
"""The exit code of a process that was not given time to stop in order."""


class StopSignals:
    """Calls `stop` at the first signal. At the second the process ends as if it had crashed."""

    def __init__(self, loop: AbstractEventLoop, stop: Callable[[], None]) -> None:
        self._loop = loop
        self._stop = stop
        self._is_stopping = False

    def install(self) -> None:
        """Listen for signals from now on."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.received)

    def received(self) -> None:
        """Act on a signal."""
        if self._is_stopping:
            # No handler may run any more, not even one that flushes: whatever hangs may hang there.
            os._exit(STOPPED_AT_ONCE)
        self._is_stopping = True
        self._stop()
