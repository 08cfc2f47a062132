"""Which test executes which statement, and what it costs: made once, and kept by content under target/.

Each file of tests has an entry. It holds as long as the file, what it imports of tests/, and the modules of
the wanted room that its tests execute are the same: then they execute the same statements there. After a
change the entry is made anew; a quick look at a change uses the old one, in which what is known of a
function stays true until the function itself changes, and then says at least which tests call it.

An entry is made with probes in the source (`planting`): a store into a bytearray before each statement.
"""

import ast
import gc
import hashlib
import json
import os
import re
import signal
import tempfile
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from tests.mutants.faults import SOURCE, Fault, parsed
from tests.mutants.planting import CACHE, Modules, statements_of, write_whole
from tests.mutants.sessions import (
    Outcome,
    cpu_seconds,
    now,
    quiet,
    run_one,
    stop_after,
    with_tests,
)

QUICK: Final = ("tests/unit", "tests/property", "tests/golden", "tests/simulation")
"""What runs in the process of the test: no Java, no servers in processes of their own, no Spark."""
WITH_NODES: Final = ("tests/cli", "tests/clients", "tests/registry")
"""What runs beside a node: asked about faults that nothing quicker notices."""
GOLDEN: Final = "tests/golden/"
TEST_CPU_SECONDS_MAX: Final = 10.0
TEST_SECONDS_MAX: Final = 180.0
"""A test that takes more is not in the map."""
_IMPORT: Final = re.compile(
    r"^\s*(?:from\s+(tests[\w.]*)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+(tests[\w.]*))", re.M
)
_DIGITS: Final = bytes([ord("0")]) + bytes([ord("1")]) * 255


@dataclass(frozen=True)
class Cost:
    """What a test takes."""

    cpu_s: float
    wall_s: float


# --- files of tests -------------------------------------------------------------------------------


def files_of_tests(places: Iterable[str]) -> list[str]:
    """Return the files of tests below some places."""
    found: list[str] = []
    for place in places:
        path = Path(place)
        found += [str(each) for each in path.rglob("test_*.py")] if path.is_dir() else [str(path)]
    return sorted(set(found))


@cache
def _text(path: str) -> str:
    return Path(path).read_text()


@cache
def _imported(path: str) -> frozenset[str]:
    """The files below tests/ that a file imports itself."""
    found = set()
    for module, names, alone in _IMPORT.findall(_text(path)):
        for name in [module or alone, *(f"{module}.{each}" for each in re.findall(r"\w+", names))]:
            candidate = Path(*name.split(".")).with_suffix(".py")
            if candidate.exists():
                found.add(str(candidate))
    return frozenset(found)


@cache
def support_of(test_file: str) -> tuple[str, ...]:
    """Return a file of tests and all of tests/ that it is built on."""
    found: set[str] = set()
    waiting = [test_file, *(str(each / "conftest.py") for each in Path(test_file).parents)]
    while waiting:
        path = waiting.pop()
        if path not in found and Path(path).exists():
            found.add(path)
            waiting += _imported(path)
    return tuple(sorted(found))


def mentions(test_file: str, module: str) -> bool:
    """Say whether a file of tests, or what it is built on, names a module or package."""
    pattern = re.compile(rf"\b{re.escape(module)}\b")
    return any(pattern.search(_text(path)) for path in support_of(test_file))


@cache
def is_golden_of(file: str, test_file: str) -> bool:
    """Say whether a file of tests compares the room of a module with what Apache Kafka has."""
    room = file.partition("/")[0].removesuffix(".py")
    return test_file.startswith(GOLDEN) and mentions(test_file, f"ottla.{room}")


@cache
def _content_of_tests(test_file: str) -> str:
    return hashlib.sha256("\0".join(map(_text, support_of(test_file))).encode()).hexdigest()[:24]


@cache
def _content_of_source(file: str) -> str:
    path = SOURCE / file
    return hashlib.sha256(path.read_bytes()).hexdigest()[:24] if path.exists() else ""


# --- the map --------------------------------------------------------------------------------------


