"""`make mutants`: plant small faults at random in one room, and list those that no test notices.

    make mutants WHAT=storage            twenty faults in src/ottla/storage
    make mutants WHAT=broker/produce SEED=7 TIMES=50
    make mutants CHANGED=1               only lines that differ from main; BASE=HEAD~3 for another base

Each result says where, what was changed and how many tests ran. Quick tests are asked first, and those beside
a node about what the quick ones let pass. Nothing in the tree is changed while it runs.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from tests.mutants.faults import SOURCE, Fault, chosen, modules_of
from tests.mutants.judging import Result, judge_in_turn
from tests.mutants.line_map import (
    QUICK,
    WITH_NODES,
    LineMap,
    files_of_tests,
    is_current,
    make,
    mentions,
    tests_are_known,
)
from tests.mutants.planting import CACHE
from tests.mutants.sessions import now

JUDGED: Final = Path("tests/mutants/judged.txt")
CHANGE_LEARN_SECONDS: Final = 50.0
CHANGE_SECONDS: Final = 100.0
"""After which no more faults of a change are judged: what runs by then may take some seconds more."""
_HUNK: Final = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")
_COLUMNS: Final = ("killed", "timed out", "with a node", "survived", "not executed", "undecided", "judged")


# --- what was judged before -----------------------------------------------------------------------


@dataclass(frozen=True)
class Judgement:
    """Somebody read a fault, and found that no test should have to notice it."""

    name: str
    file: str
    reason: str


def judgements(path: Path = JUDGED) -> dict[str, Judgement]:
    """Read the faults that somebody judged: `NAME FILE FUNCTION: reason` in each line."""
    found = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            place, _, reason = line.partition(": ")
            name, file, *_ = place.split()
            if not reason:
                raise SystemExit(f"{path}: {line!r} has no reason")
            found[name] = Judgement(name, file, reason)
    return found


# --- what changed ---------------------------------------------------------------------------------


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def changed_lines(base: str) -> dict[str, set[int]]:
    """Return the lines of modules of Ottla that are not as where this branch left `base`."""
    since = _git("merge-base", base, "HEAD").strip()
    found: dict[str, set[int]] = {}
    file = ""
    for line in _git("diff", "-U0", "--no-color", since, "--", str(SOURCE)).splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/").removeprefix(f"{SOURCE}/")
        elif (hunk := _HUNK.match(line)) and file.endswith(".py"):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found.setdefault(file, set()).update(range(first, first + count))
    for path in _git("ls-files", "--others", "--exclude-standard", "--", str(SOURCE)).splitlines():
        if path.endswith(".py"):
            file = path.removeprefix(f"{SOURCE}/")
            found[file] = set(range(1, len(Path(path).read_text().splitlines()) + 1))
    return {file: lines for file, lines in found.items() if lines and (SOURCE / file).exists()}


# --- which files of tests are asked ---------------------------------------------------------------


def near_tests(files: Sequence[str], places: Sequence[str]) -> list[str]:
    """Return the files of tests about the rooms of modules: their unit tests, and others that name them."""
    rooms = {file.partition("/")[0].removesuffix(".py") for file in files}
    found = []
    for each in files_of_tests(places):
        unit = Path(each).parts[1:3]
        if unit[0] == "unit":
            is_near = unit[1] in rooms
        else:
            # A node in the process of the test executes something of each room of a broker.
            is_near = any(mentions(each, f"ottla.{room}") for room in (*rooms, "testing.node"))
        if is_near:
            found.append(each)
    return found


def closest_tests(files: Sequence[str], places: Sequence[str]) -> list[str]:
    """Return the files of tests that name one of these very modules."""
    modules = [
        "ottla." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in files
    ]
    return [each for each in files_of_tests(places) if any(mentions(each, module) for module in modules)]


# --- the table ------------------------------------------------------------------------------------


def table(results: Sequence[tuple[str, str]]) -> str:
    """Sum up pairs of a room and a verdict, one row for each room."""
    rooms: dict[str, Counter[str]] = {}
    for room, verdict in results:
        rooms.setdefault(room, Counter())[verdict] += 1
    if len(rooms) > 1:
        rooms["all"] = sum(rooms.values(), Counter())
    lines = ["room          planted " + " ".join(f"{name:>12}" for name in _COLUMNS) + "   quick   score"]
    for room, counts in rooms.items():
        numbers = " ".join(f"{counts[name]:12}" for name in _COLUMNS)
        lines.append(
            f"{room:13} {counts.total():7} {numbers} {score(counts, quick=True):>7} {score(counts):>7}"
        )
    return "\n".join(lines)


def score(counts: Counter[str], *, quick: bool = False) -> str:
    """Of the faults that a test should notice, how many one did. What is undecided counts as not noticed.

    With `quick`, tests that need a node do not count.
    """
    counted = counts.total() - counts["judged"]
    noticed = counts["killed"] + counts["timed out"] + (0 if quick else counts["with a node"])
    return f"{noticed / counted:.0%}" if counted else "-"


# --- the run --------------------------------------------------------------------------------------


class Report:
    """Prints results as they come, and keeps them."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w")
        self.path = path
        self.results: list[tuple[Fault, str]] = []
        self._survivors: list[str] = []

    def hear(self, result: Result) -> None:
        """Print one result."""
        fault = result.fault
        self.results.append((fault, result.verdict))
        self._file.write(json.dumps({**asdict(fault), **asdict(result), "fault": fault.name}) + "\n")
        self._file.flush()
        ran = f"{result.ran} of {result.covering} tests"
        line = f"{result.verdict:>12}  {fault.name} {SOURCE}/{fault.file}:{fault.line} {fault.function}\n"
        line += f"{'':14}{fault.change}\n{'':14}{ran}{': ' if result.by else ''}{result.by}"
        if result.verdict in {"survived", "not executed", "undecided"}:
            self._survivors.append(line)
        print(line, flush=True)

    def judged(self, fault: Fault, judgement: Judgement) -> None:
        """Note a fault that needs no test."""
        self.results.append((fault, "judged"))
        print(
            f"{'judged':>12}  {fault.name} {SOURCE}/{fault.file}:{fault.line}: {judgement.reason}", flush=True
        )

    def sum_up(self) -> None:
        """Print what no test noticed, and the table."""
        if self._survivors:
            print("\nnoticed by no test:\n" + "\n".join(self._survivors))
        print("\n" + table([(fault.file.partition("/")[0], verdict) for fault, verdict in self.results]))
        print(f"\nEach result in {self.path}.")
        print(f"A fault that no test should have to notice gets a line with its reason in {JUDGED}.")
        print(
            "Asked were quick tests of the room, and those beside a node about what the quick ones let pass."
        )
        print("Tests with Java, Spark or more processes may notice more.")


