"""Long work in turns: a few milliseconds of it, then everybody else, then the next few milliseconds.

There is one thread and one loop, so whatever takes long keeps everybody waiting. Work that may take long is
a generator. It yields wherever it may be interrupted, and is not interrupted anywhere else: what it does
between two yields is as atomic as any request. It may also yield something to wait for.

Work counts the memory that it holds. While all of it together holds more than `bytes_max`, only the oldest
goes on: so one always comes to its end, and the others wait without growing.

A large request is a million objects and no cycle. A full garbage collection would look at all of them, which
takes 0.1 s, and find nothing. So none begins while there is work to do; those of young objects go on.
"""

import gc
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Final, Protocol, TypeAlias

from ottla.world.clock import Clock
from ottla.world.scheduler import Scheduler

TURN_NS: Final = 3_000_000
"""How long a turn takes. A request of somebody else waits for one turn, whatever is under way."""

NEVER: Final = 1 << 30
"""After how many collections of young objects a full one begins while there is work to do."""


class Awaited(Protocol):
    """What work can wait for."""

    @property
    def is_done(self) -> bool:
        """Say whether there is nothing to wait for any more."""

    def when_done(self, listener: Callable[[Any], None], on_error: Callable[[Exception], None], /) -> None:
        """Call one of them when it is done."""


Work: TypeAlias = Generator[Awaited | None, None, None]


class Task:
    """Some work under way, and the memory that it holds."""

    __slots__ = ("_fail", "_turns", "_work", "held_bytes", "is_over")

    def __init__(self, turns: "Turns", fail: Callable[[Exception], None]) -> None:
        self._turns = turns
        self._fail = fail
        self._work: Work | None = None
        self.held_bytes = 0
        self.is_over = False

    def begin(self, work: Work) -> None:
        """Let the work begin, in the next turn. If it raises, `fail` is called with the error."""
        self._work = work
        self._turns.add(self)

    def hold(self, size_bytes: int) -> None:
        """Count memory that was taken, or given back if it is negative."""
        self.held_bytes += size_bytes
        self._turns.held_bytes += size_bytes

    def release(self) -> None:
        """Give all of it back."""
        if self.held_bytes:
            self.hold(-self.held_bytes)
            self._turns.memory_is_back()

    def cancel(self) -> None:
        """Stop: nobody waits for the outcome any more."""
        if not self.is_over:
            self._end()
            self.release()

    def step(self) -> Awaited | None:
        """Work on up to the next yield. Raises StopIteration at the end."""
        assert self._work is not None, "a task is given its work before its turn"
        return next(self._work)

    def finish(self, error: Exception | None) -> None:
        """Take note that the work has come to its end."""
        if self.is_over:
            return
        self._end()
        if error is not None:
            self.release()
            self._fail(error)

    def _end(self) -> None:
        self.is_over = True
        self._turns.forget(self)
        if self._work is not None:
            self._work.close()
            self._work = None


class Turns:
    """All long work of a loop, each in its turn."""

    def __init__(self, scheduler: Scheduler, clock: Clock, bytes_max: int) -> None:
        self._scheduler = scheduler
        self._now_ns = clock.monotonic_ns
        self.bytes_max = bytes_max
        self.held_bytes = 0
        # In the order they came: the first may always go on.
        self._tasks: dict[Task, None] = {}
        self._ready: deque[Task] = deque()
        self._short_of_memory: list[Task] = []
        self._is_scheduled = False
        self._usual_thresholds: tuple[int, int, int] | None = None
        # How many turns there were: tests and metrics look at it.
        self.turns = 0

    def __len__(self) -> int:
        return len(self._tasks)

    def new_task(self, fail: Callable[[Exception], None]) -> Task:
        """Return a task that has yet to be given its work. `fail` is called if the work raises."""
        return Task(self, fail)

    def add(self, task: Task) -> None:
        """Let a task have its turns."""
        self._tasks[task] = None
        self._make_ready(task)

    def forget(self, task: Task) -> None:
        """Let a task have no more turns."""
        was_first = next(iter(self._tasks), None) is task
        self._tasks.pop(task, None)
        if was_first:
            # Another is the oldest now, which may go on in any case.
            self.memory_is_back()

    def memory_is_back(self) -> None:
        """Let those go on that waited for memory. Who is still short of it will wait again."""
        waiting, self._short_of_memory = self._short_of_memory, []
        for task in waiting:
            self._make_ready(task)

    def _make_ready(self, task: Task) -> None:
        self._ready.append(task)
        if not self._is_scheduled:
            self._is_scheduled = True
            if self._usual_thresholds is None:
                self._usual_thresholds = gc.get_threshold()
                gc.set_threshold(*self._usual_thresholds[:2], NEVER)
            self._scheduler.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._is_scheduled = False
        self.turns += 1
        until_ns = self._now_ns() + TURN_NS
        while self._ready:
            task = self._ready.popleft()
            if not task.is_over:
                self._work_on(task, until_ns)
            if self._now_ns() >= until_ns:
                break
        if self._ready and not self._is_scheduled:
            self._is_scheduled = True
            self._scheduler.call_soon(self._take_turn)
        elif not self._ready and self._usual_thresholds is not None:
            gc.set_threshold(*self._usual_thresholds)
            self._usual_thresholds = None

    def _work_on(self, task: Task, until_ns: int) -> None:
        while not self._must_wait_for_memory(task):
            try:
                awaited = task.step()
            except StopIteration:
                task.finish(None)
                return
            except Exception as error:
                # Whatever it is, the one who waits for the outcome has to learn of it.
                task.finish(error)
                return
            if task.is_over:
                return
            if awaited is not None and not awaited.is_done:
                awaited.when_done(lambda _: self._make_ready(task), task.finish)
                return
            if self._now_ns() >= until_ns:
                self._ready.append(task)
                return
        self._short_of_memory.append(task)

    def _must_wait_for_memory(self, task: Task) -> bool:
        return self.held_bytes > self.bytes_max and next(iter(self._tasks)) is not task
