"""The simulated quorum finds bugs: every planted one, within its budget of seeds."""

import pytest
from tests.simulation.planting import planted
from tests.simulation.raft.bugs import BUGS
from tests.simulation.raft.campaign import CAMPAIGN

SEEDS_MAX = 100
# The bugs that take the fewest seeds, so that the suite stays quick. All: `make sim WHAT=quorum BUGS=1`.
QUICK = (
    "vote-not-synced",
    "votes-twice",
    "vote-forgotten-when-following",
    "pre-vote-bumps-the-epoch",
    "no-election-timeout",
    "damaged-voter-votes",
    "damaged-voter-votes-at-once",
    "leader-counts-itself-unsynced",
    "follower-fetches-unsynced",
    "commit-of-old-epoch",
    "commit-by-minority",
    "truncates-to-high-watermark",
    "snapshot-not-offered",
    "voters-counted-when-committed",
    "lost-request-is-waited-for",
)


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in QUICK])
def test_a_planted_bug_is_found(name: str) -> None:
    with planted(BUGS[name]):
        found = next((seed for seed in range(SEEDS_MAX) if CAMPAIGN.find_failure(seed) is not None), None)
    assert found is not None, f"not found in {SEEDS_MAX} seeds: {BUGS[name].what}"
    assert CAMPAIGN.find_failure(found) is None, f"seed {found} fails without the bug, too"


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in BUGS])
def test_every_bug_can_be_planted_and_leaves_no_trace(name: str) -> None:
    bug = BUGS[name]
    right = bug.function.__code__
    with planted(bug):
        assert bug.function.__code__ != right
    assert bug.function.__code__ is right


def test_at_least_thirty_bugs_are_planted() -> None:
    assert len(BUGS) >= 30
    assert set(QUICK) <= set(BUGS)
