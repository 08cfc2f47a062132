"""Clients keep their word in a world that is against them. Many seeds: `make sim WHAT=clients`."""

import pytest
from tests.simulation.clients.bugs import BUGS
from tests.simulation.clients.campaign import CAMPAIGN
from tests.simulation.clients.hostile import run_seed
from tests.simulation.planting import planted


def test_clients_keep_their_word() -> None:
    assert run_seed(0, records=30).met["event", "a record was acknowledged"] > 0, CAMPAIGN.replay_command(0)


@pytest.mark.thorough(guard="tests/simulation/clients/test_hostile.py::test_clients_keep_their_word")
def test_clients_keep_their_word_for_long() -> None:
    failures = CAMPAIGN.find_failures(0, 40)
    assert not failures, failures[0].message


@pytest.mark.thorough(
    guard="tests/simulation/clients/test_hostile.py::test_every_bug_can_be_planted_and_leaves_no_trace"
)
def test_a_planted_bug_is_found() -> None:
    """The first seed finds it. All bugs: `make sim WHAT=clients BUGS=1`."""
    with planted(BUGS["batches-keep-memory"]):
        assert CAMPAIGN.find_failure(0) is not None


@pytest.mark.parametrize("name", BUGS)
def test_every_bug_can_be_planted_and_leaves_no_trace(name: str) -> None:
    right = BUGS[name].function.__code__
    with planted(BUGS[name]):
        assert BUGS[name].function.__code__ is not right
    assert BUGS[name].function.__code__ is right
