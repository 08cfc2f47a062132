"""Run a simulation of groups for many seeds, or for one again.

python -m tests.simulation.group_campaign groups --seeds 0-999
python -m tests.simulation.group_campaign consumer_groups --seed 17      one seed again, with what it did
"""

import argparse
import sys
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any, Final, NamedTuple

from tests.simulation.consumer_groups.world import Simulation as ConsumerGroups
from tests.simulation.groups.world import Simulation as Groups
from tests.simulation.share_groups.world import Simulation as ShareGroups
from tests.simulation.streams_groups.world import Simulation as StreamsGroups

REPLAY: Final = "python -m tests.simulation.group_campaign {} --seed {}"


class Kind(NamedTuple):
    """A simulation, and what makes it a small one."""

    simulation: type[Any]
    small: Mapping[str, Any]


KINDS: Final = {
    "groups": Kind(Groups, {"groups": 2, "members": 30, "trouble_ms": 90_000}),
    "consumer_groups": Kind(ConsumerGroups, {"groups": 1, "members": 12, "trouble_ms": 60_000}),
    "share_groups": Kind(ShareGroups, {"members": 20, "partitions": 3, "steps": 250}),
    "streams_groups": Kind(StreamsGroups, {"members": 40}),
}


def run_seed(name: str, seed: int, is_small: bool = False) -> Any:
    """Run one seed. A failure says how to run it again."""
    kind = KINDS[name]
    simulation = kind.simulation(seed, **(kind.small if is_small else {}))
    try:
        simulation.run()
    except AssertionError as error:
        replay = REPLAY.format(name, seed) + (" --small" if is_small else "")
        raise AssertionError(f"{error}\nseed {seed}, replay with: {replay}") from error
    return simulation


def find_bug(name: str, seeds: Iterable[int]) -> bool:
    """Say whether any of these seeds fails, small as they are."""
    for seed in seeds:
        try:
            run_seed(name, seed, is_small=True)
        except AssertionError:
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=KINDS)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", default="0-99")
    parser.add_argument("--small", action="store_true", help="fewer members, less trouble")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        print(run_seed(arguments.name, arguments.seed, arguments.small).summary())
        return
    first, _, last = arguments.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    started = perf_counter()
    failures = 0
    for seed in seeds:
        try:
            run_seed(arguments.name, seed, arguments.small)
        except AssertionError as error:
            failures += 1
            print(f"FAILED {error}")
    print(f"{len(seeds)} seeds, {failures} failures, {perf_counter() - started:.1f} s")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
