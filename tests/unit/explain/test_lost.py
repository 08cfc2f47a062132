"""Why something is lost: what is named, how sure it is, and what is never called healthy."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.made_up_evidence import NOW_MS, T0, event, first, group, history, journal, record, topic
from tests.unit.explain.test_twice import marker

from ottla.explain.answer import HEALTHY, UNKNOWN, Answer, Strength, render
from ottla.explain.causes.lost import why_lost, why_topic_lost
from ottla.explain.evidence.cases import GroupCase
from ottla.explain.evidence.journal import JournalEvent, JournalView
from ottla.explain.evidence.logs import LogSample

IN_2026_MS = 1_795_000_000_000
KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
DELETED = {"cleanup.policy": "delete", "retention.ms": "1000", "retention.bytes": "-1"}


def names(answer: Answer) -> list[str]:
    return [cause.name for cause in answer.causes]


def reads(at_ms: int, offset: int, **facts: Any) -> JournalEvent:
    known = {"client": "reader", "host": "10.0.0.1", "n": 1, "port": 4000, "at": {"t/0": offset}}
    return event(at_ms, "fetch-position", **{**known, **facts})


def test_what_is_not_proved_is_never_called_healthy() -> None:
    past = history((100, 5), hands=((1, "m-1"),))
    answer = why_lost(group(history=past, view=journal(reads(90, 5))))
    assert (answer.verdict, answer.exit_code) == (UNKNOWN, 11)
    assert "what the application did with records that it got" in render(answer)
    whole = past._replace(commits=tuple(one._replace(is_transactional=True) for one in past.commits))
    sample = LogSample((), (), {}, {}, True)
    assert why_lost(group(history=whole, view=journal(reads(90, 5)), log=sample)).verdict == HEALTHY


@pytest.mark.parametrize(
    ("configs", "said"),
    [(DELETED, "by retention (retention.ms=1000"), (KEPT, "by an administrator: retention"), ({}, "or by")],
)
def test_what_was_deleted_before_it_was_read(configs: dict[str, str], said: str) -> None:
    answer = why_lost(group(committed=5, start=30, end=50, configs={"t": configs}))
    assert first(answer) == "deleted-unread"
    assert answer.causes[0].strength is Strength.PROVED
    assert "25 offsets of t-0" in answer.sentence
    assert said in answer.sentence
    assert "deleted-unread" not in names(why_lost(group(committed=30, start=30, end=50)))


def test_a_group_that_went_on_at_the_end_has_skipped_what_came_in_between() -> None:
    past = history((100, 5), (200, None), hands=((1, "m-1"),))
    late = journal(reads(300, 90, began={"t/0": [-1, 90]}))
    answer = why_lost(group(committed=90, end=90, history=past, view=late))
    assert first(answer) == "skipped-by-reset"
    assert "skipped 85 records, because its committed offset had expired" in answer.sentence
    kept = history((100, 5), hands=((1, "m-1"),))
    assert "out of range" in why_lost(group(committed=90, end=90, history=kept, view=late)).sentence
    early = journal(reads(300, 0, began={"t/0": [-2, 0]}))
    assert "skipped-by-reset" not in names(why_lost(group(committed=90, end=90, history=past, view=early)))


def test_offsets_that_an_administrator_set_forward() -> None:
    past = history((100, 5), (300, 90), hands=((1, "m-1"), (200, "")))
    answer = why_lost(group(committed=90, end=90, history=past, view=journal(reads(90, 5))))
    assert first(answer) == "offsets-set-forward"
    assert "from 5 to 90" in answer.sentence
    by_itself = journal(reads(90, 5), reads(250, 60))
    assert "offsets-set-forward" not in names(
        why_lost(group(committed=90, end=90, history=past, view=by_itself))
    )
    by_member = history((100, 5), (200, 90), hands=((1, "m-1"), (200, "")))
    assert "offsets-set-forward" not in names(why_lost(group(history=by_member, view=journal())))


def crash(connected: bool) -> GroupCase:
    left = event(
        20_000, "member-left", group="g", member="m-1", client="m-1", why="session", after_ms=6_000,
        connected=connected,
    )  # fmt: skip
    past = history((10_000, 50), (13_500, 90), hands=((1, "m-1"), (20_000, "m-2")))
    return group(committed=90, end=90, history=past, view=journal(left))


def test_a_crash_after_a_commit_is_only_possible_and_ends_with_a_code_of_its_own() -> None:
    answer = why_lost(crash(connected=False))
    assert first(answer) == "committed-before-processed"
    assert answer.sentence.startswith("possibly: ")
    assert "up to 40 records" in answer.sentence
    assert answer.exit_code == 11
    assert "committed-before-processed" not in names(why_lost(crash(connected=True)))


def asked(*events: JournalEvent, **configs: str) -> Answer:
    case = topic(1, record(T0, 0, b"k", NOW_MS), view=journal(*events))
    return why_topic_lost(replace(case, configs=configs))


def test_a_topic_is_never_called_healthy() -> None:
    assert asked().verdict == UNKNOWN
    assert why_topic_lost(replace(topic(1), journal=JournalView())).verdict == UNKNOWN


def test_a_leader_that_was_not_in_sync() -> None:
    unclean = event(5, "isr-changed", at="t/0", before=[1], isr=[2])
    answer = asked(unclean)
    assert (first(answer), answer.causes[0].strength) == ("unclean-election", Strength.PROVED)
    assert "what only node 1 had is not in the log" in answer.sentence
    for clean in (
        event(5, "isr-changed", at="t/0", before=[1, 2], isr=[2]),
        event(5, "isr-changed", at="t/0", before=[], isr=[2]),
        event(5, "isr-changed", at="other/0", before=[1], isr=[2]),
    ):
        assert asked(clean).causes == ()


def test_writes_that_one_node_had_when_it_failed() -> None:
    writes = event(100, "writes", client="till", host="h", at=["t/0"], acks=1, since=50)
    change = event(90, "leader-changed", at="t/0", before=1, leader=2)
    answer = asked(change, writes)
    assert (first(answer), answer.causes[0].strength) == ("acknowledged-by-one", Strength.LIKELY)
    assert asked(event(10, "leader-changed", at="t/0", before=1, leader=2), writes).causes == ()
    assert (
        asked(change, event(100, "writes", client="till", host="h", at=["t/0"], acks=-1, since=50)).causes
        == ()
    )
    careless = asked(event(100, "writes", client="till", host="h", at=["t/0"], acks=0))
    assert (first(careless), careless.exit_code) == ("nobody-acknowledged", 11)


def test_batches_that_were_refused() -> None:
    refused = event(7, "request-refused", "client/till@h", api="produce", error="MESSAGE_TOO_LARGE", count=3)
    assert asked(refused).exit_code == 11, "it is not known for which topic they were"
    writes = event(8, "writes", client="till", host="h", at=["t/0"], acks=1)
    answer = asked(refused, writes)
    assert (first(answer), answer.exit_code) == ("produce-refused", 10)
    elsewhere = event(9, "writes", client="till", host="h2", at=["other/0"], acks=1)
    assert asked(refused, writes, elsewhere).exit_code == 11, "many programs have the name of their library"
    again = event(
        7, "request-refused", "client/till@h", api="produce", error="NOT_LEADER_OR_FOLLOWER", count=3
    )
    assert asked(again, writes).causes == ()


def test_a_topic_that_was_deleted_has_lost_what_it_had() -> None:
    answer = asked(event(5, "topic-deleted", topic="t"), event(6, "topic-created", topic="t", partitions=1))
    assert first(answer) == "topic-deleted"


def test_records_of_transactions_that_were_aborted_for_good() -> None:
    lost = record(T0, 0, b"k", 1, b"only here", 7)
    lost = lost._replace(batch=lost.batch._replace(is_transactional=True))
    again = record(T0, 2, b"k", 2, b"only here", 7)
    case = topic(1)
    aborted = LogSample((lost,), (lost.batch, marker(1, 7, aborts=True)), {}, {}, True)
    assert first(why_topic_lost(replace(case, sample=aborted))) == "transaction-aborted"
    retried = LogSample((lost, again), (lost.batch, marker(1, 7, aborts=True), again.batch), {}, {}, True)
    assert why_topic_lost(replace(case, sample=retried)).causes == ()


def test_what_compaction_and_administrators_removed() -> None:
    ones = (record(T0, 0, b"a", IN_2026_MS), record(T0, 5, b"b", IN_2026_MS))
    sample = LogSample(ones, tuple(one.batch for one in ones), {T0: 3}, {T0: 6}, True)
    case = replace(topic(1), sample=sample)
    whole = replace(case, sample=sample._replace(starts={T0: 0}))
    compacted = why_topic_lost(replace(whole, configs={"cleanup.policy": "compact"}))
    assert "compaction has removed 4 offsets" in compacted.sentence
    assert names(why_topic_lost(replace(case, configs=KEPT))) == ["deleted-by-admin"]
    by_retention = why_topic_lost(replace(case, configs=DELETED))
    assert names(by_retention) == []
    assert "t-0 begins at 3" in render(by_retention)


def test_times_in_seconds_are_deleted_as_very_old() -> None:
    case = replace(topic(1, record(T0, 0, b"a", 1_795_000_000)), configs=DELETED)
    answer = why_topic_lost(case)
    assert first(answer) == "deleted-by-timestamp"
    assert "1970-01-21" in answer.sentence
    assert answer.sentence.startswith("probably: ")