def main() -> None:
    """Plant faults, as the options say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--what", default="", help="a package or module below src/ottla")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--base", default="main")
    parser.add_argument("--only", nargs="*", default=[], help="names of faults")
    parser.add_argument("--tests", nargs="*", default=[], help="more places of tests")
    parser.add_argument(
        "--wide", action="store_true", help="all quick tests, not only those that name the room"
    )
    parser.add_argument("--budget", type=float, default=10.0, help="CPU seconds of tests for one fault")
    parser.add_argument("--learn", type=float, help="seconds for learning what tests execute")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if not (options.what or options.changed):
        parser.error("WHAT= a package below src/ottla, or CHANGED=1")
    os.environ["PYTHONPATH"] = str(Path("src").resolve())
    lines = changed_lines(options.base) if options.changed else None
    files = modules_of(options.what) if options.what else sorted(lines or ())
    if lines is not None:
        files = [file for file in files if file in lines]
    if not files:
        raise SystemExit("no line of src/ottla has changed")
    known = judgements()
    planned = list(chosen(files, f"{options.seed}:{options.what}", lines))
    if options.only:
        faults = [fault for fault in _all_faults(files) if fault.name in options.only]
    else:
        faults = list(islice(planned, options.count))
    until = now() + CHANGE_SECONDS if options.changed else math.inf
    of_faults = sorted({fault.file for fault in faults})
    report = Report(CACHE / "results" / f"{options.what.replace('/', '.') or 'changed'}-{options.seed}.jsonl")
    for fault in faults:
        if fault.name in known:
            report.judged(fault, known[fault.name])
    wanted = [fault for fault in faults if fault.name not in known]
    asked = ([*QUICK, *options.tests], WITH_NODES)
    judge_in_turn(
        wanted,
        [partial(_map, options, places, files, of_faults, until) for places in asked],
        budget_s=options.budget,
        jobs=options.jobs,
        heard=report.hear,
        until=until,
    )
    report.sum_up()


def _all_faults(files: Sequence[str]) -> list[Fault]:
    from tests.mutants.faults import Sites, named, parsed

    return [
        named(file, sites, site) for file in files for sites in [Sites(parsed(file)).found] for site in sites
    ]


def _map(
    options: argparse.Namespace,
    places: Sequence[str],
    files: Sequence[str],
    of_faults: Sequence[str],
    until: float,
) -> LineMap:
    """Bring the map up to date for the tests that are asked, and return it, with what is known of others."""
    learn_s = options.learn
    if options.changed:
        # Two minutes are to do: what is known of other tests stays good enough.
        learn_s = min(CHANGE_LEARN_SECONDS, max((until - now()) / 2, 0.0))
        missing = [each for each in closest_tests(of_faults, places) if not tests_are_known(each)]
    else:
        asked = files_of_tests(places) if options.wide else near_tests(files, places)
        missing = [each for each in asked if not is_current(each, files)]
    unknown: list[str] = []
    if missing:
        print(f"learning which lines {len(missing)} files of tests execute", file=sys.stderr)
        # Unit tests first: they are the quickest, and the time may be limited.
        make(
            sorted(missing, key=lambda each: (not each.startswith("tests/unit"), each)),
            jobs=options.jobs,
            within_s=learn_s,
        )
        unknown = [each for each in missing if not tests_are_known(each)]
        if unknown:
            print(f"not asked, because there was no time to learn what they execute: {' '.join(unknown)}")
    return LineMap([each for each in files_of_tests(places) if tests_are_known(each)], is_whole=not unknown)


if __name__ == "__main__":
    main()
