"""Many seeds of the simulated quorum: `python -m tests.simulation.raft.campaign --help`."""

import sys

from tests.simulation.campaigns import Campaign
from tests.simulation.raft.bugs import BUGS
from tests.simulation.raft.world import run_seed

CAMPAIGN = Campaign(
    "tests.simulation.raft.campaign", "Simulate the quorum.", run_seed, BUGS, bug_seeds_max=3_000
)


if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
