"""What each test costs: seconds of the clock and of the CPU, its set-up, call and tear-down apart.

A pytest plugin that notes the costs, and the tables of them:

    make test COSTS=1

CPU seconds are those of the process that runs the test, and of all that it started. A busy machine makes
a test take longer, but hardly changes its CPU seconds. The difference of the two is what the test waits.

To ask for the CPU seconds of many processes takes milliseconds, more than most tests. What other processes
spend during a very short phase is therefore counted with the next longer one.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")
PHASES = ("setup", "call", "teardown")
_WORTH_ASKING_S = 0.02


class Cost(NamedTuple):
    test: str
    phase: str
    wall: float
    cpu: float

    @property
    def folder(self) -> str:
        return "/".join(self.test.split("::")[0].split("/")[:2])


def spent_cpu() -> float:
    """The CPU seconds of this process, of its descendants, and of those that it has waited for."""
    return sum(os.times()[:2]) + spent_by_others()


def spent_by_others() -> float:
    """The CPU seconds of the descendants of this process, and of those that it has waited for."""
    return sum(os.times()[2:4]) + _spent_by_children(os.getpid())


def _spent_by_children(pid: int) -> float:
    spent = 0.0
    for child in _children(pid):
        try:
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile, and is among those that were waited for
        spent += sum(int(ticks) for ticks in fields[11:15]) / _TICKS + _spent_by_children(child)
    return spent


def _children(pid: int) -> Iterator[int]:
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from map(int, thread.read_text().split())
        except OSError:
            continue


class CostNotes:
    """Notes the cost of each phase of each test in a file of this worker."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", buffering=1)
        self._others = spent_by_others()

    def _note(self, item: pytest.Item, phase: str) -> Iterator[None]:
        wall_before, cpu_before = time.monotonic(), time.process_time()
        yield
        wall, cpu = time.monotonic() - wall_before, time.process_time() - cpu_before
        if wall >= _WORTH_ASKING_S:
            others_before, self._others = self._others, spent_by_others()
            cpu += self._others - others_before
        cost = Cost(item.nodeid, phase, round(wall, 4), round(cpu, 4))
        self._file.write(json.dumps(cost) + "\n")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        yield from self._note(item, "setup")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        yield from self._note(item, "call")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        yield from self._note(item, "teardown")


def read_costs(folder: Path) -> list[Cost]:
    return [
        Cost(*json.loads(line))
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]


def _table(title: str, rows: Iterable[Sequence[object]]) -> None:
    print(f"\n{title}\n\n| what | tests | wall s | CPU s | set-up | call | tear-down |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            "| " + " | ".join(f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row) + " |"
        )


def _row(name: str, costs: Sequence[Cost]) -> tuple[object, ...]:
    cpu = {phase: sum(cost.cpu for cost in costs if cost.phase == phase) for phase in PHASES}
    tests = len({cost.test for cost in costs})
    return (name, tests, sum(cost.wall for cost in costs), sum(cpu.values()), *cpu.values())


def print_tables(folder: Path, dearest: int = 50) -> None:
    """Print what the folders, the dearest files and the dearest tests cost."""
    costs = read_costs(folder)
    folders, files, tests = (defaultdict[str, list[Cost]](list) for _ in range(3))
    for cost in costs:
        folders[cost.folder].append(cost)
        files[cost.test.split("::")[0]].append(cost)
        tests[cost.test].append(cost)
    _table("By folder", [_row(name, part) for name, part in sorted(folders.items())] + [_row("all", costs)])
    for title, parts in (("The dearest files", files), ("The dearest tests", tests)):
        rows = sorted((_row(name, part) for name, part in parts.items()), key=lambda row: -float(str(row[3])))
        _table(title, rows[:dearest])
