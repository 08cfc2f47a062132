"""Threads for work that blocks: cold reads, checkpoints, removing files. They start when there is work."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

THREADS_MAX: Final = 4

RunInThread: TypeAlias = Callable[[Callable[[], None], Callable[[Exception | None], None]], None]
"""Do the first in a thread, then call the second on the event loop with None or the error."""


class Threads:
    """A pool of threads for one event loop."""

    def __init__(self, loop: AbstractEventLoop, threads_max: int = THREADS_MAX) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(threads_max, thread_name_prefix="worker")
        self._is_closed = False

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Do blocking work in a thread, then call back on the loop."""
        if self._is_closed:
            return

        def tell(error: Exception | None) -> None:
            # Whoever asked may be closed as well by now: its files are another node's perhaps.
            if not self._is_closed:
                done(error)

        def run() -> None:
            error: Exception | None = None
            try:
                work()
            except Exception as raised:
                error = raised
            self._loop.call_soon_threadsafe(tell, error)

        self._pool.submit(run)

    def close(self) -> None:
        """Wait for what is under way, and drop what has not begun. Nobody is called back from now on.

        A timer that still fires while the loop comes to its end asks in vain.
        """
        self._is_closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)
