"""Which guarantee holds, by the configs in force and by what commits show."""

from typing import Any

import pytest
from tests.support.made_up_evidence import T0, event, group, history, journal, record

from ottla.explain import audit
from ottla.explain.audit import judge_reading, judge_storing, weakest
from ottla.explain.evidence.logs import LogSample
from ottla.model.ids import TopicPartition

DEFAULTS = {
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
    "ottla.acks.all.sync": "true",
}


def test_one_replica_that_syncs_before_it_acknowledges_loses_nothing() -> None:
    hop = judge_storing("t", 1, DEFAULTS)
    assert hop.guarantee == audit.EXACTLY_ONCE
    assert "acknowledged when on disk" in hop.why


def test_one_replica_that_does_not_may_lose_and_only_ottla_can_be_told_to_sync() -> None:
    hop = judge_storing("t", 1, {**DEFAULTS, "ottla.acks.all.sync": "false"})
    assert hop.guarantee == audit.MAY_LOSE
    assert "ottla.acks.all.sync=true" in (hop.to_improve or "")
    kafka = {name: value for name, value in DEFAULTS.items() if not name.startswith("ottla.")}
    assert "ottla" not in (judge_storing("t", 1, kafka).to_improve or "")


def test_configs_that_nobody_may_see_promise_nothing() -> None:
    assert judge_storing("t", 3, None).guarantee == audit.UNKNOWN


def test_plain_commits_do_not_show_at_least_once() -> None:
    (hop,) = judge_reading(group(history=history((10, 5))))
    assert hop.guarantee == audit.UNKNOWN
    assert "do not show which" in hop.why
    assert weakest([hop, judge_storing("t", 1, DEFAULTS)]) == audit.UNKNOWN
    ahead = journal(event(20, "fetch-position", client="reader", host="h", at={"t/0": 1}))
    past = history((10, 5), hands=((1, "reader"),))
    (hop,) = judge_reading(group(history=past, view=ahead))
    assert hop.guarantee == audit.AT_MOST_ONCE


# Producing


def made(*batches: dict[str, Any]) -> LogSample:
    known = [record(T0, number, b"k", 1).batch._replace(**facts) for number, facts in enumerate(batches)]
    return LogSample((), tuple(known), {}, {}, True)


BARE, NUMBERED, ENDED = {"producer_id": -1}, {"producer_id": 0}, {"producer_id": 0, "is_control": True}
IN_TRANSACTION = {"producer_id": 3, "is_transactional": True}


@pytest.mark.parametrize(
    ("batches", "guarantee", "why", "to_improve"),
    [
        ((BARE, NUMBERED), audit.AT_LEAST_ONCE, "1 of 2 batches have no producer id", "enable.idempotence"),
        ((NUMBERED, NUMBERED), audit.EXACTLY_ONCE, "all 2 batches have producer ids", "use transactions"),
        ((NUMBERED, IN_TRANSACTION), audit.EXACTLY_ONCE, "a restart may send again", "use transactions"),
        ((IN_TRANSACTION, ENDED), audit.EXACTLY_ONCE, "all 1 batches are in transactions", None),
    ],
)
def test_producers_are_judged_by_their_batches(
    batches: Any, guarantee: str, why: str, to_improve: str | None
) -> None:
    (hop,) = audit._producing(made(*batches))
    assert (hop.hop, hop.guarantee) == ("producers of t", guarantee)
    assert why in hop.why
    assert to_improve in (hop.to_improve or "") if to_improve else hop.to_improve is None


def test_each_topic_has_producers_of_its_own() -> None:
    sample = made(NUMBERED, NUMBERED)
    other = sample.batches[1]._replace(where=TopicPartition("s", 0), producer_id=-1)
    hops = list(audit._producing(sample._replace(batches=(sample.batches[0], other))))
    assert [(hop.hop, hop.guarantee) for hop in hops] == [
        ("producers of s", audit.AT_LEAST_ONCE),
        ("producers of t", audit.EXACTLY_ONCE),
    ]


# Storing


@pytest.mark.parametrize(
    ("replicas", "changed", "guarantee", "said"),
    [
        (3, {"min.insync.replicas": "2"}, audit.EXACTLY_ONCE, "3 replicas, at least 2 in sync"),
        (2, {}, audit.MAY_LOSE, "2 replicas, but min.insync.replicas=1"),
        (
            3,
            {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"},
            audit.MAY_LOSE,
            "lets a replica lead that does not have everything",
        ),
        (
            3,
            {"min.insync.replicas": "2", "ottla.acks.all.sync": "false"},
            audit.EXACTLY_ONCE,
            "when in memory of all in-sync replicas",
        ),
        (1, {"min.insync.replicas": "2"}, audit.EXACTLY_ONCE, "acknowledged when on disk"),
    ],
)
def test_a_topic_is_judged_by_its_weakest_setting(
    replicas: int, changed: dict[str, str], guarantee: str, said: str
) -> None:
    hop = judge_storing("t", replicas, {**DEFAULTS, **changed})
    assert (hop.guarantee, said in hop.why) == (guarantee, True)
    assert (hop.to_improve is None) == (guarantee == audit.EXACTLY_ONCE and replicas > 1)


# Reading


def reading(*positions: int, committed: int = 5, client: str = "reader", transactional: bool = False) -> str:
    past = history((10, committed), hands=((1, "reader"),))
    commits = tuple(each._replace(is_transactional=transactional) for each in past.commits)
    events = [
        event(20 + at, "fetch-position", client=client, host="h", at={"t/0": position})
        for at, position in enumerate(positions)
    ]
    (hop,) = judge_reading(group(history=past._replace(commits=commits), view=journal(*events)))
    assert hop.hop == "group g reads"
    return hop.guarantee


def test_commits_ahead_of_most_positions_are_at_most_once() -> None:
    assert reading(1, 2) == audit.AT_MOST_ONCE
    assert reading(1, 5) == audit.UNKNOWN, "one of two is no habit"
    assert reading(1, 2, 5) == audit.AT_MOST_ONCE
    assert reading(5, 6) == audit.UNKNOWN, "what is committed was fetched"
    assert reading(1, 2, client="somebody else") == audit.UNKNOWN
    assert reading(1, transactional=True) == audit.EXACTLY_ONCE
    (hop,) = judge_reading(group())
    assert (hop.guarantee, hop.why) == (audit.UNKNOWN, "it has committed nothing that is still known")


def test_the_weakest_hop_holds_from_end_to_end() -> None:
    order = [audit.MAY_LOSE, audit.AT_MOST_ONCE, audit.UNKNOWN, audit.AT_LEAST_ONCE, audit.EXACTLY_ONCE]
    hops = [audit.Hop("h", guarantee, "why") for guarantee in order]
    for number in range(len(order)):
        assert weakest(hops[number:][::-1]) == order[number]
    assert weakest([]) == audit.UNKNOWN