def _place(test_file: str) -> Path:
    return CACHE / "maps" / f"{test_file.removesuffix('.py').replace('/', '.')}.json"


def _kept_source(content: str) -> Path:
    return CACHE / "sources" / content


class LineMap:
    """What the entries of some files of tests say."""

    def __init__(self, test_files: Sequence[str], *, is_whole: bool = True) -> None:
        self.is_whole = is_whole
        """Whether all files of tests that are to be asked are known."""
        self.costs: dict[str, Cost] = {}
        self.entries: list[dict[str, Any]] = []
        for test_file in test_files:
            if (path := _place(test_file)).exists():
                entry = json.loads(path.read_text())
                self.entries.append(entry)
                for test, (cpu_s, wall_s, _) in entry["tests"].items():
                    self.costs[test] = Cost(cpu_s, wall_s)

    def executing(self, fault: Fault) -> list[str]:
        """Return the tests that execute a statement; for one outside of functions, those of its users.

        What stands outside of functions is often data. Golden tests compare it, and may execute nothing.
        """
        if fault.at_import:
            files = {fault.file, *_importers(fault.file)}
            return [
                test
                for entry in self.entries
                for test, (_, _, hits) in entry["tests"].items()
                if not files.isdisjoint(hits) or is_golden_of(fault.file, test.partition("::")[0])
            ]
        found = []
        for entry in self.entries:
            content = entry["sources"].get(fault.file)
            number = content and _number_in(fault.file, content, fault.function, fault.line)
            if number is not None and content:
                for test, (_, _, hits) in entry["tests"].items():
                    if int(hits.get(fault.file, "0"), 16) >> number & 1:
                        found.append(test)
        return found


@cache
def _functions(content: str) -> dict[str, str]:
    """For each function of a kept source a hash of its statements."""
    found: dict[str, list[str]] = {}
    for function, _, statement in statements_of(ast.parse(_kept_source(content).read_bytes())):
        found.setdefault(function, []).append(ast.dump(statement))
    return {
        function: hashlib.sha256("".join(dumps).encode()).hexdigest() for function, dumps in found.items()
    }


@cache
def _statement_numbers(file: str) -> list[tuple[str, int, int, int]]:
    """For each statement of a module now its function, its number there, and its lines."""
    return [
        (function, number, statement.lineno, statement.end_lineno or statement.lineno)
        for function, number, statement in statements_of(parsed(file))
    ]


def _number_in(file: str, content: str, function: str, line: int) -> int | None:
    """Find the number that the statement of a line had in a kept source. None: it was not there."""
    # The smallest statement around the line is the one that is meant.
    within = [
        (last - first, number)
        for name, number, first, last in _statement_numbers(file)
        if name == function and first <= line <= last
    ]
    known = _functions(content).get(function)
    if known is None or not within:
        return None
    if content != _content_of_source(file):
        _keep(file)
        if _functions(_content_of_source(file))[function] != known:
            # Of a function that changed meanwhile only its beginning is sure.
            return _numbers_by_function(content)[function, 0]
    return _numbers_by_function(content).get((function, min(within)[1]))


@cache
def _numbers_by_function(content: str) -> dict[tuple[str, int], int]:
    tree = ast.parse(_kept_source(content).read_bytes())
    return {(function, number): at for at, (function, number, _) in enumerate(statements_of(tree))}


@cache
def _importers(file: str) -> frozenset[str]:
    """The modules of Ottla that import from a module, by their text."""
    *packages, name = file.removesuffix(".py").removesuffix("/__init__").split("/")
    package = ".".join(["ottla", *packages])
    pattern = re.compile(rf"\b{re.escape(package)}(\.{name}\b| import [^\n]*\b{name}\b)")
    return frozenset(
        str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if pattern.search(path.read_text())
    )


def _keep(file: str) -> None:
    kept = _kept_source(_content_of_source(file))
    if not kept.exists():
        write_whole(kept, (SOURCE / file).read_bytes())


# --- making it ------------------------------------------------------------------------------------


