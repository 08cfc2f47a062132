"""Timers do what a table of names and deadlines would do, however they are moved about."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.group_world import ManualClock

from ottla.coordination.runtime.timers import Timers

NAMES = st.integers(0, 3)
STEPS = st.one_of(
    st.tuples(st.just("schedule"), NAMES, st.integers(0, 20)),
    st.tuples(st.just("cancel"), NAMES, st.just(0)),
    st.tuples(st.just("advance"), st.integers(0, 15), st.just(0)),
    st.tuples(st.just("look"), st.just(0), st.just(0)),
)


@given(st.lists(STEPS, max_size=60))
def test_timers_are_a_table_of_deadlines(steps: list[tuple[str, int, int]]) -> None:
    clock = ManualClock()
    timers = Timers(clock)
    table: dict[int, tuple[int, int]] = {}
    fired: list[int] = []
    for number, (what, name, delay_ms) in enumerate(steps):
        if what == "schedule":
            timers.schedule(name, delay_ms, lambda _, name=name: fired.append(name))  # type: ignore[misc]
            table[name] = (clock.monotonic_ms() + delay_ms, number)
        elif what == "cancel":
            timers.cancel(name)
            table.pop(name, None)
        elif what == "advance":
            clock.advance(name)
            due = sorted((when, name) for name, when in table.items() if when[0] <= clock.monotonic_ms())
            fired.clear()
            timers.fire()
            assert fired == [name for _, name in due]
            for _, name in due:
                del table[name]
        else:
            first = min(table.values(), default=(None, 0))[0]
            assert timers.next_deadline_ms() == first
        assert len(timers) == len(table)
        if table:
            assert timers._heap[0][0] <= min(table.values())[0], "the driver is never woken too late"
