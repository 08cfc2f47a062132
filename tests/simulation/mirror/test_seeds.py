"""Two clusters that break, with a mirror between them: seeds that found something, and planted bugs."""

import pytest
from tests.simulation.mirror.seeded.bugs import BUGS
from tests.simulation.mirror.seeded.campaign import CAMPAIGN
from tests.simulation.planting import planted

SEEDS = (29, 31)
QUICK = ("errors-end-with-each-round", "unknown-lags-are-zero")


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_are_what_the_source_has_acknowledged(seed: int) -> None:
    failure = CAMPAIGN.find_failure(seed)
    assert failure is None, f"{failure}\n{failure.details}"


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_bug_is_found(name: str) -> None:
    with planted(BUGS[name]):
        assert CAMPAIGN.find_failure(CAMPAIGN.found_by[name]) is not None, BUGS[name].what


def test_every_bug_can_be_planted_and_leaves_no_trace() -> None:
    for bug in BUGS.values():
        right = bug.function.__code__
        with planted(bug):
            assert bug.function.__code__ != right
        assert bug.function.__code__ == right


def test_a_seed_is_one_run() -> None:
    first, again = (CAMPAIGN.run_seed(3) for _ in range(2))
    assert first == again
