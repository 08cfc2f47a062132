"""What the sender waits for without standing still: connections, metadata, a producer id, a coordinator.

Each errand has a key, and runs once at a time. After a failure it rests, longer each time. So one broker that
cannot be reached does not stop batches for the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from ottla.client import surroundings
from ottla.client.errors import ClientError


def pause_s(failures: int, first_s: float, most_s: float) -> float:
    """Return how long to wait after so many failures in a row: longer each time, with some chance in it."""
    wait_s = min(first_s * 2.0 ** min(failures - 1, 30), most_s)
    return wait_s * surroundings.current.random.uniform(0.8, 1.2)


class Errands:
    """Tasks beside the sender. `wake` is called when one has ended, `on_bug` with what must not happen."""

    def __init__(
        self, first_s: float, most_s: float, wake: Callable[[], None], on_bug: Callable[[Exception], None]
    ) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._wake = wake
        self._on_bug = on_bug
        self._running: dict[Hashable, asyncio.Task[None]] = {}
        self._failures: dict[Hashable, int] = {}
        self._not_before_s: dict[Hashable, float] = {}

    def run(
        self,
        key: Hashable,
        errand: Callable[[], Awaitable[object]],
        on_failure: Callable[[ClientError], None] = lambda _error: None,
    ) -> None:
        """Begin an errand, unless it is under way already, or rests."""
        now_s = asyncio.get_running_loop().time()
        if key in self._running or now_s < self._not_before_s.get(key, now_s):
            return
        self._not_before_s.pop(key, None)
        self._running[key] = asyncio.create_task(self._do(key, errand, on_failure))

    def next_due_s(self, now_s: float) -> float | None:
        """Return when the next errand has rested."""
        return min((due_s for due_s in self._not_before_s.values() if due_s > now_s), default=None)

    async def until_done(self, key: Hashable) -> None:
        """Return when an errand is not under way."""
        while (task := self._running.get(key)) is not None:
            # A caller that gives up waiting must not end it.
            await asyncio.wait([task])

    def cancel(self) -> list[asyncio.Task[None]]:
        """End all errands. Returns what is left to wait for."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        return tasks

    async def _do(
        self,
        key: Hashable,
        errand: Callable[[], Awaitable[object]],
        on_failure: Callable[[ClientError], None],
    ) -> None:
        try:
            await errand()
            self._failures.pop(key, None)
        except ClientError as error:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            rest_s = pause_s(failures, self._first_s, self._most_s)
            self._not_before_s[key] = asyncio.get_running_loop().time() + rest_s
            on_failure(error)
        except Exception as error:
            self._on_bug(error)
        finally:
            del self._running[key]
            self._wake()
