"""A task is started again later each time, tells how it does, and ends when it is asked to."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.connect.errors import Superseded, ToleranceExceeded
from ottla.connect.running import supervised as module
from ottla.connect.running.supervised import SupervisedUnit

UNIT: Any = "task c-0"


class Lives:
    """What each life of a unit does, in turn. Waits take no time, and are noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *lives: Any) -> None:
        self._lives = list(lives)
        self.told: list[tuple[str, str | None]] = []
        self.waited: list[float | None] = []
        noted, wait = self.waited, module.Stopping.wait

        async def waiting(stopping: module.Stopping, seconds: float | None = None) -> bool:
            noted.append(seconds)
            return await wait(stopping, 0)

        monkeypatch.setattr(module.Stopping, "wait", waiting)

    async def make(self) -> Any:
        life = self._lives.pop(0)
        if isinstance(life, tuple):
            # It fails before it runs.
            raise life[0]
        return _Life(life)

    def tell(self, unit: Any, state: str, reason: str | None) -> None:
        assert unit is UNIT
        self.told.append((state, reason))

    async def until_over(self) -> SupervisedUnit:
        unit = SupervisedUnit(UNIT, self.make, self.tell)
        await asyncio.wait_for(asyncio.shield(unit._task), 60)
        return unit


class _Life:
    def __init__(self, does: Callable[[Any, Any], None]) -> None:
        self._does = does

    async def run(self, ready: Any, is_stopping: Any) -> None:
        self._does(ready, is_stopping)


def fails(_ready: Any, _stopping: Any) -> None:
    raise OSError("no disk")


def ends(_ready: Any, stopping: Any) -> None:
    stopping.begin()


def works(*calls: bool) -> Callable[[Any, Any], None]:
    """Say that it is ready so often, each time with whether it has worked, and fail."""

    def life(ready: Any, _stopping: Any) -> None:
        for has_worked in calls:
            ready(has_worked=has_worked)
        raise OSError("no disk")

    return life


def test_what_fails_is_tried_again_later_each_time_up_to_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    lives = Lives(monkeypatch, *[fails] * 8, ends)
    asyncio.run(lives.until_over())
    assert lives.waited == [1, 2, 4, 8, 16, 32, 60, 60]
    assert {state for state, _ in lives.told} == {"FAILED"}
    reasons = [(reason or "").splitlines()[:3] for _, reason in lives.told]
    assert reasons[0] == ["no disk", "The next attempt is in 1 s.", "Traceback (most recent call last):"]
    assert reasons[7][1] == "The next attempt is in 60 s."


def test_what_cannot_be_made_is_tried_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lives = Lives(monkeypatch, (ValueError("no class"),), ends)
    asyncio.run(lives.until_over())
    assert [state for state, _ in lives.told] == ["FAILED"]
    assert lives.waited == [1]


def test_the_first_life_runs_when_it_is_ready_and_later_ones_when_they_have_done_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lives = Lives(monkeypatch, works(False, False), works(False), works(False, False), works(True), ends)
    asyncio.run(lives.until_over())
    assert [state for state, _ in lives.told] == [
        *("RUNNING", "FAILED"),
        "FAILED",
        *("RUNNING", "FAILED"),
        *("RUNNING", "FAILED"),
    ]
    # Whatever has run begins with the shortest wait again.
    assert lives.waited == [1, 2, 1, 1]


def test_a_record_that_is_not_tolerated_ends_a_task_until_somebody_restarts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lives = Lives(monkeypatch, (ToleranceExceeded("a bad record"),))
    asyncio.run(lives.until_over())
    ((state, reason),) = lives.told
    assert state == "FAILED"
    assert (reason or "").splitlines()[1] == "Traceback (most recent call last):"
    assert lives.waited == []


def test_a_task_that_another_takes_the_place_of_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lives = Lives(monkeypatch, (Superseded("an older generation"),))
    asyncio.run(lives.until_over())
    assert (lives.told, lives.waited) == ([], [])


def test_a_task_that_is_stopped_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        began = asyncio.Event()

        class Waiting:
            async def run(self, _ready: Any, is_stopping: Any) -> None:
                began.set()
                while not is_stopping():
                    await asyncio.sleep(0)
                ended.append("in order")

        async def make() -> Any:
            return Waiting()

        unit = SupervisedUnit(UNIT, make, lambda *_told: None)
        await began.wait()
        await unit.stop()
        assert unit._task.done()

    ended: list[str] = []
    asyncio.run(story())
    assert ended == ["in order"]
