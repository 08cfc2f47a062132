"""Whether tests notice a fault: they run in a fork of their own, until the first one fails.

What notices a fault must pass without it: the same tests run once more in a fork in which no fault holds,
and only then does the verdict count. A fault that makes a test run for ever is stopped by the CPU that the
test takes otherwise, and where it waits for ever by a clock; both limits, too, must do for the tests
without it.
"""

import contextlib
import gc
import json
import math
import os
import re
import resource
import select
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

import pytest
from tests.mutants.faults import Fault
from tests.mutants.line_map import Cost, LineMap, is_golden_of
from tests.mutants.planting import CACHE, Modules, Switch
from tests.mutants.sessions import Outcome, cpu_seconds, now, quiet, run_one, with_tests

_MEMORY_BYTES_MAX: Final = 8 << 30
_TESTS_MAX: Final = 300
_TESTS_MAX_AT_IMPORT: Final = 2_000
_BUDGETS_AT_IMPORT: Final = 4
"""Golden tests of data are many and short, and each looks at another part of it: all of them are asked."""
_FILES_MAX_AT_IMPORT: Final = 8
_START_SECONDS: Final = 120.0
"""How long an import and the collection of tests may take."""

Case = tuple[Fault, list[str], int]
"""A fault, the tests that are to run, and how many there are that execute it."""
Verdict = Literal["killed", "timed out", "with a node", "survived", "not executed", "undecided"]
NOTICED: Final = frozenset({"killed", "timed out"})


@dataclass
class Result:
    """What became of one fault."""

    fault: Fault
    verdict: Verdict
    ran: int = 0
    covering: int = 0
    """How many tests execute the statement. Those that did not run are not asked."""
    by: str = ""
    cpu_s: float = 0.0


# --- which tests run ------------------------------------------------------------------------------


def tests_for(fault: Fault, line_map: LineMap, budget_s: float) -> tuple[list[str], int]:
    """Choose tests that execute a fault, near and quick ones first. Returns how many there are, too."""
    home = _words(str(Path(fault.file).with_suffix("")))
    executing = line_map.executing(fault)
    cost = {test: line_map.costs[test].cpu_s for test in executing}
    by_file: dict[str, list[str]] = {}
    for test in sorted(executing, key=lambda test: (cost[test], test)):
        by_file.setdefault(test.partition("::")[0], []).append(test)

    def nearness(file: str) -> tuple[int, float, str]:
        return -len(home & _words(file)), cost[by_file[file][0]], file

    files = sorted(by_file, key=nearness)
    if fault.at_import:
        golden = [file for file in files if is_golden_of(fault.file, file)]
        near = [file for file in files if file not in golden]
        files = [*golden, *near[:_FILES_MAX_AT_IMPORT]]
    # One of each file in turn, so that many tests of one file leave room for others.
    depth = max((len(by_file[file]) for file in files), default=0)
    in_turn = [by_file[file][at] for at in range(depth) for file in files if at < len(by_file[file])]
    picked: list[str] = []
    left = budget_s * (_BUDGETS_AT_IMPORT if fault.at_import else 1)
    tests_max = _TESTS_MAX_AT_IMPORT if fault.at_import else _TESTS_MAX
    for test in in_turn:
        if len(picked) < tests_max and (not picked or cost[test] <= left):
            picked.append(test)
            left -= cost[test] + 0.002
    rank = {file: at for at, file in enumerate(files)}
    return sorted(picked, key=lambda test: rank[test.partition("::")[0]]), len(executing)


def _words(path: str) -> set[str]:
    """Return the words of a path: tests of `fetch` may be in `test_fetch_limits`."""
    return set(re.split(r"[/._]", path))


# --- one run in a fork ----------------------------------------------------------------------------


@dataclass
class _Run:
    """Tests in a process of their own, and what it said so far."""

    fault: Fault
    tests: list[str]
    active: str
    pid: int = 0
    pipe: int = -1
    scratch: str = ""
    said: list[str] = field(default_factory=list)
    rest: bytes = b""
    until: float = 0.0

    def read(self) -> bool:
        """Read what came. False: it has ended."""
        data = os.read(self.pipe, 65536)
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.said += [line.decode(errors="replace") for line in lines]
        for line in lines:
            if line.startswith(b"start "):
                self.until = now() + float(line.split()[2])
        return bool(data)


class _Failed(BaseException):
    pass


def _limits(cost: Cost) -> tuple[float, float]:
    """CPU and wall-clock seconds after which a test is taken to run for ever."""
    # The first test of a run may have to start a node, which the same test did not when it was noted.
    return 5 + 10 * cost.cpu_s, 30 + 20 * cost.wall_s


