"""Which guarantee holds, by the configs in force and by what commits show."""

from tests.support.made_up_evidence import event, group, history, journal

from ottla.explain import audit
from ottla.explain.audit import judge_reading, judge_storing, weakest

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
