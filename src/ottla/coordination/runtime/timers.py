"""Deadlines with names. Nothing here reads a clock: the driver says what time it is.

A timer that is scheduled again replaces the old one. Cancelled and replaced entries stay in the heap until
their time comes, because heartbeats move the same few deadlines thousands of times between two firings; the
heap is rebuilt when most of it is stale.
"""

import heapq
from collections.abc import Callable, Hashable

Action = Callable[[int], None]
_STALE_MIN = 1024


class Timers:
    """A set of named deadlines. Equal deadlines fire in the order they were scheduled."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Hashable]] = []
        self._live: dict[Hashable, tuple[int, int, Action]] = {}
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, name: Hashable) -> bool:
        return name in self._live

    def schedule(self, name: Hashable, deadline_ms: int, action: Action) -> None:
        """Call `action(now_ms)` once the time has come, in place of any earlier timer of this name."""
        self._sequence += 1
        self._live[name] = (deadline_ms, self._sequence, action)
        heapq.heappush(self._heap, (deadline_ms, self._sequence, name))
        if len(self._heap) > _STALE_MIN and len(self._heap) > 4 * len(self._live):
            self._heap = [(deadline, order, key) for key, (deadline, order, _) in self._live.items()]
            heapq.heapify(self._heap)

    def cancel(self, name: Hashable) -> None:
        """Forget a timer. One that does not exist is fine."""
        self._live.pop(name, None)

    def next_deadline_ms(self) -> int | None:
        """Return when the driver should call `fire` next."""
        while self._heap:
            deadline_ms, order, name = self._heap[0]
            live = self._live.get(name)
            if live is not None and live[1] == order:
                return deadline_ms
            heapq.heappop(self._heap)
        return None

    def fire(self, now_ms: int) -> None:
        """Run everything that is due. What an action schedules for now or earlier waits for the next call."""
        due: list[Action] = []
        while (deadline_ms := self.next_deadline_ms()) is not None and deadline_ms <= now_ms:
            name = heapq.heappop(self._heap)[2]
            due.append(self._live.pop(name)[2])
        for action in due:
            action(now_ms)