def _run_tests(
    items: dict[str, pytest.Item], run: _Run, costs: Mapping[str, Cost], switch: Switch, outcome: Outcome
) -> None:
    """Run tests until the first failure, and say on a pipe how it goes. In a process of its own."""

    def say(*words: object) -> None:
        os.write(run.pipe, (" ".join(map(str, words)) + "\n").encode())

    chosen = [items[test] for test in run.tests if test in items]
    if len(chosen) < len(run.tests):
        say("failed", len(chosen), "not all tests can be collected")
        return
    switch.active = run.active
    for at, (item, following) in enumerate(zip(chosen, [*chosen[1:], None], strict=True)):
        cpu_max, wall_max = _limits(costs[item.nodeid])
        say("start", at, wall_max)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds() + cpu_max) + 1, hard))
        outcome.begin()
        run_one(item, following)
        if outcome.failed:
            say("failed", at, (outcome.failed.strip().splitlines() or ["?"])[-1][:300])
            return
    say("reached" if switch.reached else "unreached")


def _fork(run: _Run, slot: int, body: Callable[[_Run], None]) -> None:
    reading, writing = os.pipe()
    run.scratch = tempfile.mkdtemp(prefix="mutant-")
    Path(run.scratch).chmod(0o755)
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.close(reading)
            run.pipe = writing
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, resource.RLIM_INFINITY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.environ.update(
                TMPDIR=run.scratch, PYTEST_XDIST_WORKER=f"gw{slot}", PYTEST_XDIST_WORKER_COUNT="8"
            )
            tempfile.tempdir = None
            body(run)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    run.pid, run.pipe, run.until = child, reading, now() + _START_SECONDS


