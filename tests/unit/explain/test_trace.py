"""The story of a record: each step with its time and its source, in order, and the longest wait first."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.made_up_evidence import T0, T1, event, history, journal, record

from ottla.client.errors import BrokerError
from ottla.explain import trace
from ottla.explain.evidence.group_history import GroupHistory
from ottla.explain.evidence.journal import JournalView
from ottla.explain.evidence.logs import RecordFacts
from ottla.explain.places import SegmentPlace
from ottla.explain.steps import Step
from ottla.explain.trace import Story
from ottla.wire.error_code import ErrorCode

HISTORY = GroupHistory()


def told(offset: int = 5, timestamp: int = 1_000, **batch: Any) -> RecordFacts:
    found = record(T0, offset, b"k", timestamp)
    return found._replace(batch=found.batch._replace(**batch))


def step(at_ms: int | None, kind: str, actor: str = "log", until_ms: int | None = None) -> Step:
    return Step(at_ms, kind, f"text of {kind}", "source", actor, until_ms)


# Waits


def test_each_actor_waits_for_its_own_step_and_the_first_of_a_group_for_the_log() -> None:
    story = Story(
        told(),
        (
            step(100, "produced", "p"),
            step(150, "appended"),
            step(None, "visible"),
            step(300, "visible"),
            step(900, "delivered", "g"),
            step(310, "delivered", "h"),
            step(1_000, "committed", "g"),
            step(5_000, "going"),
        ),
        (),
    )
    assert story.waits() == [
        ("from visible to delivered by g", 600),
        ("from appended to visible", 150),
        ("from delivered to committed by g", 100),
        ("from produced to appended", 50),
        ("from visible to delivered by h", 10),
    ]


def test_clocks_that_differ_make_no_negative_wait() -> None:
    story = Story(told(), (step(200, "produced", "p"), step(150, "appended")), ())
    assert story.waits() == [("from produced to appended", 0)]
    assert "longest wait" not in story.render()


def test_a_story_is_told_to_people_and_to_programs() -> None:
    steps = (step(0, "produced", "p"), step(2_000, "appended", until_ms=2_500), step(None, "going"))
    story = Story(told(), steps, ("who read it",), (0, 1_000))
    assert story.render().splitlines() == [
        "t/0@5  key k",
        "longest wait: 2.0 s, from produced to appended",
        "  1970-01-01 00:00:00.000Z  produced   text of produced  [source]",
        "  1970-01-01 00:00:02.000Z  appended   text of appended  [source]",
        "                            going      text of going  [source]",
        "the journal covers 1970-01-01 00:00:00.000Z to 1970-01-01 00:00:01.000Z",
        "not known: who read it",
    ]
    found = story.as_json()
    assert (found["record"], found["key"], found["value"], found["timestamp_ms"]) == (
        "t/0@5",
        "k",
        "value",
        1_000,
    )
    assert found["batch"]["where"] == "t-0"
    assert found["steps"][1] == {
        "at_ms": 2_000,
        "until_ms": 2_500,
        "kind": "appended",
        "actor": "log",
        "text": "text of appended",
        "source": "source",
    }
    assert found["waits"] == [{"between": "from produced to appended", "ms": 2_000}]
    assert (found["missing"], found["journal_ms"]) == (["who read it"], [0, 1_000])
    bare = Story(told()._replace(key=None, value=b"x" * 300), (), ())
    assert (bare.as_json()["key"], bare.as_json()["journal_ms"]) == (None, None)
    assert bare.as_json()["value"] == "x" * 200
    assert bare.render() == "t/0@5  key None"


def test_a_step_without_a_time_stands_where_its_kind_does() -> None:
    facts = told(max_timestamp=1_000)
    steps = [
        step(None, "going"),
        step(1_001, "delivered", "g"),
        step(None, "visible"),
        step(None, "appended"),
        step(1_000, "committed", "g"),
        step(1_000, "produced", "p"),
    ]
    ordered = sorted(steps, key=lambda each: trace._rank(facts, each))
    assert [each.kind for each in ordered] == [
        "produced",
        "appended",
        "committed",
        "delivered",
        "visible",
        "going",
    ]


# Written


def produced(facts: RecordFacts, view: JournalView | None = None) -> Step:
    (found,) = trace._produced(facts, view or JournalView())
    return found


def test_who_produced_it_is_known_by_the_journal_or_by_a_number() -> None:
    assert produced(told()) == Step(
        1_000, "produced", "by a producer without an id: no idempotence", "the log", "producer"
    )
    numbered = told(producer_id=7, producer_epoch=2)
    assert produced(numbered) == Step(1_000, "produced", "by producer 7, epoch 2", "the log", "producer 7")
    seen = journal(event(1, "producer-seen", producer=7, epoch=2, client="till", host="/h", txn="x"))
    assert produced(numbered, seen) == Step(
        1_000, "produced", "by producer 7, epoch 2 (till at /h, transactional id x)", "the log", "till"
    )
    # Number 0 is a number.
    assert produced(told(producer_id=0)).actor == "producer 0"
    appended = produced(told(has_append_time=True))
    assert (appended.at_ms, appended.text) == (
        None,
        "by a producer without an id: no idempotence; its own time is not kept (LogAppendTime)",
    )


def appended(facts: RecordFacts, *looks: tuple[int, int], place: SegmentPlace | None = None) -> Step:
    events = [event(at_ms, "appended-at", ends={"t/0": end, "t/1": 99}) for at_ms, end in looks]
    (found,) = trace._appended(facts, journal(*events), place)
    return found


def test_when_it_was_appended_lies_between_two_looks_of_the_journal() -> None:
    facts = told(timestamp=1_000)
    found = appended(facts, (900, 4), (1_500, 5), (2_000, 6), (3_000, 7))
    assert (found.at_ms, found.until_ms, found.actor) == (1_500, 2_000, "log")
    assert found.text.endswith("; at 1970-01-01 00:00:02.000Z at the latest")
    assert found.source.startswith("journal ")
    # Its own time is later than the look before, and no later than the look that shows it.
    assert appended(facts, (900, 5), (2_000, 6)).at_ms == 1_000
    assert appended(facts, (800, 6)).at_ms == 800
    assert appended(told(has_append_time=True), (900, 5), (2_000, 6)).at_ms == 900
    assert appended(told(has_append_time=True), (2_000, 6)).at_ms == 2_000


def test_without_a_look_that_shows_it_the_log_says_what_it_can() -> None:
    found = appended(told(max_timestamp=1_234), (900, 5))
    assert (found.at_ms, found.source) == (None, "the log")
    assert found.text == ("in a batch of 1 records and 70 bytes (none), offsets 5 to 5, leader epoch 0")
    assert appended(told(max_timestamp=1_234, has_append_time=True)).at_ms == 1_234
    place: Any = SegmentPlace("/data/t-0/0.log", 100)  # type: ignore[arg-type]
    text = appended(told(is_transactional=True), place=place).text
    assert text.endswith(", in a transaction, in /data/t-0/0.log from byte 100 to 169")


def test_it_is_replicated_when_the_high_watermark_has_passed_it() -> None:
    looks = journal(
        event(1, "appended-at", ends={"t/0": 6}, high={"t/0": 5}),
        event(2, "appended-at", ends={"t/1": 9}, high={"t/1": 9}),
        event(3, "appended-at", ends={"t/0": 9}, high={"t/0": 6}),
    )
    (found,) = trace._replicated(told(), looks, 2)
    assert (found.at_ms, found.kind) == (3, "replicated")
    assert "all of its 2 replicas" in found.text
    assert list(trace._replicated(told(), looks, 1)) == []
    assert list(trace._replicated(told(offset=6), looks, 2)) == []
    # A node that tells no high watermark has told what all have.
    (alone,) = trace._replicated(told(), journal(event(4, "appended-at", ends={"t/0": 6})), 3)
    assert alone.at_ms == 4


def test_a_record_of_a_transaction_is_visible_when_that_has_ended() -> None:
    assert list(trace._visible(None, is_open=False)) == []
    (waiting,) = trace._visible(None, is_open=True)
    assert (waiting.at_ms, "its transaction is open" in waiting.text) == (None, True)
    (ended,) = trace._visible(told(offset=9, max_timestamp=77).batch, is_open=False)
    assert (ended.at_ms, ended.text) == (77, "its transaction ended with the marker at offset 9")


# Read


def fetched(at_ms: int, position: int, client: str = "reader", kind: str = "fetch-position") -> Any:
    return event(at_ms, kind, client=client, host="/h", at={"t/0": position})


def read_by(group: GroupHistory, *events: Any, offset: int = 5) -> list[tuple[int | None, str, str]]:
    found = trace._read_by(told(offset), "g", group, journal(*events))
    return [(each.at_ms, each.kind, each.text) for each in found]


def test_who_held_the_partition_got_the_record_when_it_fetched_past_it() -> None:
    members = history(hands=((10, "reader"),))
    first = (30, "delivered", "to reader of group g, at this time at the latest: it fetches from 6")
    assert read_by(members, fetched(20, 5), fetched(30, 6), fetched(40, 9)) == [first]
    # Somebody else's position, and that of a client that never held the partition, say nothing.
    other = event(15, "fetch-position", client="reader", host="/h", at={"t/1": 99})
    assert read_by(members, fetched(15, 9, client="stranger"), other, fetched(30, 6)) == [first]
    assert read_by(members, fetched(30, 6, kind="fetch-stopped")) == [first]
    assert read_by(members, fetched(20, 5)) == []


def test_a_member_begins_where_the_group_had_committed() -> None:
    passed = history((5, 6), hands=((10, "reader"),))
    assert [kind for _, kind, _ in read_by(passed, fetched(20, 9))] == ["committed"]
    before = history((5, 5), hands=((10, "reader"),))
    assert [kind for _, kind, _ in read_by(before, fetched(20, 9))] == ["delivered"]


def test_a_commit_past_the_record_says_who_had_it_when() -> None:
    members = history((20, 5), (25, 6), (40, 9), hands=((10, "reader"),))
    (committed,) = read_by(members)
    assert committed == (25, "committed", "group g has committed 6 by reader")
    # A commit proves an earlier time than the first look that shows the delivery.
    delivered, _ = read_by(members, fetched(30, 6))
    assert delivered[:2] == (25, "delivered")
    nobody = history((25, 6))
    assert read_by(nobody) == [(25, "committed", "group g has committed 6")]


def test_a_group_that_went_back_commits_again_and_deleted_offsets_count_for_nothing() -> None:
    back = history((20, 6), (30, 3), (35, None), (40, 7))
    assert [at_ms for at_ms, _, _ in read_by(back)] == [20, 40]
    assert read_by(history((20, 5))) == []


def test_a_second_delivery_is_told_with_what_went_before() -> None:
    members = history(hands=((10, "reader"), (35, "second")))
    left = event(34, "member-left", group="g", member="m", client="reader", why="sync")
    again = event(33, "member-left", group="other", member="m", client="x", why="sync")
    found = read_by(members, fetched(30, 6), left, again, fetched(50, 7, client="second"))
    assert [kind for _, kind, _ in found] == ["delivered", "again"]
    assert found[1][0] == 50
    assert found[1][2].startswith(
        "to second of group g, at this time at the latest: it fetches from 7; before"
    )
    assert "reader did not ask for its assignment in time" in found[1][2]
    quiet = read_by(members, fetched(30, 6), fetched(50, 7, client="second"))
    assert quiet[1][2].endswith("it fetches from 7")


# Going


def going(**configs: str | None) -> list[tuple[int | None, str]]:
    return going_of(told(max_timestamp=1_000), **configs)


def going_of(facts: RecordFacts, **configs: str | None) -> list[tuple[int | None, str]]:
    async def describe(resources: Any, *, synonyms: bool) -> Any:
        assert not synonyms
        values = {name.replace("_", "."): SimpleNamespace(value=value) for name, value in configs.items()}
        return {resources[0]: values}

    access: Any = SimpleNamespace(admin=SimpleNamespace(configs=SimpleNamespace(describe_many=describe)))
    return [(each.at_ms, each.text) for each in asyncio.run(trace._going(access, facts))]


def test_how_long_a_record_stays_is_up_to_its_topic() -> None:
    deleted = (1_500, "retention may delete its segment from now on (retention.ms)")
    compacted = (None, "compaction deletes it once a newer record has its key")
    assert going(cleanup_policy="delete", retention_ms="500") == [deleted]
    assert going(cleanup_policy="compact", retention_ms="500") == [compacted]
    assert going(cleanup_policy="compact,delete", retention_ms="500") == [deleted, compacted]
    assert going(cleanup_policy="delete", retention_ms="-1") == []
    without_key = told()._replace(key=None)
    assert going_of(without_key, cleanup_policy="compact") == []
    assert going(cleanup_policy=None) == []


def test_what_may_not_be_described_is_left_out() -> None:
    async def refuses(*_told: Any, **_more: Any) -> Any:
        raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")

    named = SimpleNamespace
    access: Any = named(admin=named(configs=named(describe_many=refuses), topics=named(describe=refuses)))
    assert asyncio.run(trace._going(access, told())) == ()
    assert asyncio.run(trace._replicas(access, told())) == 0


def test_replicas_are_those_of_the_records_partition() -> None:
    parts = [named_part(0, (1, 2, 3)), named_part(1, (1,))]

    async def describe(_topic: str) -> Any:
        return SimpleNamespace(partitions=parts)

    access: Any = SimpleNamespace(admin=SimpleNamespace(topics=SimpleNamespace(describe=describe)))
    assert asyncio.run(trace._replicas(access, told())) == 3
    assert asyncio.run(trace._replicas(access, told()._replace(where=T1))) == 1
    parts.clear()
    assert asyncio.run(trace._replicas(access, told())) == 0


def named_part(number: int, replicas: tuple[int, ...]) -> Any:
    return SimpleNamespace(partition=number, replicas=replicas)


# Finding


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[RecordFacts]:
    """Records of a topic, each in a batch of its own."""
    found: list[RecordFacts] = []

    async def read_batches(_access: Any, where: Any, start: int, end: int) -> Any:
        for each in found:
            if each.where == where and start - 1 <= each.offset < end:
                yield each.batch, [each]

    async def partitions_of(_access: Any, _topics: Any) -> list[Any]:
        return [T0] if found else []

    async def sample_log(_access: Any, _partitions: Any) -> Any:
        return SimpleNamespace(records=tuple(found))

    monkeypatch.setattr(trace, "read_batches", read_batches)
    monkeypatch.setattr(trace, "partitions_of", partitions_of)
    monkeypatch.setattr(trace, "sample_log", sample_log)
    return found


def test_a_record_is_found_by_its_address(log: list[RecordFacts]) -> None:
    access: Any = None
    log += [told(4), told(5), told(6)]
    assert asyncio.run(trace.find_record(access, T0, 5)).offset == 5
    with pytest.raises(BrokerError, match="t-0 has no record at offset 9"):
        asyncio.run(trace.find_record(access, T0, 9))


def test_records_are_searched_by_all_that_was_asked(log: list[RecordFacts]) -> None:
    log += [
        told(1)._replace(key=b"a", value=b"one text", headers=(("h", b"1"),)),
        told(2)._replace(key=b"a", value=None),
        told(3)._replace(key=b"b", value=b"other text", headers=(("h", b"2"),)),
    ]

    def search(key: bytes | None = None, header: Any = None, text: bytes | None = None) -> list[int]:
        access: Any = None
        found = asyncio.run(trace.search_records(access, "t", key, header, text))
        return [each.offset for each in found]

    assert search() == [1, 2, 3]
    assert search(key=b"a") == [1, 2]
    assert search(text=b"text") == [1, 3]
    assert search(header=("h", b"2")) == [3]
    assert search(key=b"a", text=b"text") == [1]
    assert search(key=b"b", header=("h", b"1")) == []


def test_a_topic_without_partitions_says_why(log: list[RecordFacts]) -> None:
    async def describe(_topic: str) -> Any:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")

    access: Any = SimpleNamespace(admin=SimpleNamespace(topics=SimpleNamespace(describe=describe)))
    with pytest.raises(BrokerError, match="there is no such topic"):
        asyncio.run(trace.search_records(access, "t", None, None, None))


def test_the_end_of_a_transaction_is_the_marker_of_its_producer(log: list[RecordFacts]) -> None:
    log += [
        told(5, producer_id=7, is_transactional=True),
        told(6, producer_id=8, is_control=True),
        told(7, producer_id=7, is_control=True),
    ]

    async def latest(_places: Any) -> Any:
        return {T0: SimpleNamespace(offset=end)}

    access: Any = SimpleNamespace(admin=SimpleNamespace(offsets=SimpleNamespace(latest=latest)))
    end = 8
    assert asyncio.run(trace._transaction_end(access, log[0])) == (log[2].batch, False)
    end = 7
    assert asyncio.run(trace._transaction_end(access, log[0])) == (None, True)
    assert asyncio.run(trace._transaction_end(access, told(5))) == (None, False)
