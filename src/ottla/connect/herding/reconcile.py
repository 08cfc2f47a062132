"""What a worker must start and stop, from what it was assigned, what is configured and what it runs."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ottla.connect.herding.units import Unit
from ottla.connect.store.configs import STARTED, STOPPED, ConfigState


class Wanted(NamedTuple):
    """How a unit is to run: with which configuration, and whether it is to do anything."""

    config: Mapping[str, Any]
    target: str
    generation: int = 0
    """Of a task: which commit of the connector's tasks it belongs to. All of an earlier one stop."""


class Steps(NamedTuple):
    """What to do, in this order."""

    stop: list[Unit]
    """What is to be stopped, because it has gone, has another configuration or another target state."""
    start: dict[Unit, Wanted]


def wanted_by(assigned: Collection[Unit], state: ConfigState) -> dict[Unit, Wanted]:
    """Return how each assigned unit is to run. What is not configured (yet) is left out."""
    wanted: dict[Unit, Wanted] = {}
    for unit in sorted(assigned):
        config = state.connectors.get(unit.connector)
        if config is None:
            continue
        target = state.target_state(unit.connector)
        if unit.is_connector:
            wanted[unit] = Wanted(config, target)
            continue
        tasks = state.tasks.get(unit.connector, [])
        if target != STOPPED and unit.task < len(tasks):
            generation = state.generations.get(unit.connector, 0)
            wanted[unit] = Wanted(tasks[unit.task], target, generation)
    return wanted


def decide_steps(wanted: Mapping[Unit, Wanted], running: Mapping[Unit, Wanted]) -> Steps:
    """Compare what is to run with what runs."""
    stop = [unit for unit, current in running.items() if wanted.get(unit) != current]
    # Tasks stop before their connector, and a connector starts before its tasks.
    stop.sort(key=lambda unit: (unit.is_connector, unit))
    start = {unit: wish for unit, wish in sorted(wanted.items()) if running.get(unit) != wish}
    return Steps(stop, start)


def is_active(wish: Wanted) -> bool:
    """Say whether a unit is to do anything."""
    return wish.target == STARTED
