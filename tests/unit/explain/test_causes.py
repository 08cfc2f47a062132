"""Causes from made-up evidence: nothing is asked, so each branch of a tree can be seen alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.support.made_up_evidence import (
    NOW_MS,
    T0,
    T1,
    event,
    first,
    group,
    history,
    journal,
    record,
    topic,
)

from ottla.client.producer.partitioner import murmur2
from ottla.explain.answer import Answer, Cause, Evidence, Strength, duration_text, ranked, render
from ottla.explain.causes.lost import why_lost
from ottla.explain.causes.order import why_order
from ottla.explain.causes.silent import why_silent
from ottla.explain.causes.slow import why_slow
from ottla.explain.causes.twice import why_topic_twice, why_twice
from ottla.explain.evidence.cases import GroupCase, OpenTransaction
from ottla.explain.evidence.group_history import GroupHistory
from ottla.explain.evidence.logs import LogSample, RecordFacts
from ottla.explain.evidence.past import group_at, of_the_past
from ottla.explain.lag.outlook import Velocity
from ottla.model.ids import TopicPartition

# Answers


def test_the_surest_cause_comes_first() -> None:
    sure = Cause("sure", Strength.PROVED, "it is so", (Evidence("seen", "the log", 5),), ("do this",))
    guess = Cause("guess", Strength.POSSIBLE, "it may be", (), weight=9)
    answer = Answer("slow", "group g", ranked([guess, sure]), "fine", ("the weather",))
    assert [cause.name for cause in answer.causes] == ["sure", "guess"]
    assert (answer.verdict, answer.exit_code) == ("cause", 10)
    text = render(answer)
    assert text.splitlines()[0] == "it is so"
    assert "1970-01-01 00:00:00.005Z  seen  [the log]" in text
    assert "do: do this" in text
    assert "not known: the weather" in text
    assert answer.as_json()["also"][0]["cause"] == "guess"


def test_healthy_and_unknown_have_exit_codes_of_their_own() -> None:
    healthy = Answer("slow", "group g", (), "fine")
    assert (healthy.verdict, healthy.exit_code, healthy.sentence) == ("healthy", 0, "fine")
    assert replace(healthy, is_unknown=True).exit_code == 11


def test_durations_are_readable() -> None:
    assert [duration_text(ms) for ms in (5, 1500, 300_000, 10_800_000)] == ["5 ms", "1.5 s", "5 min", "3.0 h"]


# Silent


def test_everything_read_and_nobody_writes_is_the_end_of_the_log() -> None:
    assert first(why_silent(group())) == "end-of-log"
    assert first(why_silent(group(velocity=Velocity(3.0, 3.0)))) is None


def test_partitions_that_no_member_knows_of_yet_are_not_the_end_of_the_log() -> None:
    grown = replace(group(), topics={"t": 3, "other": 9})
    answer = why_silent(grown)
    assert first(answer) == "partitions-without-member"
    assert "2 of the 3 partitions of t" in answer.sentence
    assert answer.causes[0].evidence[0].text == "without a member: partitions 1, 2"


def test_a_group_that_is_not_there_is_said_so() -> None:
    gone = replace(group(), look=None, description=None)
    assert first(why_silent(gone)) == "no-such-group"
    asked = journal(event(1, "topic-unknown", client="reader", topics=["x"]))
    assert first(why_silent(replace(gone, journal=asked), client="reader")) == "topic-missing"


def test_a_group_that_began_later_was_not_there_yet_whatever_is_asked() -> None:
    now = group(history=history((900_000, 3), (950_000, 5)))
    early = group_at(now, 500_000)
    questions: tuple[Callable[[GroupCase], Answer], ...] = (why_silent, why_slow, why_twice, why_lost)
    for why in questions:
        answer = of_the_past(why(early), early)
        assert (first(answer), answer.exit_code) == ("no-such-group", 10), why
        assert answer.sentence.startswith("probably: group g did not exist yet at 1970-01-01 00:08:20.000Z")
        assert answer.causes[0].evidence[0].at_ms == 900_000
        assert "compare the group.id" not in render(answer), "the name is right"
    later = group_at(now, 920_000)
    assert later.unseen_until_ms is None
    assert "did not exist" not in of_the_past(why_silent(later), later).sentence


def test_a_group_whose_history_cannot_be_read_is_first_known_now() -> None:
    assert group_at(group(history=GroupHistory(is_readable=False)), 500_000).unseen_until_ms == NOW_MS
    gone = replace(group(), look=None, description=None)
    assert group_at(gone, 500_000).unseen_until_ms is None, "nor is it there now"


def test_another_client_is_not_a_member() -> None:
    assert first(why_silent(group(), client="nobody")) == "not-a-member"


def test_an_old_open_transaction_holds_back_readers_and_a_young_one_does_not() -> None:
    held = group(committed=2, end=9, stable_ends={T0: 2})
    old = OpenTransaction(T0, 7, 2, "till", NOW_MS - 60_000, 120_000, NOW_MS - 60_000)
    answer = why_silent(replace(held, open_transactions=(old,)))
    assert first(answer) == "open-transaction"
    assert "till holds back 7 records" in answer.sentence
    young = replace(old, started_at_ms=NOW_MS - 1_000)
    assert "open-transaction" not in [
        cause.name for cause in why_silent(replace(held, open_transactions=(young,))).causes
    ]


def test_refused_rights_come_first() -> None:
    refused = event(
        NOW_MS - 1_000,
        "request-refused",
        "client/reader@10.0.0.1",
        api="fetch",
        error="TOPIC_AUTHORIZATION_FAILED",
        count=3,
    )
    answer = why_silent(group(committed=2, end=9, view=journal(refused)))
    assert first(answer) == "not-authorized"
    long_ago = refused._replace(at_ms=1)
    assert first(why_silent(group(velocity=Velocity(1, 1), view=journal(long_ago)))) is None


def test_a_member_that_fetches_nothing_is_paused_or_stuck() -> None:
    stopped = event(
        NOW_MS - 9_000, "fetch-stopped", client="reader", host="10.0.0.1", at={"t/0": 5}, for_ms=9_000
    )
    assert first(why_silent(group(committed=5, end=50, view=journal(stopped)))) == "paused"
    assert first(why_silent(group(committed=2, end=50, view=journal(stopped)))) == "stuck-processing"
    # The fetch from 5 brought whole batches. If the commit is at the end of one, all of it was processed.
    behind = group(committed=7, end=50, view=journal(stopped))
    assert first(why_silent(behind)) == "stuck-processing"
    records = [record(T0, offset, None, offset) for offset in (5, 6, 7)]
    sample = LogSample(tuple(records), tuple(item.batch for item in records), {}, {}, True)
    assert first(why_silent(replace(behind, log=sample))) == "paused"


def test_offsets_that_are_gone_are_out_of_range() -> None:
    answer = why_silent(group(committed=2, start=10, end=50))
    assert first(answer) == "offset-out-of-range"
    assert "8 records were deleted" in answer.sentence


# Twice


def test_a_commit_that_goes_back_is_a_reset_or_a_seek() -> None:
    back = history((10, 50), (30, 5), hands=((1, "a"), (20, "")))
    answer = why_twice(group(history=back))
    assert first(answer) == "offsets-reset"
    assert "offsets 5 to 49 of t-0" in answer.sentence
    seek = history((10, 50), (30, 5), hands=((1, "a"),))
    assert first(why_twice(group(history=seek))) == "seek-back"


def test_offsets_that_are_gone_have_expired_or_were_deleted() -> None:
    gone = history((10, 50), (70_000, None), (80_000, 5), hands=((1, "a"), (20, "")))
    for retention_ms, name in (
        (60_000, "offsets-expired"),
        (600_000, "offsets-deleted"),
        (None, "offsets-deleted"),
    ):
        answer = why_twice(group(history=gone, offsets_retention_ms=retention_ms))
        assert first(answer) == name
        assert len(answer.causes[0].evidence) == 3
    # It went on where it was, so nothing came twice.
    on = history((10, 50), (70_000, None), (80_000, 60), hands=((1, "a"), (20, "")))
    assert why_twice(group(history=on, offsets_retention_ms=60_000)).causes == ()


def handed_over(**left: Any) -> GroupCase:
    hands = history((1_000, 10), hands=((500, "a"), (20_000, "b")))
    seen = event(15_000, "fetch-position", client="a", at={"t/0": 40})
    gone = event(19_000, "member-left", group="g", member="a", client="a", **left)
    return group(history=hands, view=journal(seen, gone))


def test_how_a_member_left_says_why_records_came_again() -> None:
    assert first(why_twice(handed_over(why="left", connected=True))) == "poll-interval-exceeded"
    assert first(why_twice(handed_over(why="rebalance", after_ms=6_000))) == "poll-interval-exceeded"
    assert first(why_twice(handed_over(why="session", after_ms=6_000, connected=False))) == (
        "crash-before-commit"
    )
    assert first(why_twice(handed_over(why="session", after_ms=6_000, connected=True))) == "session-expired"
    left = why_twice(handed_over(why="left", connected=False))
    assert first(left) == "left-before-commit"
    assert "offsets 10 to 39 of t-0" in left.sentence


def test_a_commit_right_before_the_partition_changed_hands_is_in_order() -> None:
    hands = history((19_500, 30), hands=((500, "a"), (20_000, "b")))
    seen = event(15_000, "fetch-position", client="a", at={"t/0": 40})
    gone = event(19_600, "member-left", group="g", member="a", client="a", why="left", connected=False)
    assert first(why_twice(group(history=hands, view=journal(seen, gone)))) is None


def test_a_fetch_that_was_answered_has_brought_the_batch_where_it_begins() -> None:
    hands = history((1_000, 10), hands=((500, "a"), (20_000, "b")))
    gone = event(19_000, "member-left", group="g", member="a", client="a", why="session", after_ms=6_000)
    batch = record(T0, 10, b"k", 12_000).batch._replace(last_offset=29, records=20)

    def asked(**facts: Any) -> Answer:
        seen = event(15_000, client="a", at={"t/0": 10}, **facts)
        log = LogSample((), (batch,), {}, {}, True)
        return why_twice(group(history=hands, view=journal(seen, gone), log=log))

    stopped = asked(kind="fetch-stopped", for_ms=2_000)
    assert first(stopped) == "crash-before-commit"
    assert "offsets 10 to 29 of t-0" in stopped.sentence
    assert first(asked(kind="fetch-position", answered=True, for_ms=2_000)) == "crash-before-commit"
    assert first(asked(kind="fetch-position", answered=False, for_ms=2_000)) is None
    # The batch came only later.
    assert first(asked(kind="fetch-stopped", for_ms=4_000)) is None


def test_the_same_batch_twice_without_a_producer_id_is_a_retry() -> None:
    many = [record(T0, number, b"k", number, b"value-%d" % number) for number in range(20)]
    again = record(T0, 20, b"k", 19, b"value-19")
    assert [cause.name for cause in why_topic_twice(topic(1, *many, again)).causes] == [
        "produced-twice-by-retry"
    ]
    assert first(why_topic_twice(topic(1, *many))) is None


def test_a_topic_that_repeats_values_on_purpose_is_healthy() -> None:
    ticks = [record(T0, number, b"clock", number, b"tick") for number in range(50)]
    assert first(why_topic_twice(topic(1, *ticks))) is None


# Order


def placed(key: bytes, among: int, at: int, offset: int) -> RecordFacts:
    return record(TopicPartition("t", (murmur2(key) & 0x7FFFFFFF) % among), offset, key, at)


def test_keys_that_moved_when_partitions_were_added_need_no_journal() -> None:
    keys = [b"key-%d" % number for number in range(30)]
    old = [placed(key, 2, 10, index) for index, key in enumerate(keys)]
    new = [placed(key, 5, 20_000, 100 + index) for index, key in enumerate(keys)]
    answer = why_order(topic(5, *old, *new))
    assert first(answer) == "partitions-added"
    assert "5 instead of 2" in answer.sentence
    assert answer.causes[0].strength is Strength.LIKELY
    told = journal(event(15_000, "partitions-added", topic="t", partitions=5))
    assert why_order(topic(5, *old, *new, view=told)).causes[0].strength is Strength.PROVED


def test_a_clock_ahead_is_told_from_several_producers() -> None:
    late, early = record(T0, 0, b"k", 900_000, producer_id=1), record(T0, 1, b"k", 500_000, producer_id=2)
    assert first(why_order(topic(1, late, early))) == "several-producers"
    appended = journal(event(500_000, "appended-at", ends={"t/0": 1}))
    assert first(why_order(topic(1, late, early, view=appended))) == "clocks-differ"


def test_one_key_can_be_asked_about() -> None:
    spread = [record(T0, 0, b"a", 1), record(T1, 0, b"a", 2), record(T0, 1, b"b", 3), record(T0, 2, b"b", 4)]
    assert first(why_order(topic(2, *spread), b"b")) is None
    assert first(why_order(topic(2, *spread), b"a")) is not None


# Slow


def test_a_lag_that_nothing_explains_is_unknown() -> None:
    answer = why_slow(group(committed=0, end=5_000, velocity=Velocity(0.0, 10.0)))
    assert (answer.verdict, answer.exit_code) == ("unknown", 11)


def test_a_group_that_catches_up_is_healthy() -> None:
    answer = why_slow(group(committed=0, end=5_000, velocity=Velocity(500.0, 10.0)))
    assert answer.verdict == "healthy"
    assert "catches up" in answer.sentence


def test_throttled_readers_are_slow_though_they_catch_up_in_bursts() -> None:
    waits = event(NOW_MS - 2_000, "throttled", "client/reader@10.0.0.1", ms=4_000, quota="consumer_byte_rate")
    bursts = group(committed=0, end=5_000, velocity=Velocity(500.0, 10.0), view=journal(waits))
    assert first(why_slow(bursts)) == "throttled"


def test_a_member_that_asks_for_nothing_while_records_wait_processes_slowly() -> None:
    behind: dict[str, Any] = {"committed": 60, "end": 5_000, "velocity": Velocity(10.0, 200.0)}
    asks = event(NOW_MS - 1_000, "fetch-position", client="reader", at={"t/0": 50})
    rests = event(NOW_MS - 9_000, "fetch-stopped", client="reader", at={"t/0": 0}, for_ms=2_000)
    stranger = event(NOW_MS - 9_000, "fetch-stopped", client="else", at={"t/0": 0}, for_ms=2_000)
    assert first(why_slow(group(**behind, view=journal(rests, asks)))) == "slow-processing"
    assert first(why_slow(group(**behind, view=journal(stranger, asks)))) == "slow-fetching"
    assert first(why_slow(group(**behind, view=journal(asks)))) == "slow-fetching"
