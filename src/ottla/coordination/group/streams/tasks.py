"""Tasks: the units of work of a streams group. A task is one partition number of one subtopology.

An active task processes records. A standby task keeps a copy of a task's state on another process. A warm-up
task prepares a copy for an active task that is to move. Apache Kafka 4.3.1 assigns no warm-up tasks yet, but
its records and answers have room for them.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

Tasks = Mapping[str, frozenset[int]]
"""Partition numbers by subtopology."""
TasksWithEpochs = Mapping[str, Mapping[int, int]]
"""Partition numbers by subtopology, each with the epoch in which it was assigned."""


class TargetTasks(NamedTuple):
    """What a member should have."""

    active: Tasks
    standby: Tasks
    warmup: Tasks


class HeldTasks(NamedTuple):
    """What a member has, or has yet to give up."""

    active: TasksWithEpochs
    standby: Tasks
    warmup: Tasks

    @property
    def is_empty(self) -> bool:
        """Whether there is no task of any kind."""
        return not (self.active or self.standby or self.warmup)


NO_TARGET: Final = TargetTasks({}, {}, {})
NOTHING_HELD: Final = HeldTasks({}, {}, {})


class _TaskIds(Protocol):
    """Tasks of one subtopology, as several messages have them."""

    @property
    def subtopology_id(self) -> str: ...
    @property
    def partitions(self) -> Iterable[int]: ...


def tasks_of(task_ids: Iterable[_TaskIds]) -> Tasks:
    """Read the tasks of a message."""
    tasks: dict[str, frozenset[int]] = {}
    for one in task_ids:
        tasks[one.subtopology_id] = tasks.get(one.subtopology_id, frozenset()).union(one.partitions)
    return tasks


def have_in_common(owned: TargetTasks, held: HeldTasks) -> bool:
    """Say whether a member that owns some tasks owns any of these."""
    return any(
        not numbers.isdisjoint(of_kind.get(subtopology, ()))
        for tasks, of_kind in zip(owned, held, strict=True)
        for subtopology, numbers in tasks.items()
    )
