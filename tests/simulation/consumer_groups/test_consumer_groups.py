"""Hundreds of members in virtual time: whatever crashes, partitions have one owner and commits stay."""

from collections.abc import Callable

import pytest
from tests.simulation.consumer_groups.bugs import BUGS
from tests.simulation.group_campaign import find_bug, run_seed

BIG = pytest.mark.thorough(
    guard="tests/simulation/consumer_groups/test_consumer_groups.py::test_small_consumer_groups_keep_theirs_too"
)
SEEDS = (pytest.param(0, marks=BIG), 1)
SMALL_SEEDS = range(100, 112)
SEEDS_UNTIL_FOUND_MAX = 40
FOUND_BY = {
    "accept_commits_of_the_past": 18,
    "do_not_bump_the_epoch_when_a_member_leaves": 6,
    "never_resolve_expressions_again": 3,
    "resolve_only_some_topics": 2,
}
"""The first seed that finds a bug, where it is not one of the first. It is tried before all others."""


@pytest.mark.parametrize("seed", SEEDS)
def test_consumer_groups_keep_their_promises_through_crashes(seed: int) -> None:
    simulation = run_seed("consumer_groups", seed)
    assert simulation.checks.commits > 500, "it was no idle run"
    assert simulation.crashes > 0


@pytest.mark.parametrize("seed", SMALL_SEEDS)
def test_small_consumer_groups_keep_theirs_too(seed: int) -> None:
    assert run_seed("consumer_groups", seed, is_small=True).checks.commits > 100


def test_a_seed_is_one_story() -> None:
    first, again = (run_seed("consumer_groups", 3, is_small=True) for _ in range(2))
    assert first.trace.digest() == again.trace.digest()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_the_simulation_finds_planted_bugs(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    seeds = (FOUND_BY.get(bug.__name__, 0), *range(SEEDS_UNTIL_FOUND_MAX))
    assert find_bug("consumer_groups", seeds), "no seed found it"
