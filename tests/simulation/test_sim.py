"""What `make sim` runs, and the table that it prints."""

from collections import Counter
from typing import NamedTuple

import pytest
from tests.simulation.campaigns import Campaign
from tests.simulation.cluster.campaign import CAMPAIGN
from tests.simulation.cluster.faults.kinds import FAULTS
from tests.simulation.cluster.meeting.expected import expected
from tests.simulation.meetings import Expected, Met, table_of
from tests.simulation.sim import commands_of


def test_each_simulation_has_seeds_of_its_own() -> None:
    assert commands_of(["cluster"]) == [
        ["tests.simulation.cluster.campaign", "--seeds", "200", "--first", "0"]
    ]
    assert commands_of(["storage", "--seeds", "5", "--first", "7"]) == [
        ["tests.simulation.storage.campaign", "--seeds", "5", "--first", "7"]
    ]
    assert [command[1:] for command in commands_of(["groups", "--seeds", "2"])] == [
        [kind, "--seeds", "0-1"] for kind in ("groups", "consumer_groups", "share_groups", "streams_groups")
    ]


def test_bugs_are_planted_where_there_are_some() -> None:
    assert commands_of(["quorum", "--bugs"]) == [
        ["tests.simulation.raft.campaign", "--all-bugs", "--bug-seeds", "3000"]
    ]
    with pytest.raises(SystemExit):
        commands_of(["power-cuts", "--bugs"])


def test_a_table_says_what_was_met_and_what_was_not() -> None:
    kinds = (
        Expected(
            "fault", ["kill", "pause", "rot", "split"], {"rot": "there is one disk", "sp*": "no network"}
        ),
        Expected("pair", ["kill + kill", "kill + pause"], {}, is_listed=False),
    )
    met = Counter({("fault", "kill"): 1_234, ("fault", "other"): 1, ("fault", "split"): 2})
    assert [*table_of(met, kinds)] == [
        "\nfault: 1 of 2",
        "  kill      1,234",
        "  other         1",
        "  split         2",
        "  met by no seed (1):",
        "    pause",
        "  split was met, but no network",
        "\npair: 0 of 2",
        "  met by no seed (2):",
        "    kill + kill, kill + pause",
    ]


def test_a_campaign_adds_up_what_its_seeds_have_met() -> None:
    class Outcome(NamedTuple):
        met: Met

    def run_seed(seed: int) -> Outcome:
        assert seed != 1, "this one fails"
        return Outcome(Counter({("fault", "kill"): 2}))

    campaign = Campaign("tests.simulation.test_sim", "", run_seed, {}, 0)
    ran = campaign.run_some(0, 4)
    assert [failure.seed for failure in ran.failures] == [1]
    assert ran.met == Counter({("fault", "kill"): 6})


def test_all_that_is_said_to_be_impossible_exists() -> None:
    for one in expected():
        for name in one.cannot:
            beginning = name.removesuffix("*")
            assert any(other.startswith(beginning) for other in one.names), name


def test_a_seed_meets_its_faults_and_their_consequences() -> None:
    ran = CAMPAIGN.run_one(5)
    assert not ran.failures
    met = ran.met
    assert {name for kind, name in met if kind == "faults"} <= set(FAULTS)
    for one in expected():
        assert not one.contradicted(met)
        assert len(one.missing(met)) < len(one.names) or one.kind == "faults at the same time"
