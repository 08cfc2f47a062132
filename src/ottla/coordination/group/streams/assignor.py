"""The sticky assignor: every member gets as many tasks as the others, and what need not move stays.

Members are threads, and several of them may be in one process. First each member keeps the active tasks that
it had, as far as its share goes. Then a task goes to a member that had a copy of it. What is left goes to the
process with the least load, and there to the member with the fewest tasks. Standby tasks follow in the same
way, never on a process that has the task already. If there are too few processes, there are fewer copies.

Where two are alike the smaller id is taken. Kafka takes what its hash maps have first. Otherwise this is
Kafka's assignor. Like it, it looks neither at racks nor at client tags.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ottla.coordination.group.streams.internal_topics import ConfiguredSubtopology
from ottla.coordination.group.streams.tasks import TargetTasks, Tasks


class Wish(NamedTuple):
    """A member as the assignor sees it."""

    member_id: str
    process_id: str
    before: TargetTasks
    """What it should have until now."""


class _Task(NamedTuple):
    subtopology: str
    partition: int


def assign_sticky(
    wishes: Iterable[Wish], subtopologies: Mapping[str, ConfiguredSubtopology], standby_replicas: int
) -> dict[str, TargetTasks]:
    """Return what each member should have."""
    assignment = _Assignment(sorted(wishes), subtopologies, standby_replicas)
    assignment.assign_active()
    if standby_replicas > 0:
        assignment.assign_standby()
    return assignment.targets()


class _Share:
    """How many tasks a member may have. Once one has its share, the rest is for the others."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.size = -(-tasks // members) if members else 0

    def taken(self, count: int) -> None:
        """A member has this many now."""
        if count == self.size:
            self._members -= 1
            self._tasks -= count
            self.size = -(-self._tasks // self._members) if self._members else 0


class _Process:
    """The members of one process."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.tasks: set[_Task] = set()

    @property
    def load(self) -> float:
        return sum(self.counts.values()) / len(self.counts)

    def least_loaded(self) -> str:
        return min(self.counts, key=self.counts.__getitem__)


class _Assignment:
    def __init__(
        self, wishes: list[Wish], subtopologies: Mapping[str, ConfiguredSubtopology], standby_replicas: int
    ) -> None:
        self._standby_replicas = standby_replicas
        self._process_of = {wish.member_id: wish.process_id for wish in wishes}
        self._processes: dict[str, _Process] = {}
        for process_id in sorted(set(self._process_of.values())):
            self._processes[process_id] = _Process()
        for wish in wishes:
            self._processes[wish.process_id].counts[wish.member_id] = 0
        self._all = _tasks_of(subtopologies)
        self._stateful = _tasks_of({one: it for one, it in subtopologies.items() if it.is_stateful})
        self._active_share = _Share(len(self._all), len(wishes))
        self._share = _Share(len(self._all) + standby_replicas * len(self._stateful), len(wishes))
        self._had_active: dict[_Task, str] = {}
        self._had_copy: dict[_Task, list[str]] = {}
        for wish in wishes:
            for task in _listed(wish.before.active):
                self._had_active[task] = wish.member_id
            for task in _listed(wish.before.standby):
                self._had_copy.setdefault(task, []).append(wish.member_id)
        self._active: dict[str, list[_Task]] = {wish.member_id: [] for wish in wishes}
        self._standby: dict[str, list[_Task]] = {wish.member_id: [] for wish in wishes}

    def targets(self) -> dict[str, TargetTasks]:
        return {
            member_id: TargetTasks(_by_subtopology(active), _by_subtopology(self._standby[member_id]), {})
            for member_id, active in self._active.items()
        }

    # Active tasks

    def assign_active(self) -> None:
        tasks = sorted(self._all, key=_by_partition)
        left = [task for task in tasks if not self._give_back(task, self._had_active.get(task))]
        left = [task for task in left if not self._give_back(task, self._find_copy(task))]
        queue = self._by_load()
        for task in sorted(left):
            _, process_id = heappop(queue)
            process = self._processes[process_id]
            self._give_active(task, process.least_loaded())
            heappush(queue, (process.load, process_id))

    def _give_back(self, task: _Task, member_id: str | None) -> bool:
        if member_id is None or self._count(member_id) >= self._active_share.size:
            return False
        self._give_active(task, member_id)
        return True

    def _give_active(self, task: _Task, member_id: str) -> None:
        self._active[member_id].append(task)
        count = self._add(task, member_id)
        self._active_share.taken(count)
        self._share.taken(count)

    def _find_copy(self, task: _Task) -> str | None:
        """Return who had a copy of a task and has the least to do. One whose process has the task has not."""
        had = [one for one in self._had_copy.get(task, ()) if task not in self._process(one).tasks]
        return min(had, key=lambda one: (self._process(one).load, self._count(one), one), default=None)

    # Standby tasks

    def assign_standby(self) -> None:
        left: list[tuple[_Task, int]] = []
        for task in sorted(self._stateful, key=_by_partition, reverse=True):
            for given in range(self._standby_replicas):
                if not (
                    self._give_copy_back(task, self._had_active.get(task))
                    or self._give_copy_back(task, self._find_copy(task))
                ):
                    left.append((task, self._standby_replicas - given))
                    break
        queue = self._by_load()
        for task, replicas in sorted(left, reverse=True):
            for _ in range(replicas):
                if not self._give_copy_to_somebody(task, queue):
                    break

    def _give_copy_back(self, task: _Task, member_id: str | None) -> bool:
        if (
            member_id is None
            or task in self._process(member_id).tasks
            or self._count(member_id) >= self._share.size
        ):
            return False
        self._give_copy(task, member_id)
        return True

    def _give_copy_to_somebody(self, task: _Task, queue: list[tuple[float, str]]) -> bool:
        passed = []
        found = False
        while queue and not found:
            load, process_id = heappop(queue)
            process = self._processes[process_id]
            found = task not in process.tasks
            if found:
                self._give_copy(task, process.least_loaded())
                load = process.load
            passed.append((load, process_id))
        for entry in passed:
            heappush(queue, entry)
        return found

    def _give_copy(self, task: _Task, member_id: str) -> None:
        self._standby[member_id].append(task)
        self._share.taken(self._add(task, member_id))

    # Members and processes

    def _process(self, member_id: str) -> _Process:
        return self._processes[self._process_of[member_id]]

    def _count(self, member_id: str) -> int:
        return self._process(member_id).counts[member_id]

    def _add(self, task: _Task, member_id: str) -> int:
        process = self._process(member_id)
        process.tasks.add(task)
        process.counts[member_id] += 1
        return process.counts[member_id]

    def _by_load(self) -> list[tuple[float, str]]:
        queue = [(process.load, process_id) for process_id, process in self._processes.items()]
        heapify(queue)
        return queue


def _by_partition(task: _Task) -> tuple[int, str]:
    return task.partition, task.subtopology


def _tasks_of(subtopologies: Mapping[str, ConfiguredSubtopology]) -> list[_Task]:
    return [_Task(one, number) for one, it in subtopologies.items() for number in range(it.task_count)]


def _listed(tasks: Tasks) -> list[_Task]:
    return [_Task(one, number) for one, numbers in tasks.items() for number in numbers]


def _by_subtopology(tasks: list[_Task]) -> Tasks:
    found: dict[str, set[int]] = {}
    for one, number in tasks:
        found.setdefault(one, set()).add(number)
    return {one: frozenset(numbers) for one, numbers in found.items()}
