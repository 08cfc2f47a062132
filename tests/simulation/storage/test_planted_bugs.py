"""The crash simulation finds bugs: every planted one, within its budget of seeds."""

import pytest
from tests.simulation.planting import planted
from tests.simulation.storage.bugs import BUGS
from tests.simulation.storage.campaign import CAMPAIGN

from ottla.storage.syncing import flush

SEEDS_MAX = 2_000
# The bugs that take the fewest seeds, so that the suite stays quick. All: `make sim WHAT=storage BUGS=1`.
QUICK = (
    "ack-without-sync",
    "flush-skips-files",
    "clean-stop-marker-stays",
    "recovery-skips-checksums",
    "recovery-skips-epoch-zero",
    "producers-end-at-snapshot",
    "truncation-keeps-epochs",
    "time-look-up-too-far",
    "sequence-wraps-negative",
    "stable-up-to-high-watermark",
    "high-watermark-above-log-end",
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
        assert bug.function.__code__.co_code != right.co_code or bug.function.__code__ != right
    assert bug.function.__code__ is right


def test_at_least_twenty_bugs_are_planted() -> None:
    assert len(BUGS) >= 20
    assert set(QUICK) <= set(BUGS)


def test_a_bug_whose_line_is_gone_is_told() -> None:
    bug = BUGS["flush-skips-files"]._replace(right="for each in nothing:")
    with pytest.raises(AssertionError, match="is 0 times in run"), planted(bug):
        pass
    assert bug.function is flush.run