def _ended(run: _Run) -> str:
    """Stop all that a run started, and tell how it ended: as it says itself, or by a signal."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)
    status = os.waitpid(run.pid, 0)[1]
    os.close(run.pipe)
    shutil.rmtree(run.scratch, ignore_errors=True)
    last = run.said[-1] if run.said else ""
    if last.startswith(("failed", "reached", "unreached")):
        return last
    at = last.split()[1] if last else "-1"
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number in {signal.SIGXCPU, signal.SIGKILL}:
        return f"stopped {at}"
    return f"failed {at} the process ended: {signal.strsignal(number) if number else 'exit'}"


def _in_turn(
    runs: Iterator[_Run], jobs: int, start: Callable[[_Run, int], None]
) -> Iterator[tuple[_Run, str]]:
    """Start runs, so many at the same time, and return each when it has ended."""
    running: dict[int, _Run] = {}
    while True:
        while len(running) < jobs and (run := next(runs, None)) is not None:
            slot = min(set(range(jobs)) - set(running))
            start(run, slot)
            running[slot] = run
        if not running:
            return
        ready = select.select([run.pipe for run in running.values()], [], [], 0.5)[0]
        for slot, run in list(running.items()):
            ended = run.pipe in ready and not run.read()
            if ended or now() > run.until:
                del running[slot]
                yield run, _ended(run)


# --- verdicts -------------------------------------------------------------------------------------


class _Court:
    """Hands out runs, and turns what they say into verdicts."""

    def __init__(self, cases: Sequence[Case], until: float = math.inf) -> None:
        self._until = until
        self._covering = {fault.name: covering for fault, _, covering in cases}
        self._waiting = [_Run(fault, tests, fault.name) for fault, tests, _ in cases][::-1]
        self._suspected: dict[str, Result] = {}

    def __iter__(self) -> Iterator[_Run]:
        return self

    def __next__(self) -> _Run:
        if not self._waiting or now() > self._until:
            raise StopIteration
        return self._waiting.pop()

    def unheard(self) -> Iterator[Result]:
        """Give what nobody had the time to judge."""
        for run in self._waiting:
            covering = self._covering[run.fault.name]
            yield Result(run.fault, "undecided", 0, covering, "there was no time for it")

    def hear(self, run: _Run, end: str) -> Result | None:
        """Judge a fault by how its run ended. None: the same tests are to run without it first."""
        word, _, rest = end.partition(" ")
        covering = self._covering[run.fault.name]
        if not run.active:
            suspected = self._suspected.pop(run.fault.name)
            if word not in {"reached", "unreached"}:
                suspected.verdict = "undecided"
                suspected.by += f" (without the fault: {end})"
            return suspected
        if word == "reached" or (word == "unreached" and run.fault.at_import):
            return Result(run.fault, "survived", len(run.tests), covering)
        if word == "unreached":
            return Result(run.fault, "not executed", len(run.tests), covering)
        number, _, why = rest.partition(" ")
        at = int(number)
        killer = run.tests[at] if 0 <= at < len(run.tests) else "the import"
        verdict: Verdict = "timed out" if word == "stopped" else "killed"
        self._suspected[run.fault.name] = Result(
            run.fault, verdict, at + 1, covering, f"{killer} {why}".strip()
        )
        self._waiting.append(_Run(run.fault, run.tests[: at + 1] or run.tests[:1], ""))
        return None


def judge(
    faults: Sequence[Fault],
    line_map: LineMap,
    *,
    budget_s: float,
    jobs: int,
    heard: Callable[[Result], None],
    until: float = math.inf,
) -> None:
    """Run the tests that execute each fault, and hand over each result as soon as it is there.

    When the time is over, no more runs begin, and what is left is undecided.
    """
    inner: list[Case] = []
    outer: list[Case] = []
    for fault in faults:
        tests, covering = tests_for(fault, line_map, budget_s)
        if not tests:
            # What was not learned may well execute it.
            lacks_time = Result(fault, "undecided", by="there was no time to learn what its tests execute")
            heard(Result(fault, "not executed") if line_map.is_whole else lacks_time)
        else:
            (outer if fault.at_import else inner).append((fault, tests, covering))
    if inner:
        _judge_in_a_session(inner, line_map.costs, jobs, heard, until)
    court = _Court(outer, until)
    for run, end in _in_turn(court, jobs, lambda run, slot: _fork(run, slot, _importing(line_map.costs))):
        if result := court.hear(run, end):
            heard(result)
    for result in court.unheard():
        heard(result)


def judge_in_turn(
    faults: Sequence[Fault],
    line_maps: Iterable[Callable[[], LineMap]],
    *,
    budget_s: float,
    jobs: int,
    heard: Callable[[Result], None],
    until: float = math.inf,
) -> None:
    """Ask the tests of one map after the other, each about what those before it did not notice.

    Only the first of them are quick: what later ones notice has a verdict of its own.
    """
    waiting = {fault.name: Result(fault, "not executed") for fault in faults}
    for number, line_map in enumerate(line_maps):
        if not waiting:
            return

        def hear(result: Result, number: int = number) -> None:
            before = waiting[result.fault.name]
            if result.verdict in NOTICED:
                del waiting[result.fault.name]
                heard(replace(result, verdict="with a node") if number else result)
            elif number == 0 or (before.verdict == "not executed" and result.verdict != "not executed"):
                waiting[result.fault.name] = result

        left = [result.fault for result in waiting.values()]
        judge(left, line_map(), budget_s=budget_s, jobs=jobs, heard=hear, until=until)
    for result in waiting.values():
        heard(result)


def _planted_by_file(faults: Sequence[Fault]) -> dict[str, list[Fault]]:
    by_file: dict[str, list[Fault]] = {}
    for fault in faults:
        by_file.setdefault(fault.file, []).append(fault)
    return by_file


def _importing(costs: Mapping[str, Cost]) -> Callable[[_Run], None]:
    """What an import executes is judged by a process that has imported nothing yet."""

    def body(run: _Run) -> None:
        quiet(str(CACHE / "imports.log"))
        modules, outcome = Modules({run.fault.file: [run.fault]}), Outcome()
        modules.install()
        modules.switch.active = run.active
        files = sorted({test.partition("::")[0] for test in run.tests})
        with_tests(files, outcome, lambda items: _run_tests(items, run, costs, modules.switch, outcome))

    return body


def _judge_in_a_session(
    cases: Sequence[Case],
    costs: Mapping[str, Cost],
    jobs: int,
    heard: Callable[[Result], None],
    until: float,
) -> None:
    """Let one process import source and tests, which forks for each fault."""
    reading, writing = os.pipe()
    by_name = {fault.name: fault for fault, _, _ in cases}
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            quiet(str(CACHE / "session.log"))
            _session(cases, costs, jobs, lambda result: _send(writing, result), until)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        for line in lines:
            told = json.loads(line)
            fault = by_name.pop(told.pop("fault"))
            heard(Result(fault, **told))
    os.waitpid(child, 0)
    for fault in by_name.values():
        heard(Result(fault, "undecided", by="the session ended: see target/mutants/session.log"))


def _send(pipe: int, result: Result) -> None:
    told = {**result.__dict__, "fault": result.fault.name}
    os.write(pipe, (json.dumps(told) + "\n").encode())


def _session(
    cases: Sequence[Case],
    costs: Mapping[str, Cost],
    jobs: int,
    heard: Callable[[Result], None],
    until: float,
) -> None:
    modules, outcome = Modules(_planted_by_file([fault for fault, _, _ in cases])), Outcome()
    modules.install()
    files = sorted({test.partition("::")[0] for _, tests, _ in cases for test in tests})

    def loop(items: dict[str, pytest.Item]) -> None:
        gc.collect()
        gc.freeze()
        court = _Court(cases, until)

        def body(run: _Run) -> None:
            _run_tests(items, run, costs, modules.switch, outcome)

        for run, end in _in_turn(court, jobs, lambda run, slot: _fork(run, slot, body)):
            if result := court.hear(run, end):
                heard(result)
        for result in court.unheard():
            heard(result)

    print(*with_tests(files, outcome, loop), sep="\n", flush=True)
