"""What `make sim` runs: `python -m tests.simulation.sim WHAT`, where WHAT is one of `SIMULATIONS`."""

import argparse
import subprocess
import sys
from typing import Final, NamedTuple

from tests.simulation.group_campaign import KINDS


class Simulation(NamedTuple):
    """A module that runs seeds, and what it runs unless it is told otherwise."""

    module: str
    seeds: int
    bug_seeds: int = 0
    """How many seeds may look for each planted bug. 0: `--bugs` is not for it."""


SIMULATIONS: Final = {
    "clients": Simulation("tests.simulation.clients.campaign", 2_000, 100),
    "cluster": Simulation("tests.simulation.cluster.campaign", 200, 20),
    "connect": Simulation("tests.simulation.connect.campaign", 20, 20),
    "mirror": Simulation("tests.simulation.mirror.seeded.campaign", 40, 20),
    "power-cuts": Simulation("tests.simulation.cluster.power_cuts", 30),
    "quorum": Simulation("tests.simulation.raft.campaign", 10_000, 3_000),
    "storage": Simulation("tests.simulation.storage.campaign", 10_000, 2_000),
}
GROUP_SEEDS: Final = 300


def commands_of(arguments: list[str]) -> list[list[str]]:
    """Return what is to be run, as modules with their arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.sim", description=__doc__)
    parser.add_argument("what", choices=(*SIMULATIONS, "groups", "speed"))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--bugs", action="store_true", help="plant every bug, and see that each is found")
    parser.add_argument("--bug-seeds", type=int, help="how many seeds may look for each")
    options = parser.parse_args(arguments)
    if options.what == "speed":
        return [["tests.simulation.cluster.speed"]]
    if options.what == "groups":
        last = options.first + (options.seeds or GROUP_SEEDS) - 1
        return [
            ["tests.simulation.group_campaign", kind, "--seeds", f"{options.first}-{last}"] for kind in KINDS
        ]
    found = SIMULATIONS[options.what]
    if options.bugs:
        if not found.bug_seeds:
            parser.error(f"no bugs are planted in {options.what}")
        return [[found.module, "--all-bugs", "--bug-seeds", str(options.bug_seeds or found.bug_seeds)]]
    return [[found.module, "--seeds", str(options.seeds or found.seeds), "--first", str(options.first)]]


def main() -> int:
    """Run all of it, also after a failure, and return the exit code."""
    codes = [
        subprocess.run([sys.executable, "-m", *command], check=False).returncode
        for command in commands_of(sys.argv[1:])
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
