"""Cuts the power of all three nodes at once, ten times in each run: `--seeds 30` are 300 power cuts."""

import sys
from random import Random
from typing import Final

from tests.simulation.campaigns import Campaign
from tests.simulation.cluster.meeting.expected import expected
from tests.simulation.cluster.plan import plan_of
from tests.simulation.cluster.plans import Fault, Plan
from tests.simulation.cluster.run import Outcome, run_plan

CUTS: Final = 10
EVERY_MS: Final = 2_500


def power_cuts(seed: int) -> Plan:
    """Return a plan in which nothing happens but power cuts of all nodes."""
    rng = Random(f"power cuts {seed}")
    faults = tuple(
        Fault(rng.randrange(EVERY_MS // 2) + EVERY_MS * number, 100, "cut-power-of-all", rng.getrandbits(32))
        for number in range(CUTS)
    )
    return plan_of(seed)._replace(nodes=3, voters=3, operations=200, faults=faults)


def run_seed(seed: int) -> Outcome:
    """Run one seed."""
    return run_plan(power_cuts(seed))


CAMPAIGN: Final = Campaign(
    module="tests.simulation.cluster.power_cuts",
    description="Cut the power of all nodes at once.",
    run_seed=run_seed,
    bugs={},
    bug_seeds_max=0,
    chunk_seeds=1,
    expected=expected,
)

if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
