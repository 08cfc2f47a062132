"""The sticky assignor: everything is assigned once, evenly, and moves only if it must."""

import random
from collections import Counter

import pytest

from ottla.coordination.group.streams.assignor import Wish, assign_sticky
from ottla.coordination.group.streams.internal_topics import ConfiguredSubtopology, InternalTopic
from ottla.coordination.group.streams.tasks import NO_TARGET, TargetTasks, Tasks

Targets = dict[str, TargetTasks]


def subtopologies(*counts: int) -> dict[str, ConfiguredSubtopology]:
    """Return subtopologies with so many tasks. Those with an even number keep state."""
    found = {}
    for number, count in enumerate(counts):
        name = f"{number}-changelog"
        changelogs = {} if number % 2 else {name: InternalTopic(name, count, 0, ())}
        found[str(number)] = ConfiguredSubtopology(count, frozenset({"in"}), frozenset(), {}, changelogs)
    return found


def wishes(members: dict[str, str], before: Targets | None = None) -> list[Wish]:
    return [Wish(one, process, (before or {}).get(one, NO_TARGET)) for one, process in members.items()]


def listed(tasks: Tasks) -> list[tuple[str, int]]:
    return [(one, number) for one, numbers in tasks.items() for number in numbers]


def check(targets: Targets, members: dict[str, str], counts: tuple[int, ...], replicas: int) -> None:
    assert set(targets) == set(members)
    active = Counter(task for target in targets.values() for task in listed(target.active))
    assert active == Counter(
        (str(one), number) for one, count in enumerate(counts) for number in range(count)
    )
    sizes = [len(listed(target.active)) for target in targets.values()]
    if len(set(members.values())) == len(members):
        assert max(sizes) - min(sizes) <= 1, "each has as many as the others"
    copies: Counter[tuple[str, int]] = Counter()
    held: dict[str, list[tuple[str, int]]] = {}
    for member_id, target in targets.items():
        copies.update(listed(target.standby))
        held.setdefault(members[member_id], []).extend((*listed(target.active), *listed(target.standby)))
    for tasks in held.values():
        assert len(set(tasks)) == len(tasks), "a process has a task in one form only"
    processes = len(set(members.values()))
    for one, count in enumerate(counts):
        for number in range(count):
            expected = 0 if one % 2 else min(replicas, processes - 1)
            assert copies[str(one), number] == expected


@pytest.mark.parametrize("seed", range(100))
def test_everything_is_assigned_once_and_evenly(seed: int) -> None:
    rng = random.Random(seed)
    counts = tuple(rng.randint(1, 8) for _ in range(rng.randint(1, 3)))
    replicas = rng.randint(0, 2)
    members: dict[str, str] = {}
    targets: Targets = {}
    for step in range(8):
        if members and rng.random() < 0.4:
            del members[rng.choice(list(members))]
        else:
            members[f"m{step}"] = f"p{step if rng.random() < 0.6 else rng.randint(0, 2)}"
        if members:
            targets = assign_sticky(wishes(members, targets), subtopologies(*counts), replicas)
            check(targets, members, counts, replicas)


@pytest.mark.parametrize("replicas", [0, 1])
def test_nothing_moves_if_nobody_comes_or_goes(replicas: int) -> None:
    members = {f"m{number}": f"p{number}" for number in range(4)}
    first = assign_sticky(wishes(members), subtopologies(6, 5), replicas)
    assert assign_sticky(wishes(members, first), subtopologies(6, 5), replicas) == first


def test_a_member_that_goes_leaves_its_tasks_to_those_who_copy_them() -> None:
    members = {"a": "p1", "b": "p2", "c": "p3"}
    first = assign_sticky(wishes(members), subtopologies(6), 1)
    del members["a"]
    second = assign_sticky(wishes(members, first), subtopologies(6), 1)
    taken_over = [
        task
        for task in listed(first["a"].active)
        for one in members
        if task in listed(first[one].standby) and task in listed(second[one].active)
    ]
    # As many as the shares of those who have copies leave room for.
    assert taken_over
    for one in members:
        assert set(listed(first[one].active)) <= set(listed(second[one].active)), "nothing else moves"
