"""Deadlines with names.

They are kept in monotonic time, so a wall clock that jumps moves none of them. A timer that is scheduled
again replaces the old one. Heartbeats move the same few deadlines further away, thousands of times between
two firings. So a timer keeps its place in the heap when it moves to a later time, and is put where it belongs
when the old time comes. Cancelled entries stay in the heap as well; it is rebuilt when most of it is stale.

Nothing here waits: `wake` notifies the driver when the first deadline moves closer, and calls `fire`.
"""

import heapq
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from ottla.world.clock import Clock

Action = Callable[[int], None]
Wake = Callable[[int], None]
_STALE_MIN = 1024


class _Timer(NamedTuple):
    """A live deadline, and where in the heap it is looked for: there not later than it is due."""

    deadline_ms: int
    sequence: int
    action: Action
    heap_deadline_ms: int
    heap_sequence: int


_new_tuple = tuple.__new__


def _ignore(_deadline_ms: int) -> None:
    """A driver that looks for itself need not be woken."""


class Timers:
    """A set of named deadlines. Equal deadlines fire in the order they were scheduled."""

    def __init__(self, clock: Clock, wake: Wake = _ignore) -> None:
        """`wake` is called with a monotonic time when a deadline becomes the first one."""
        self._clock = clock
        self._wake = wake
        self._heap: list[tuple[int, int, Hashable]] = []
        self._live: dict[Hashable, _Timer] = {}
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, name: Hashable) -> bool:
        return name in self._live

    def schedule(self, name: Hashable, delay_ms: int, action: Action) -> None:
        """Call `action` with the wall time after `delay_ms`, in place of any earlier timer of this name."""
        self._sequence = sequence = self._sequence + 1
        deadline_ms = self._clock.monotonic_ms() + delay_ms
        known = self._live.get(name)
        if known is not None and known.heap_deadline_ms <= deadline_ms:
            # As a plain tuple: this is done for each heartbeat.
            self._live[name] = _new_tuple(_Timer, (deadline_ms, sequence, action, known[3], known[4]))
            return
        self._live[name] = _Timer(deadline_ms, sequence, action, deadline_ms, sequence)
        heap = self._heap
        heapq.heappush(heap, (deadline_ms, sequence, name))
        if heap[0][1] == sequence:
            self._wake(deadline_ms)
        if len(heap) > _STALE_MIN and len(heap) > 4 * len(self._live):
            self._rebuild()

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
        while heap:
            deadline_ms, sequence, name = heap[0]
            timer = self._live.get(name)
            if timer is None or timer.heap_sequence != sequence:
                heapq.heappop(heap)
            elif timer.sequence != sequence:
                heapq.heapreplace(heap, (timer.deadline_ms, timer.sequence, name))
                self._live[name] = _at_its_place(timer)
            else:
                return deadline_ms
        return None

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
            self._live.pop(name).action(self._clock.now_ms())

    def _rebuild(self) -> None:
        self._live = {name: _at_its_place(timer) for name, timer in self._live.items()}
        self._heap = [(timer.deadline_ms, timer.sequence, name) for name, timer in self._live.items()]
        heapq.heapify(self._heap)


def fire_all(all_timers: Iterable[Timers]) -> int | None:
    """Run everything that is due. Return the monotonic time of the next deadline of all."""
    deadlines = []
    for timers in all_timers:
        timers.fire()
        deadline_ms = timers.next_deadline_ms()
        if deadline_ms is not None:
            deadlines.append(deadline_ms)
    return min(deadlines, default=None)


def _at_its_place(timer: _Timer) -> _Timer:
    return timer._replace(heap_deadline_ms=timer.deadline_ms, heap_sequence=timer.sequence)
