"""Hundreds of members in virtual time: whatever crashes, partitions have one owner and commits stay."""

from collections.abc import Callable

import pytest
from tests.simulation.group_campaign import find_bug, run_seed
from tests.simulation.groups.bugs import BUGS

SEEDS = range(2)
SMALL_SEEDS = range(100, 110)
SEEDS_UNTIL_FOUND_MAX = 20
FOUND_BY = {
    "answer_before_the_commit": 6,
    "hand_out_before_the_assignment_is_stored": 18,
    "hand_out_to_whoever_is_there_now": 3,
    "start_no_sessions_after_loading": 19,
}
"""The first seed that finds a bug, where it is not one of the first. It is tried before all others."""


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_keep_their_promises_through_crashes(seed: int) -> None:
    simulation = run_seed("groups", seed)
    assert simulation.checks.commits > 500, "it was no idle run"
    assert simulation.crashes > 0


@pytest.mark.parametrize("seed", SMALL_SEEDS)
def test_small_groups_keep_theirs_too(seed: int) -> None:
    assert run_seed("groups", seed, is_small=True).checks.commits > 100


def test_a_seed_is_one_story() -> None:
    first, again = (run_seed("groups", 3, is_small=True) for _ in range(2))
    assert first.trace.digest() == again.trace.digest()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_the_simulation_finds_planted_bugs(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    seeds = (FOUND_BY.get(bug.__name__, 0), *range(SEEDS_UNTIL_FOUND_MAX))
    assert find_bug("groups", seeds), "no seed found it"
