"""Tests that share something dear run in one worker, in the order in which they were collected."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from tests.suite.plugin import Order
from tests.suite.scheduling import BUSY_FOLDERS, WAITING_FOLDERS, GroupScheduling, group_of, mixed
from tests.suite.selection import ROOT
from xdist.remote import Producer


class Worker:
    """What the scheduler needs of a worker: it is given the numbers of tests."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.given: list[int] = []

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.given += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


def distribute(tests: list[str], workers: int) -> list[list[str]]:
    """Return the tests that each worker runs, the first being the quickest."""
    config: Any = SimpleNamespace(
        option=SimpleNamespace(), getvalue=lambda name: {"tx": [f"{workers}*popen"]}[name]
    )
    config.option.loadscopereorder = True
    scheduling = Order().pytest_xdist_make_scheduler(config, Producer("test", enabled=False))
    assert isinstance(scheduling, GroupScheduling)
    started: list[Any] = [Worker(str(number)) for number in range(workers)]
    for worker in started:
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, tests)
    scheduling.schedule()
    for worker in started:
        for number in worker.given:  # it grows meanwhile
            scheduling.mark_test_complete(worker, number)
    return [[tests[number] for number in worker.given] for worker in started]


def test_files_that_share_a_set_up_run_in_one_worker() -> None:
    tests = [
        f"tests/pipelines/{file}.py::{test}[{case}]"
        for file in ("test_a", "test_b")
        for test in ("x", "y")
        for case in ("@", "z::z")
    ]
    assert distribute(tests, 1) == [tests]
    assert {group_of(test) for test in tests} == {"tests/pipelines"}


def test_a_file_runs_in_one_worker_and_those_that_come_first_begin() -> None:
    few = [f"tests/cluster/test_few.py::{number}" for number in range(2)]
    many = [f"tests/unit/wire/test_many.py::{number}" for number in range(9)]
    others = [f"tests/unit/wire/test_other.py::{number}" for number in range(4)]
    first, second = distribute([*few, *many, *others], 2)
    assert first == [*few, *others]
    assert second == many


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/cluster/test_mirror.py::test_a[b/c::d]", "tests/cluster/test_mirror.py"),
        ("tests/registry/foreign/test_a.py::test_b", "tests/registry"),
        ("tests/registry_of_others/test_a.py::test_b", "tests/registry_of_others/test_a.py"),
    ],
)
def test_a_group_follows_from_the_name_of_a_test(test: str, group: str) -> None:
    assert group_of(test) == group


def test_tests_that_wait_are_spread_among_those_that_compute() -> None:
    waiting = [f"tests/cluster/test_{number}.py" for number in range(9)]
    busy = [f"tests/unit/wire/test_{number}.py" for number in range(30)]
    order = mixed(
        [*busy, "tests/simulation/test_a.py", *waiting, "tests/pipelines", "tests/property/test_b.py"]
    )
    assert order[:2] == ["tests/pipelines", "tests/simulation/test_a.py"]
    assert [group for group in order if group in waiting] == waiting
    assert [group for group in order if group in busy] == busy
    places = [order.index(group) for group in waiting]
    assert {later - sooner for sooner, later in pairwise(places)} == {3, 4}
    assert order.index("tests/property/test_b.py") < order.index(busy[0])
    assert order[-4:] == busy[-4:]


def test_one_kind_alone_keeps_its_order() -> None:
    for folder in ("cluster", "unit/model"):
        groups = [f"tests/{folder}/test_{number}.py" for number in range(3)]
        assert mixed(groups) == groups


def test_folders_that_begin_early_exist() -> None:
    assert {
        folder for folder in WAITING_FOLDERS + BUSY_FOLDERS if not (ROOT / "tests" / folder).is_dir()
    } == set()
