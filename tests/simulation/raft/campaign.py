"""Many seeds of the simulated quorum, on several processes:

    python -m tests.simulation.raft.campaign --seeds 10000

A failure prints its seed and the command that replays it. With `--bug` a planted bug is in the code, and the
campaign says which seeds find it. With `--all-bugs` each is planted in turn until a seed finds it that fails
for no other reason.
"""

import argparse
import sys
import traceback
from collections.abc import Iterator
from contextlib import nullcontext
from multiprocessing import Pool
from time import monotonic
from typing import NamedTuple

from tests.simulation.raft.bugs import BUGS
from tests.simulation.raft.world import run_seed
from tests.simulation.storage.bugs import planted

_CHUNK_SEEDS = 25
BUG_SEEDS_MAX = 3_000
MODULE = "tests.simulation.raft.campaign"


class Failure(NamedTuple):
    """A seed that broke an invariant, and how."""

    seed: int
    message: str
    details: str

    def __str__(self) -> str:
        return f"{self.message}\nreplay: {replay_command(self.seed)}"


def replay_command(seed: int, bug: str = "") -> str:
    """Return the command that runs one seed again."""
    rest = f" --bug {bug}" if bug else ""
    return f".venv/bin/python -m {MODULE} --first {seed} --seeds 1{rest}"


def find_failure(seed: int) -> Failure | None:
    """Run one seed. Anything it raises is a failure, since what may happen is caught within."""
    try:
        run_seed(seed)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        message = f"seed {seed}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        return Failure(seed, message, traceback.format_exc())
    return None


def find_failures(first: int, seeds: int, stop_at_first: bool = False) -> list[Failure]:
    """Run seeds in this process."""
    failures: list[Failure] = []
    for seed in range(first, first + seeds):
        failure = find_failure(seed)
        if failure is not None:
            failures.append(failure)
            if stop_at_first:
                break
    return failures


def find_bug(name: str, seeds_max: int) -> int | None:
    """Return the first seed that finds a planted bug, and that is fine without it."""
    for seed in range(seeds_max):
        with planted(BUGS[name]):
            failure = find_failure(seed)
        if failure is not None and find_failure(seed) is None:
            return seed
    return None


def _find_bug(name: str) -> tuple[str, int | None]:
    return name, find_bug(name, BUG_SEEDS_MAX)


def find_all_bugs(processes: int) -> int:
    """Plant every bug and print which seed finds it. Returns how many are not found."""
    missed = 0
    with Pool(processes) as pool:
        for name, seed in pool.imap(_find_bug, BUGS):
            missed += seed is None
            result = f"not within {BUG_SEEDS_MAX} seeds" if seed is None else f"seed {seed}"
            print(f"{name:34} {result:26} {BUGS[name].what}", flush=True)
    print(f"{len(BUGS) - missed} of {len(BUGS)} planted bugs were found")
    return missed


def _run_chunk(task: tuple[int, int, str]) -> tuple[int, list[Failure]]:
    first, seeds, bug = task
    with planted(BUGS[bug]) if bug else nullcontext():
        return seeds, find_failures(first, seeds)


def run_campaign(
    first: int, seeds: int, processes: int, bug: str = ""
) -> Iterator[tuple[int, list[Failure]]]:
    """Run seeds on several processes, and give how many were run and what was found, chunk by chunk."""
    tasks = [
        (start, min(_CHUNK_SEEDS, first + seeds - start), bug)
        for start in range(first, first + seeds, _CHUNK_SEEDS)
    ]
    with Pool(processes) as pool:
        yield from pool.imap_unordered(_run_chunk, tasks)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description="Simulate the quorum.")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--bug", choices=sorted(BUGS), default="", help="plant a bug that is to be found")
    parser.add_argument("--all-bugs", action="store_true", help="plant every bug, one after the other")
    options = parser.parse_args(arguments)
    if options.all_bugs:
        return int(find_all_bugs(options.processes) > 0)
    if options.seeds == 1:
        with planted(BUGS[options.bug]) if options.bug else nullcontext():
            failure = find_failure(options.first)
        print(f"{failure.details}{failure.message}" if failure else f"seed {options.first}: all is well")
        return int(failure is not None)
    failures: list[Failure] = []
    started, done = monotonic(), 0
    for count, found in run_campaign(options.first, options.seeds, options.processes, options.bug):
        done += count
        failures += found
        for failure in found:
            print(f"\r{failure.message}\n  replay: {replay_command(failure.seed, options.bug)}", flush=True)
        rate = done / (monotonic() - started)
        line = f"\r{done:,} of {options.seeds:,} seeds, {rate:.0f}/s, {len(failures)} failures "
        print(line, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{done:,} seeds in {monotonic() - started:.0f} s, {len(failures)} failures")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
