"""Deadlines fire once, in order, in monotonic time."""

import pytest
from tests.support.group_world import ManualClock

from ottla.coordination.runtime.timers import Timers


def never(_: int) -> None:
    raise AssertionError("it was cancelled")


def test_what_is_due_fires_once_and_in_order() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    fired: list[str] = []
    timers.schedule("late", 20, lambda _: fired.append("late"))
    timers.schedule("early", 10, lambda _: fired.append("early"))
    timers.schedule("also early", 10, lambda _: fired.append("also early"))
    timers.fire()
    assert fired == []
    clock.advance(10)
    timers.fire()
    assert fired == ["early", "also early"]
    clock.advance(10)
    timers.fire()
    timers.fire()
    assert fired == ["early", "also early", "late"]
    assert len(timers) == 0


def test_scheduling_again_moves_the_deadline() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    fired: list[int] = []
    timers.schedule("beat", 10, lambda _: fired.append(1))
    clock.advance(9)
    timers.schedule("beat", 10, lambda _: fired.append(2))
    clock.advance(9)
    timers.fire()
    assert fired == []
    assert timers.next_deadline_ms() == 19
    clock.advance(1)
    timers.fire()
    assert fired == [2]


def test_a_cancelled_timer_does_not_fire() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    timers.schedule("gone", 1, never)
    timers.cancel("gone")
    timers.cancel("never there")
    clock.advance(5)
    timers.fire()
    assert timers.next_deadline_ms() is None
    assert "gone" not in timers


def test_an_action_may_cancel_what_is_due_with_it() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    timers.schedule("first", 1, lambda _: timers.cancel("second"))
    timers.schedule("second", 1, never)
    clock.advance(1)
    timers.fire()
    assert len(timers) == 0


def test_an_action_may_move_what_is_due_with_it() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    fired: list[str] = []
    timers.schedule("first", 1, lambda _: timers.schedule("second", 5, lambda _: fired.append("moved")))
    timers.schedule("second", 1, lambda _: fired.append("not moved"))
    clock.advance(1)
    timers.fire()
    assert fired == []
    clock.advance(5)
    timers.fire()
    assert fired == ["moved"]


def test_what_an_action_schedules_for_now_waits_for_the_next_call() -> None:
    timers = Timers(ManualClock())
    fired: list[int] = []

    def again(_: int) -> None:
        fired.append(1)
        timers.schedule("again", 0, again)

    timers.schedule("again", 0, again)
    timers.fire()
    assert fired == [1]
    timers.fire()
    assert fired == [1, 1]


def test_an_action_that_fails_takes_no_other_with_it() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    fired: list[str] = []

    def fail(_: int) -> None:
        raise ValueError("a bug")

    timers.schedule("bad", 1, fail)
    timers.schedule("good", 1, lambda _: fired.append("good"))
    clock.advance(1)
    with pytest.raises(ValueError, match="a bug"):
        timers.fire()
    timers.fire()
    assert fired == ["good"]


def test_a_jump_of_the_wall_clock_moves_no_deadline() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    fired: list[int] = []
    timers.schedule("session", 1000, fired.append)
    clock.wall_ms += 3_600_000
    timers.fire()
    assert fired == []
    clock.wall_ms -= 7_200_000
    clock.advance(1000)
    timers.fire()
    assert fired == [clock.now_ms()], "actions are told the wall time"


def test_the_driver_is_woken_only_when_the_first_deadline_comes_closer() -> None:
    woken: list[int] = []
    timers = Timers(ManualClock(), woken.append)
    timers.schedule("a", 50, lambda _: None)
    timers.schedule("b", 70, lambda _: None)
    timers.schedule("c", 20, lambda _: None)
    assert woken == [50, 20]


def test_moving_a_deadline_thousands_of_times_does_not_grow_the_heap() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    for beat in range(20_000):
        timers.schedule(beat % 10, 1000, lambda _: None)
        clock.advance(1)
    assert len(timers._heap) == 10, "a deadline that moves away stays where it was"
    assert len(timers) == 10
    clock.advance(2000)
    timers.fire()
    assert len(timers) == 0


def test_moving_a_deadline_to_and_fro_does_not_grow_the_heap() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    fired: list[int] = []
    for delay_ms in range(20_000, 0, -1):
        timers.schedule("closer", delay_ms, fired.append)
    for _ in range(20_000):
        timers.schedule("again", 50_000, fired.append)
        timers.cancel("again")
    assert len(timers._heap) < 2048
    clock.advance(1)
    timers.fire()
    assert len(fired) == 1
    assert len(timers) == 0


def test_clear_forgets_everything() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    timers.schedule("a", 1, never)
    timers.clear()
    clock.advance(2)
    timers.fire()
    assert timers.next_deadline_ms() is None
