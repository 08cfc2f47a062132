"""Hundreds of members of a streams group: whatever crashes, each task has one runner, and all run."""

import pytest
from tests.simulation.group_campaign import run_seed

from ottla.coordination.group.streams.group import StreamsGroup


def test_streams_groups_keep_their_promises_through_crashes() -> None:
    simulation = run_seed("streams_groups", 0)
    assert simulation.made >= 200
    assert simulation.crashes > 0


@pytest.mark.parametrize("seed", range(1, 8))
def test_smaller_streams_groups_keep_theirs_too(seed: int) -> None:
    run_seed("streams_groups", seed, is_small=True)


def test_a_coordinator_that_does_not_wait_for_owners_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamsGroup, "is_active", lambda *_: False)
    with pytest.raises(AssertionError, match="runs on"):
        run_seed("streams_groups", 1, is_small=True)
