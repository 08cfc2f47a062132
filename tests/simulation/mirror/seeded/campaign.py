"""Many seeds of two clusters with a mirror: `python -m tests.simulation.mirror.seeded.campaign --help`."""

import sys
from typing import Final

from tests.simulation.campaigns import Campaign
from tests.simulation.meetings import Expected
from tests.simulation.mirror.seeded.bugs import BUGS, FOUND_BY
from tests.simulation.mirror.seeded.plan import FAULTS, SOURCE, TARGET
from tests.simulation.mirror.seeded.run import FAULT, run_mirror_seed
from tests.simulation.mirror.seeded.source import ACT
from tests.simulation.mirror.seeded.watch import ERROR

_ACTS: Final = (
    "a topic is deleted",
    "a topic is made again",
    "a transaction is committed",
    "a transaction is aborted",
    "a partition is added",
    "records are removed",
    "a mirror is killed",
    "a mirror is stopped",
    "a copy is deleted",
    "a copy goes on",
    "copies become writable: quiet",
    "copies become writable: source-dies",
)
_ERRORS: Final = ("was deleted and made again", "has no topic")
CAMPAIGN: Final = Campaign(
    module="tests.simulation.mirror.seeded.campaign",
    description="Mirror between two clusters that break.",
    run_seed=run_mirror_seed,
    bugs=BUGS,
    bug_seeds_max=2_000,
    found_by=FOUND_BY,
    chunk_seeds=2,
    expected=lambda: (
        Expected(FAULT, [f"{where}: {kind}" for where in (SOURCE, TARGET) for kind in FAULTS], {}),
        Expected(ACT, _ACTS, {}),
        Expected(ERROR, _ERRORS, {}),
    ),
)

if __name__ == "__main__":
    sys.exit(CAMPAIGN.main())
