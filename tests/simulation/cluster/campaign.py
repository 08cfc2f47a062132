"""Many seeds of a simulated cluster; see `campaigns` for the options."""

import sys
from typing import Final

from tests.simulation.campaigns import Campaign
from tests.simulation.cluster.meeting.expected import expected
from tests.simulation.cluster.planted.bugs import BUGS
from tests.simulation.cluster.planted.found import FOUND_BY
from tests.simulation.cluster.planted.found_wide import WIDE_FOUND_BY
from tests.simulation.cluster.run import run_seed

CAMPAIGN: Final = Campaign(
    module="tests.simulation.cluster.campaign",
    description="Simulate whole clusters with clients and faults.",
    run_seed=run_seed,
    bugs=BUGS,
    bug_seeds_max=2_000,
    found_by={**FOUND_BY, **WIDE_FOUND_BY},
    chunk_seeds=2,
    expected=expected,
)

if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
