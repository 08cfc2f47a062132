"""What a run of the suite adds to pytest.

`tests/suite/scheduling.py` decides which worker runs a test, and when. Costs are noted if they are asked for.
The last lines say what was left out, and which processes outlived their tests.
"""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.suite.costs import CostNotes
from tests.suite.leftovers import TOKEN, end_leftovers, hand_out_token
from tests.suite.scheduling import GroupScheduling, group_of, mixed
from tests.suite.selection import LEFT_OUT

_LEFT_OUT = "tests that were left out"


def start(config: pytest.Config) -> None:
    """Set up a worker, or the process that runs workers."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        hand_out_token()
        config.pluginmanager.register(EndOfRun(), "end of the run")
    config.pluginmanager.register(Order(), "order of tests")
    config.pluginmanager.register(LeftOut(config), "tests that are left out")
    if costs := os.environ.get("COSTS"):
        config.pluginmanager.register(CostNotes(Path(costs) / f"{worker or 'alone'}-{os.getpid()}.jsonl"))


class Order:
    """Which worker runs a test, and when. pytest-randomly has shuffled the tests before."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = {group: place for place, group in enumerate(mixed(dict.fromkeys(map(_group, items))))}
        items.sort(key=lambda item: order[_group(item)])
        # Many thousand tests are objects that stay: the collector of garbage need not look at them again.
        gc.collect()
        gc.freeze()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        return GroupScheduling(config, log)


def _group(item: pytest.Item) -> str:
    return group_of(item.nodeid)


class LeftOut:
    """Counts the tests that the markers leave out: each worker sees all of them."""

    def __init__(self, config: pytest.Config) -> None:
        self._output: dict[str, Any] | None = getattr(config, "workeroutput", None)
        self.by_marker: dict[str, int] = {}

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        for item in items:
            marker = next((name for name in LEFT_OUT if item.get_closest_marker(name)), None)
            if marker is not None:
                self.by_marker[marker] = self.by_marker.get(marker, 0) + 1

    def pytest_sessionfinish(self) -> None:
        if self._output is not None:
            self._output[_LEFT_OUT] = self.by_marker

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.by_marker:
            terminalreporter.write_line(describe_left_out(self.by_marker))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.by_marker = getattr(node, "workeroutput", {}).get(_LEFT_OUT, self.by_marker)


def describe_left_out(by_marker: dict[str, int]) -> str:
    reasons = {"thorough": "long", "live_oracle": "with a live Apache Kafka"}
    parts = " and ".join(
        f"{by_marker[marker]} {reasons[marker]}" for marker in LEFT_OUT if by_marker.get(marker)
    )
    return f"left out: {parts}; `make test WHAT=all` runs everything"


class EndOfRun:
    """Looks for processes that outlive their tests, once all workers have ended."""

    def __init__(self) -> None:
        self._complaint = ""

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        yield  # to the plugins that end workers and what tests share; the summary comes after this
        if leftovers := end_leftovers(os.environ[TOKEN]):
            self._complaint = "\n".join(f"  {leftover.pid} {leftover.command}" for leftover in leftovers)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._complaint:
            terminalreporter.write_line("these processes outlived their tests, and were ended:", red=True)
            terminalreporter.write_line(self._complaint)
