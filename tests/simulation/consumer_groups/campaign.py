"""Run the simulation of consumer groups for many seeds.

python -m tests.simulation.consumer_groups.campaign --seeds 0-999
python -m tests.simulation.consumer_groups.campaign --seed 17      one seed again, with what it did
"""

import argparse
import sys
from time import perf_counter

from tests.simulation.consumer_groups.world import Simulation

SMALL = {"groups": 1, "members": 12, "trouble_ms": 60_000}
REPLAY = "python -m tests.simulation.consumer_groups.campaign --seed {}"


def run_seed(seed: int, is_small: bool = False) -> Simulation:
    """Run one seed. A failure says how to run it again."""
    simulation = Simulation(seed, **SMALL) if is_small else Simulation(seed)
    try:
        simulation.run()
    except AssertionError as error:
        replay = REPLAY.format(seed) + (" --small" if is_small else "")
        raise AssertionError(f"{error}\nseed {seed}, replay with: {replay}") from error
    return simulation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", default="0-99")
    parser.add_argument("--small", action="store_true", help="fewer members, less trouble")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        seeds = range(arguments.seed, arguments.seed + 1)
    else:
        first, _, last = arguments.seeds.partition("-")
        seeds = range(int(first), int(last or first) + 1)
    started = perf_counter()
    failures = 0
    for seed in seeds:
        try:
            simulation = run_seed(seed, arguments.small)
        except AssertionError as error:
            failures += 1
            print(f"FAILED {error}")
            if arguments.seed is not None:
                raise
            continue
        if arguments.seed is not None:
            checks = simulation.checks
            print(
                f"{simulation.events} events, {len(simulation.members)} members, "
                f"{simulation.crashes} crashes of the coordinator, {checks.assignments} assignments, "
                f"{checks.commits} acknowledged commits, {checks.records} records processed, "
                f"trace {simulation.trace.hexdigest()[:16]}"
            )
    print(f"{len(seeds)} seeds, {failures} failures, {perf_counter() - started:.1f} s")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
