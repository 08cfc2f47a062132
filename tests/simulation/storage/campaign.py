"""Many seeds of the crash simulation: `python -m tests.simulation.storage.campaign --help`."""

import sys

from tests.simulation.campaigns import Campaign
from tests.simulation.storage.bugs import BUGS
from tests.simulation.storage.crashes import run_seed

CAMPAIGN = Campaign(
    "tests.simulation.storage.campaign", "Crash the storage engine.", run_seed, BUGS, bug_seeds_max=2_000
)


if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
