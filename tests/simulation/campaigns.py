"""Many seeds of a simulation, on several processes, with or without bugs planted in the code.

A simulation has a module with a `CAMPAIGN`, which is run by `python -m`. A failure prints its seed and the
command that replays it. With `--bug` a planted bug is in the code, and the campaign says which seeds find it.
With `--all-bugs` each is planted in turn until a seed finds it that fails for no other reason.
"""

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from multiprocessing import Pool
from time import monotonic
from types import MappingProxyType
from typing import NamedTuple

from tests.simulation.meetings import Expected, Met, table_of
from tests.simulation.planting import Bug, planted


class Failure(NamedTuple):
    """A seed that broke an invariant, and how."""

    seed: int
    message: str
    details: str


class Ran(NamedTuple):
    """What some seeds were like."""

    failures: list[Failure]
    simulated_s: float
    """How much time has passed in them, if that is known."""
    met: Met
    """What those have met that did not fail."""

    def __add__(self, other: "Ran") -> "Ran":  # type: ignore[override]
        """Put two together."""
        return Ran(self.failures + other.failures, self.simulated_s + other.simulated_s, self.met + other.met)


class Campaign(NamedTuple):
    """A simulation that can be run with any seed."""

    module: str
    description: str
    run_seed: Callable[[int], object]
    bugs: Mapping[str, Bug]
    bug_seeds_max: int
    found_by: Mapping[str, int] = MappingProxyType({})
    """Seeds that are known to find a bug. They are tried first."""
    chunk_seeds: int = 25
    """How many seeds a process runs before it tells."""
    expected: Callable[[], Sequence[Expected]] = tuple
    """What there is to meet."""

    def replay_command(self, seed: int, bug: str = "") -> str:
        """Return the command that runs one seed again."""
        rest = f" --bug {bug}" if bug else ""
        return f".venv/bin/python -m {self.module} --first {seed} --seeds 1{rest}"

    def find_failure(self, seed: int) -> Failure | None:
        """Run one seed. Anything it raises is a failure, since what may happen is caught within."""
        failures = self.run_one(seed).failures
        return failures[0] if failures else None

    def run_one(self, seed: int) -> Ran:
        """Run one seed."""
        try:
            outcome = self.run_seed(seed)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            message = f"seed {seed}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})"
            replay = f"\n  replay: {self.replay_command(seed)}"
            return Ran([Failure(seed, message + replay, traceback.format_exc())], 0.0, Counter())
        met: Met | None = getattr(outcome, "met", None)
        return Ran([], getattr(outcome, "simulated_s", 0.0), Counter() if met is None else met)

    def find_failures(self, first: int, seeds: int) -> list[Failure]:
        """Run seeds in this process."""
        return self.run_some(first, seeds).failures

    def run_some(self, first: int, seeds: int) -> Ran:
        """Run seeds in this process."""
        ran = Ran([], 0.0, Counter())
        for seed in range(first, first + seeds):
            ran += self.run_one(seed)
        return ran

    def find_bug(self, name: str, seeds_max: int) -> int | None:
        """Return the first seed that finds a planted bug, and that is fine without it."""
        known = self.found_by.get(name)
        for seed in ((known,) if known is not None else ()) + tuple(range(seeds_max)):
            with planted(self.bugs[name]):
                failure = self.find_failure(seed)
            if failure is not None and self.find_failure(seed) is None:
                return seed
        return None

    def main(self, arguments: list[str] | None = None) -> int:
        """Run what the command line asks for, and return the exit code."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}", description=self.description)
        parser.add_argument("--seeds", type=int, default=10_000)
        parser.add_argument("--first", type=int, default=0)
        parser.add_argument("--processes", type=int, default=2)
        parser.add_argument(
            "--bug", choices=sorted(self.bugs), default="", help="plant a bug that is to be found"
        )
        parser.add_argument("--all-bugs", action="store_true", help="plant every bug, one after the other")
        parser.add_argument("--bug-seeds", type=int, default=self.bug_seeds_max, help="how many to try")
        options = parser.parse_args(arguments)
        if options.all_bugs:
            return int(_find_all_bugs(self, options.processes, options.bug_seeds) > 0)
        if options.seeds == 1:
            with planted(self.bugs[options.bug]) if options.bug else nullcontext():
                failure = self.find_failure(options.first)
            print(f"{failure.details}{failure.message}" if failure else f"seed {options.first}: all is well")
            return int(failure is not None)
        return int(_run_all(self, options.first, options.seeds, options.processes, options.bug) > 0)


def _run_all(campaign: Campaign, first: int, seeds: int, processes: int, bug: str) -> int:
    """Run seeds on several processes, with progress. Returns how many failed."""
    failed = 0
    started, done, simulated_s = monotonic(), 0, 0.0
    met: Met = Counter()
    for count, ran in _chunks(campaign, first, seeds, processes, bug):
        done += count
        failed += len(ran.failures)
        simulated_s += ran.simulated_s
        met += ran.met
        for failure in ran.failures:
            print(f"\r{failure.message}", flush=True)
        rate = done / (monotonic() - started)
        line = f"\r{done:,} of {seeds:,} seeds, {rate:.0f}/s, {failed} failures "
        print(line, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    took_s = monotonic() - started
    print(f"{done:,} seeds in {took_s:.0f} s, {failed} failures")
    if simulated_s:
        print(
            f"{simulated_s:,.0f} simulated seconds, {simulated_s / took_s:.1f} for each second "
            f"with {processes} processes"
        )
    print(*table_of(met, campaign.expected()), sep="\n")
    return failed


def _chunks(
    campaign: Campaign, first: int, seeds: int, processes: int, bug: str
) -> Iterator[tuple[int, Ran]]:
    """Give how many seeds were run, and what they were like, chunk by chunk."""
    size = campaign.chunk_seeds
    tasks = [
        (campaign.module, start, min(size, first + seeds - start), bug)
        for start in range(first, first + seeds, size)
    ]
    with Pool(processes) as pool:
        yield from pool.imap_unordered(_run_chunk, tasks)


def _find_all_bugs(campaign: Campaign, processes: int, seeds_max: int) -> int:
    """Plant every bug and print which seed finds it. Returns how many are not found."""
    missed = 0
    tasks = [(campaign.module, name, seeds_max) for name in campaign.bugs]
    with Pool(processes) as pool:
        for name, seed in pool.imap(_find_bug, tasks):
            missed += seed is None
            result = f"not within {seeds_max} seeds" if seed is None else f"seed {seed}"
            print(f"{name:34} {result:26} {campaign.bugs[name].what}", flush=True)
    print(f"{len(campaign.bugs) - missed} of {len(campaign.bugs)} planted bugs were found")
    return missed


# In the processes


def _campaign_of(module: str) -> Campaign:
    campaign: Campaign = import_module(module).CAMPAIGN
    return campaign


def _find_bug(task: tuple[str, str, int]) -> tuple[str, int | None]:
    module, name, seeds_max = task
    return name, _campaign_of(module).find_bug(name, seeds_max)


def _run_chunk(task: tuple[str, int, int, str]) -> tuple[int, Ran]:
    module, first, seeds, bug = task
    campaign = _campaign_of(module)
    with planted(campaign.bugs[bug]) if bug else nullcontext():
        return seeds, campaign.run_some(first, seeds)
