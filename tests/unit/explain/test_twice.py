"""Why something came twice: what the log, the journal and the commits show of it, and what they do not."""

from dataclasses import replace
from typing import Any

from tests.support.made_up_evidence import T0, event, first, group, history, journal, record, topic

from ottla.explain.answer import Answer, Strength
from ottla.explain.causes.twice import why_topic_twice, why_twice
from ottla.explain.evidence.group_history import GroupHistory
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.logs import BatchFacts, LogSample, RecordFacts

KNOWN = journal(event(1, "node-started", n=1))


def wrote(at_ms: int, port: int, client: str = "importer", **facts: Any) -> JournalEvent:
    return event(at_ms, "writes", client=client, host="10.0.0.7", n=1, port=port, at=["t/0"], **facts)


def twice(key: bytes | None, *, ids: tuple[int, int] = (-1, -1), apart_ms: int = 30_000) -> list[RecordFacts]:
    """Records that differ, and then five of them again."""
    ones = [record(T0, number, key, 100_000 + number, b"value-%d" % number, ids[0]) for number in range(20)]
    again = [
        record(T0, 20 + number, key, 100_000 + apart_ms + number, b"value-%d" % number, ids[1])
        for number in range(5)
    ]
    return ones + again


def marker(offset: int, producer_id: int, aborts: bool) -> BatchFacts:
    batch = record(T0, offset, None, 0, producer_id=producer_id).batch
    return batch._replace(is_control=True, is_transactional=True, aborts=aborts)


def aborted() -> LogSample:
    """Ten records of a transaction that was aborted, and the same ten of one that was committed."""
    records, batches = [], []
    for start, aborts in ((0, True), (11, False)):
        some = [record(T0, start + number, b"k", start, b"value-%d" % number, 7) for number in range(10)]
        some = [one._replace(batch=one.batch._replace(is_transactional=True)) for one in some]
        records += some
        batches += [*(one.batch for one in some), marker(start + 10, 7, aborts)]
    return LogSample(tuple(records), tuple(batches), {}, {}, True)


def ask(log: LogSample, *events: JournalEvent) -> Answer:
    past = history((1, 5), hands=((1, "reader"),))
    return why_twice(group(history=past, view=journal(*KNOWN.events, *events), log=log))


def reads(isolation: int) -> JournalEvent:
    return event(
        5, "fetch-position", client="reader", host="10.0.0.1", n=1, at={"t/0": 5}, isolation=isolation
    )


def test_records_of_aborted_transactions_are_duplicates_for_readers_that_get_them() -> None:
    uncommitted = ask(aborted(), reads(0))
    assert first(uncommitted) == "aborted-records-read"
    assert uncommitted.causes[0].strength is Strength.PROVED
    assert "10 records" in uncommitted.sentence
    assert "read_uncommitted" in uncommitted.sentence
    assert ask(aborted(), reads(1)).causes == ()
    assert ask(aborted()).causes[0].strength is Strength.LIKELY
    whole = aborted()
    case = replace(topic(1, view=KNOWN), sample=whole)
    assert first(why_topic_twice(case)) == "aborted-records-read"


def test_equal_values_without_a_key_are_not_yet_duplicates() -> None:
    same = why_topic_twice(topic(1, *twice(None), view=KNOWN))
    assert same.exit_code == 11
    assert same.sentence.startswith("possibly: ")
    log = topic(1, *twice(None)).sample
    assert ask(log, reads(0)).causes == ()


def test_an_importer_that_ran_twice_is_named_with_both_times() -> None:
    view = journal(
        *KNOWN.events, wrote(101_000, 1), wrote(102_000, 1, closed=True), wrote(131_000, 2, closed=True)
    )
    answer = why_topic_twice(topic(1, *twice(b"k"), view=view))
    assert first(answer) == "produced-by-two-producers"
    assert "importer, which connected again" in answer.sentence
    assert [one.at_ms for one in answer.causes[0].evidence[1:]] == [102_000, 131_000]


def test_one_connection_that_sent_twice_is_told_from_producers_that_nobody_knows() -> None:
    one = why_topic_twice(topic(1, *twice(b"k"), view=journal(*KNOWN.events, wrote(101_000, 1))))
    assert first(one) == "produced-twice-by-application"
    assert one.causes[0].strength is Strength.LIKELY
    nobody = why_topic_twice(topic(1, *twice(b"k")))
    assert nobody.causes[0].strength is Strength.POSSIBLE
    assert nobody.exit_code == 11
    with_id = why_topic_twice(topic(1, *twice(b"k", ids=(3, 3))))
    assert with_id.causes[0].strength is Strength.LIKELY
    assert first(why_topic_twice(topic(1, *twice(b"k", ids=(3, 4))))) == "produced-by-two-producers"


