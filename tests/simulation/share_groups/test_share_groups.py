"""Hundreds of members of a share group: whatever crashes, each record is done once, and none is stuck."""

from collections.abc import Callable

import pytest
from tests.simulation.group_campaign import find_bug, run_seed
from tests.simulation.share_groups.bugs import BUGS

SMALL_SEEDS = range(100, 108)
SEEDS_UNTIL_FOUND_MAX = 20


def test_share_groups_keep_their_promises_through_crashes() -> None:
    simulation = run_seed("share_groups", 0)
    assert simulation.made >= 300
    assert all(simulation.crashes[what] > 0 for what in ("members", "leaders", "share coordinators"))


@pytest.mark.parametrize("seed", SMALL_SEEDS)
def test_small_share_groups_keep_theirs_too(seed: int) -> None:
    run_seed("share_groups", seed, is_small=True)


def test_a_seed_is_one_story() -> None:
    first, again = (run_seed("share_groups", 3, is_small=True).summary() for _ in range(2))
    assert first == again


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_the_simulation_finds_planted_bugs(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    assert find_bug("share_groups", range(SEEDS_UNTIL_FOUND_MAX)), "no seed found it"
