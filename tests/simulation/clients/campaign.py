"""Many seeds of the hostile world of clients: `python -m tests.simulation.clients.campaign --help`."""

import sys

from tests.simulation.campaigns import Campaign
from tests.simulation.clients.bugs import BUGS
from tests.simulation.clients.hostile import EVENTS, FAULTS, run_seed
from tests.simulation.meetings import Expected

CAMPAIGN = Campaign(
    "tests.simulation.clients.campaign",
    "Play against clients.",
    run_seed,
    BUGS,
    bug_seeds_max=100,
    chunk_seeds=10,
    expected=lambda: (Expected("fault", FAULTS, {}), Expected("event", EVENTS, {})),
)


if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