def test_no_sentence_tells_of_a_call_or_a_failure_that_nobody_saw() -> None:
    for records in (twice(b"k"), twice(b"k", ids=(3, 3)), twice(b"k", apart_ms=0)):
        sentence = why_topic_twice(topic(1, *records)).sentence
        assert "second call" not in sentence
        assert "fail" not in sentence
        assert "lost" not in sentence


def moved(at_ms: int, offset: int, **facts: Any) -> JournalEvent:
    return event(at_ms, "fetch-position", client="a", host="/h", n=1, port=1, at={"t/0": offset}, **facts)


def test_an_application_that_sought_back_below_its_commits_is_named() -> None:
    past = history((1_000, 100), hands=((500, "a"),))
    case = group(history=past, view=journal(*KNOWN.events, moved(2_000, 100), moved(3_000, 40)))
    answer = why_twice(case)
    assert first(answer) == "seek-back"
    assert answer.causes[0].strength is Strength.PROVED
    assert "40 to 99 again" in answer.sentence


def test_a_position_that_others_set_back_is_no_seek() -> None:
    past = history((1_000, 100), hands=((500, "a"),))
    reset = journal(moved(2_000, 100), moved(3_000, 40, began={"t/0": [-2, 40]}))
    led = journal(moved(2_000, 100), event(2_500, "leader-changed", at="t/0"), moved(3_000, 40))
    for view in (reset, led, journal(moved(2_000, 40), moved(3_000, 100))):
        assert why_twice(group(history=past, view=view)).causes == ()
    # librdkafka drops what it has fetched ahead when it is paused: nothing came twice.
    ahead = why_twice(group(history=past, view=journal(moved(2_000, 300), moved(3_000, 120))))
    assert ahead.causes[0].strength is Strength.POSSIBLE


def test_another_process_with_the_same_client_id_does_not_make_a_dead_one_connected() -> None:
    hands = history((1_000, 10), hands=((500, "a"), (20_000, "b")))
    seen = moved(15_000, 40)
    gone = moved(16_000, 40, closed=True)
    left = event(
        19_000,
        "member-left",
        group="g",
        member="a",
        client="a",
        why="session",
        after_ms=6_000,
        connected=True,
    )
    assert first(why_twice(group(history=hands, view=journal(seen, left)))) == "session-expired"
    assert first(why_twice(group(history=hands, view=journal(seen, gone, left)))) == "crash-before-commit"


def test_without_a_journal_nothing_is_proved_about_what_came_twice() -> None:
    assert why_twice(group(history=history((1, 5)))).exit_code == 11


def commits_at(offset: int, *hands: str) -> Answer:
    """Ten records, and a member after another that commits this offset."""
    return reads_ten(
        history(
            *((2_000 + 1_000 * number, offset) for number in range(len(hands))),
            hands=tuple((1_500 + 1_000 * number, name) for number, name in enumerate(hands)),
        ),
        offset,
    )


def reads_ten(past: GroupHistory, offset: int) -> Answer:
    records = [record(T0, number, b"k%d" % number, 1_000, b"value-%d" % number) for number in range(10)]
    log = LogSample(tuple(records), tuple(item.batch for item in records), {}, {}, True)
    return why_twice(group(committed=offset, end=10, history=past, view=KNOWN, log=log, bounds={T0: (0, 10)}))


def test_a_group_that_commits_its_last_record_gets_it_again() -> None:
    answer = commits_at(9, "reader-1", "reader-2", "reader-3")
    assert first(answer) == "committed-too-low"
    assert answer.causes[0].strength is Strength.LIKELY
    assert (
        "offset 9 of t-0 was delivered again to each new member: 3 generations" in answer.causes[0].sentence
    )


def test_a_member_may_leave_in_the_millisecond_of_its_commit() -> None:
    hands = ((1_500, "reader-1"), (2_000, ""), (2_500, "reader-2"), (3_000, ""))
    answer = reads_ten(history((2_000, 9), (3_000, 9), hands=hands), 9)
    assert first(answer) == "committed-too-low"
    assert "2 generations have committed 9" in answer.causes[0].sentence


def test_commits_of_the_end_or_of_one_member_are_no_sign_of_it() -> None:
    assert first(commits_at(10, "reader-1", "reader-2")) is None
    assert first(commits_at(9, "reader-1")) is None
    # Nobody was a member when it was committed: an administrator has set it.
    assert first(commits_at(9, "", "")) is None