def is_current(test_file: str, files: Iterable[str]) -> bool:
    """Say whether the entry of a file of tests holds for some modules."""
    path = _place(test_file)
    if not path.exists():
        return False
    entry = json.loads(path.read_text())
    if entry["content"] != _content_of_tests(test_file):
        return False
    return all(entry["sources"].get(file, content) == content for file, content in _contents(files))


def tests_are_known(test_file: str) -> bool:
    """Say whether there is an entry for these very tests, whatever source they ran with."""
    path = _place(test_file)
    return path.exists() and json.loads(path.read_text())["content"] == _content_of_tests(test_file)


def _contents(files: Iterable[str]) -> list[tuple[str, str]]:
    return [(file, _content_of_source(file)) for file in files]


def make(test_files: Sequence[str], jobs: int, within_s: float | None = None) -> None:
    """Run tests with probes, in some processes at the same time, and keep what they execute.

    When the time is over, what is known by then is kept.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    children = []
    for job in range(jobs):
        share = test_files[job::jobs]
        if share:
            child = os.fork()
            if child == 0:
                _make_and_exit(share, job)
            children.append(child)
    until = None if within_s is None else now() + within_s
    while children:
        if until is not None and now() > until:
            for child in children:
                os.kill(child, signal.SIGTERM)
            until = None
        children = [child for child in children if os.waitpid(child, os.WNOHANG)[0] == 0]
        time.sleep(0.1)


def _make_and_exit(test_files: Sequence[str], job: int) -> None:
    status = 1
    try:
        os.environ["PYTEST_XDIST_WORKER"] = f"gw{job}"
        os.environ["PYTEST_XDIST_WORKER_COUNT"] = "8"
        quiet(str(CACHE / f"map-{job}.log"))
        modules, outcome = Modules(), Outcome()
        modules.install()
        with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
            os.environ["TMPDIR"], tempfile.tempdir = scratch, None
            errors = with_tests(
                test_files, outcome, lambda items: _note_all(test_files, items, modules, outcome)
            )
        print(*errors, sep="\n", flush=True)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _note_all(
    test_files: Sequence[str], items: dict[str, pytest.Item], modules: Modules, outcome: Outcome
) -> None:
    # A file whose tests are all left out gets an entry, too: otherwise it would be asked each time.
    by_file: dict[str, list[pytest.Item]] = {test_file: [] for test_file in test_files}
    for item in items.values():
        by_file[item.nodeid.partition("::")[0]].append(item)
    ordered = [item for group in by_file.values() for item in group]
    following = dict(zip(ordered, [*ordered, None][1:], strict=True))
    gc.collect()
    gc.freeze()
    for test_file, group in by_file.items():
        noted = {}
        for item in group:
            for hits in modules.hits.values():
                hits[:] = bytes(len(hits))
            outcome.begin()
            cpu, wall = cpu_seconds(), now()
            try:
                stop_after(TEST_CPU_SECONDS_MAX, TEST_SECONDS_MAX)
                run_one(item, following[item])
            except pytest.skip.Exception:  # between two parts of a test
                outcome.failed = "too slow"
            finally:
                stop_after(0, 0)
            if outcome.passed and not outcome.failed:
                noted[item.nodeid] = (
                    round(cpu_seconds() - cpu, 4),
                    round(now() - wall, 4),
                    {file: _mask(hits) for file, hits in modules.hits.items() if 1 in hits},
                )
            else:
                print(f"{item.nodeid}: {outcome.failed or 'skipped'}", flush=True)
        _write(test_file, noted)


def _mask(hits: bytearray) -> str:
    """One bit for each statement: that of the first one is the lowest."""
    return f"{int(hits[::-1].translate(_DIGITS), 2):x}"


def _write(test_file: str, tests: dict[str, tuple[float, float, dict[str, str]]]) -> None:
    files = sorted({file for _, _, hits in tests.values() for file in hits})
    for file in files:
        _keep(file)
    entry = {"content": _content_of_tests(test_file), "sources": dict(_contents(files)), "tests": tests}
    write_whole(_place(test_file), json.dumps(entry).encode())
