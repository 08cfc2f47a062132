"""Deadlines with names.

They are kept in monotonic time, so a wall clock that jumps moves none of them. A timer that is scheduled
again replaces the old one. Cancelled and replaced entries stay in the heap until their time comes, because
heartbeats move the same few deadlines thousands of times between two firings; the heap is rebuilt when most
of it is stale.

Nothing here waits: the driver is told by `wake` when the first deadline moves closer, and calls `fire`.
"""

import heapq
from collections.abc import Callable, Hashable

from ottla.world.clock import Clock

Action = Callable[[int], None]
Wake = Callable[[int], None]
_STALE_MIN = 1024


def _ignore(_deadline_ms: int) -> None:
    """A driver that looks for itself need not be woken."""


class Timers:
    """A set of named deadlines. Equal deadlines fire in the order they were scheduled."""

    def __init__(self, clock: Clock, wake: Wake = _ignore) -> None:
        """`wake` is called with a monotonic time when a deadline becomes the first one."""
        self._clock = clock
        self._wake = wake
        self._heap: list[tuple[int, int, Hashable]] = []
        self._live: dict[Hashable, tuple[int, Action]] = {}
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, name: Hashable) -> bool:
        return name in self._live

    def schedule(self, name: Hashable, delay_ms: int, action: Action) -> None:
        """Call `action` with the wall time after `delay_ms`, in place of any earlier timer of this name."""
        self._sequence += 1
        deadline_ms = self._clock.monotonic_ms() + delay_ms
        self._live[name] = (self._sequence, action)
        heap = self._heap
        heapq.heappush(heap, (deadline_ms, self._sequence, name))
        if heap[0][1] == self._sequence:
            self._wake(deadline_ms)
        if len(heap) > _STALE_MIN and len(heap) > 4 * len(self._live):
            self._heap = [entry for entry in heap if self._is_live(entry)]
            heapq.heapify(self._heap)

    def cancel(self, name: Hashable) -> None:
        """Forget a timer. One that does not exist is fine."""
        self._live.pop(name, None)

    def clear(self) -> None:
        """Forget all timers."""
        self._live.clear()
        self._heap.clear()

    def next_deadline_ms(self) -> int | None:
        """Return the monotonic time at which the driver should call `fire` next."""
        heap = self._heap
        while heap and not self._is_live(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def fire(self) -> None:
        """Run everything that is due. What an action schedules with no delay waits for the next call.

        If an action raises, those that are due after it stay, and the next call runs them.
        """
        now_ms = self._clock.monotonic_ms()
        last = self._sequence
        while (deadline_ms := self.next_deadline_ms()) is not None and deadline_ms <= now_ms:
            _, sequence, name = self._heap[0]
            if sequence > last:
                break
            heapq.heappop(self._heap)
            self._live.pop(name)[1](self._clock.now_ms())

    def _is_live(self, entry: tuple[int, int, Hashable]) -> bool:
        live = self._live.get(entry[2])
        return live is not None and live[0] == entry[1]
