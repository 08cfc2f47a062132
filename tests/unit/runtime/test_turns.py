"""Long work takes turns: others are served in between, and the memory of all of it is bounded."""

import gc
from collections.abc import Callable
from typing import Any

from ottla.broker.deferred import Deferred
from ottla.runtime import turns
from ottla.runtime.clock import SystemClock
from ottla.runtime.turns import Turns, Work


class Loop:
    """A loop that runs one round of callbacks when it is told to."""

    def __init__(self) -> None:
        self._soon: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def call_soon(self, callback: Callable[..., Any], *arguments: Any) -> None:
        self._soon.append((callback, arguments))

    def run_once(self) -> bool:
        soon, self._soon = self._soon, []
        for callback, arguments in soon:
            callback(*arguments)
        return bool(soon)

    def run(self) -> int:
        rounds = 0
        while self.run_once():
            rounds += 1
        return rounds


def make(bytes_max: int = 1000) -> tuple[Loop, Turns]:
    loop = Loop()
    return loop, Turns(loop, SystemClock(), bytes_max)  # type: ignore[arg-type]


def test_work_gives_way_when_its_turn_is_over(monkeypatch: Any) -> None:
    monkeypatch.setattr(turns, "TURN_NS", 0)
    loop, some = make()
    done: list[str] = []

    def work(name: str) -> Work:
        for step in range(3):
            done.append(f"{name}{step}")
            yield None

    # A turn of no time at all is one step: without any, nothing would ever be done.
    some.new_task(done.append).begin(work("a"))  # type: ignore[arg-type]
    some.new_task(done.append).begin(work("b"))  # type: ignore[arg-type]
    assert loop.run() >= 6
    assert sorted(done) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert done != sorted(done), "the second had turns before the first was done"
    assert len(some) == 0


def test_work_waits_for_what_comes_later() -> None:
    loop, some = make()
    awaited: Deferred[int] = Deferred()
    got: list[int] = []

    def work() -> Work:
        yield awaited
        got.append(awaited.value())

    some.new_task(lambda error: None).begin(work())
    loop.run()
    assert got == []
    awaited.resolve(7)
    loop.run()
    assert got == [7]


def test_errors_are_told_once_and_memory_is_given_back() -> None:
    loop, some = make()
    errors: list[Exception] = []
    task = some.new_task(errors.append)

    def work() -> Work:
        task.hold(500)
        yield None
        raise ValueError("no")

    task.begin(work())
    loop.run()
    assert [str(error) for error in errors] == ["no"]
    assert some.held_bytes == 0
    task.finish(ValueError("again"))
    task.cancel()
    assert len(errors) == 1


def test_while_memory_is_short_only_the_oldest_goes_on() -> None:
    loop, some = make(bytes_max=100)
    most = 0
    ended: list[int] = []
    tasks = [some.new_task(lambda error: None) for _ in range(10)]

    def work(number: int) -> Work:
        nonlocal most
        for _ in range(10):
            tasks[number].hold(60)
            most = max(most, some.held_bytes)
            yield None
        ended.append(number)
        tasks[number].release()

    for number, task in enumerate(tasks):
        task.begin(work(number))
    loop.run()
    assert sorted(ended) == list(range(10))
    assert some.held_bytes == 0
    # The oldest holds up to 600, and each of the others took one step before it was stopped.
    assert most <= 600 + 100 + 10 * 60


def test_cancelled_work_is_not_continued() -> None:
    loop, some = make()
    steps: list[int] = []
    task = some.new_task(lambda error: None)

    def work() -> Work:
        task.hold(10)
        while True:
            steps.append(1)
            if len(steps) == 3:
                task_to_cancel = task
                loop.call_soon(task_to_cancel.cancel)
                yield Deferred()
            yield None

    task.begin(work())
    loop.run()
    assert len(steps) == 3
    assert some.held_bytes == 0
    assert len(some) == 0


def test_no_full_collection_begins_while_there_is_work() -> None:
    loop, some = make()
    usual = gc.get_threshold()
    seen: list[tuple[int, int, int]] = []
    awaited: Deferred[int] = Deferred()

    def work() -> Work:
        seen.append(gc.get_threshold())
        yield awaited

    some.new_task(lambda error: None).begin(work())
    loop.run()
    assert seen == [(*usual[:2], turns.NEVER)]
    assert gc.get_threshold() == usual, "what waits keeps no collection from beginning"
    awaited.resolve(1)
    loop.run()
    assert gc.get_threshold() == usual
