"""Values that take long to read: shown as they were, while they are read again.

A list of 10,000 topics takes a second to read. Nobody waits for that at each click, and brokers should not
work for it all the time. So a value may be as old as twenty times what reading it took: a small cluster is
read at each look, and a large one costs its brokers a twentieth of their time at most, however many look.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T")

PATIENCE_S: Final = 0.25
"""How long a page waits for what it could also do without."""
_AT_ONCE_S: Final = 0.05
_AGE_FACTOR: Final = 20.0


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """A value, and when reading it began."""

    value: T
    at_s: float


class Kept(Generic[T]):
    """One value. It is read by one at a time, however many want it."""

    def __init__(self, read: Callable[[], Awaitable[T]], now_s: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._now_s = now_s
        self._seen: Seen[T] | None = None
        self._took_s = 0.0
        self._reading: asyncio.Task[None] | None = None

    async def get(self, patience_s: float = PATIENCE_S) -> Seen[T] | None:
        """Return the value, an older one if reading takes longer than that, or None if there is none yet.

        Raises what reading raises, when there is nothing older to show.
        """
        if self._seen is not None and self._now_s() - self._seen.at_s <= self._age_max_s():
            return self._seen
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_once())
        reading = self._reading
        done, _ = await asyncio.wait((reading,), timeout=patience_s)
        if done and self._seen is None and not reading.cancelled():
            reading.result()
        return self._seen

    def forget(self) -> None:
        """Read again at the next look: something was changed."""
        self._seen = None
        self.close()

    def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _age_max_s(self) -> float:
        return 0.0 if self._took_s < _AT_ONCE_S else self._took_s * _AGE_FACTOR

    async def _read_once(self) -> None:
        began_s = self._now_s()
        try:
            value = await self._read()
        except Exception:
            # What was seen before is too old to be shown as if it were true.
            self._seen = None
            raise
        else:
            self._seen = Seen(value, began_s)
            self._took_s = self._now_s() - began_s
        finally:
            if self._reading is asyncio.current_task():
                self._reading = None
