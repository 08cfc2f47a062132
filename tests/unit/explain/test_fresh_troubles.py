"""Troubles that users met and `why` did not know: each was asked about before anybody had tuned for it.

The evidence is made up after what was there then. `docs/internals/explaining.md` has the score.
"""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.made_up_evidence import (
    MEMBER,
    NOW_MS,
    T0,
    event,
    first,
    group,
    history,
    journal,
    record,
    topic,
)

from ottla.client.admin.descriptions import GroupDescription
from ottla.explain.answer import CAUSE, HEALTHY, UNKNOWN, Answer, Strength, render
from ottla.explain.causes.lost import why_lost, why_topic_lost
from ottla.explain.causes.order import PARTITIONERS, why_order
from ottla.explain.causes.silent import why_silent
from ottla.explain.causes.slow import why_slow, why_topic_slow
from ottla.explain.causes.twice import why_topic_twice, why_twice
from ottla.explain.evidence.cases import GroupCase
from ottla.explain.evidence.group_history import Commit, Generation, GroupHistory, MemberFacts
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.logs import LogSample
from ottla.explain.evidence.replicas import ReplicaStates
from ottla.explain.lag.outlook import Velocity

KEPT = {"cleanup.policy": "delete", "retention.ms": "86400000", "retention.bytes": "-1"}


def names(answer: Answer) -> list[str]:
    return [cause.name for cause in answer.causes]


def reads(at_ms: int, offset: int, **facts: Any) -> JournalEvent:
    known = {"client": "reader", "host": "10.0.0.1", "n": 1, "port": 4000, "at": {"t/0": offset}}
    kind = facts.pop("kind", "fetch-position")
    return event(at_ms, kind, **{**known, **facts})


def members(*hands: tuple[int, str], client: str = "reader", number: int = 0) -> tuple[Generation, ...]:
    return tuple(
        Generation(
            at_ms,
            number + place,
            {name: MemberFacts(name, client, "/10.0.0.1", 45_000, 45_000, frozenset({T0}))} if name else {},
        )
        for place, (at_ms, name) in enumerate(hands)
    )


# Silent


@pytest.mark.parametrize("committed", [None, 0])
def test_a_member_that_never_finished_a_record_is_not_said_to_have_processed_what_it_got(
    committed: int | None,
) -> None:
    view = journal(reads(900_000, 0), reads(906_000, 0, kind="fetch-stopped", for_ms=6_000))
    answer = why_silent(group(committed=committed, end=2_000, view=view))
    assert (first(answer), answer.verdict) == ("stuck-processing", CAUSE)
    assert "with 2000 unread" in answer.sentence
    assert "or it has paused the partition" in answer.sentence
    assert answer.sentence.startswith("probably: ")


def test_an_offset_past_the_end_is_not_blamed_on_the_log() -> None:
    past = history((500, 10_000))
    view = journal(event(400, "appended-at", ends={"t/0": 40}))
    alone = group(members=(), committed=10_000, end=40, history=past, view=view)
    answer = why_silent(alone)
    assert names(answer) == ["no-members", "committed-past-end"]
    assert "somebody has committed past its end, or the log was longer once" in render(answer)
    assert "10000 was committed, with nobody in the group" in render(answer)
    assert "t-0 ended at 40, and never later" in render(answer)
    longer = journal(event(400, "appended-at", ends={"t/0": 10_000}), event(450, "node-started", n=1))
    answer = why_silent(replace(alone, journal=longer))
    assert names(answer) == ["no-members", "offset-out-of-range"]
    assert "the log was longer, up to 10000, and was cut or made again" in render(answer)


def test_a_group_that_was_set_past_the_end_has_lost_what_came_before_it() -> None:
    late = journal(reads(600, 40, began={"t/0": [-1, 40]}))
    past = GroupHistory(history((500, 10_000)).commits, members((550, "m-1")))
    answer = why_lost(group(committed=10_000, end=40, history=past, view=late))
    assert first(answer) == "committed-past-end"
    assert "did not get the records before it" in answer.sentence
    before = GroupHistory(history((400, 7), (500, 10_000)).commits, members((550, "m-1")))
    answer = why_lost(group(committed=10_000, end=40, history=before, view=late))
    assert "did not get offsets 7 to 39" in answer.sentence
    assert "--to-offset 7" in render(answer)


def test_a_topic_that_is_newer_than_what_members_subscribe_to_is_not_a_typing_error() -> None:
    past = GroupHistory((), members((500_000, "m-1")))
    made = journal(event(600_000, "topic-created", topic="t2", partitions=1), reads(990_000, 5))
    case = group(history=past, view=made)
    answer = why_silent(case, topic="t2")
    assert names(answer) == ["topic-newer-than-members"]
    assert answer.causes[0].strength is Strength.LIKELY
    old = journal(event(400_000, "topic-created", topic="t2", partitions=1), reads(990_000, 5))
    assert names(why_silent(replace(case, journal=old), topic="t2")) == ["another-topic"]


def test_a_topic_that_was_deleted_while_it_was_read_is_named() -> None:
    gone = journal(event(900_000, "topic-deleted", topic="t"))
    case = replace(group(view=gone), topics={"other": 1})
    answer = why_silent(case)
    assert (first(answer), answer.causes[0].strength) == ("topic-deleted", Strength.PROVED)
    there = why_silent(replace(case, topics={"t": 1}))
    assert "topic-deleted" not in names(there)


def nobody(*events: JournalEvent, **facts: Any) -> GroupCase:
    return replace(group(view=journal(*events)), look=None, description=None, **facts)


def test_a_pattern_without_a_caret_is_named_though_there_is_no_group() -> None:
    asks = [event(NOW_MS - 5_000 + at, "topic-unknown", client="plant", topics=["a.*"]) for at in range(30)]
    answer = why_silent(nobody(*asks))
    assert first(answer) == "pattern-without-caret"
    assert "there is no group g" in answer.sentence
    assert "a pattern only if it begins with ^" in answer.sentence
    assert "30 times or more" in render(answer)
    plain = event(NOW_MS - 5_000, "topic-unknown", client="plant", topics=["a.b"])
    assert first(why_silent(nobody(plain))) == "no-such-group"
    assert first(why_silent(nobody(*asks, elsewhere={"plant": "other"}))) == "no-such-group"


@pytest.mark.parametrize(
    ("error", "name"),
    [("GROUP_AUTHORIZATION_FAILED", "not-authorized"), ("SASL_AUTHENTICATION_FAILED", "login-refused")],
)
def test_a_client_that_was_turned_away_is_named_though_there_is_no_group(error: str, name: str) -> None:
    refusal = event(
        NOW_MS - 5_000, "request-refused", "client/bobs@10.0.0.1", api="join_group", error=error, count=3
    )
    answer = why_silent(nobody(refusal))
    assert first(answer) == name
    assert f"bobs is in no group, and is refused: join_group gets {error}" in answer.sentence
    assert first(why_silent(nobody(refusal), client="else")) == "no-such-group"
    assert first(why_silent(nobody(refusal._replace(at_ms=1)))) == "no-such-group"


def test_the_nearest_group_is_named() -> None:
    answer = why_silent(nobody(groups=("payments", "billing")))
    assert "the nearest name is" not in render(answer)
    answer = why_silent(replace(nobody(groups=("billing",)), group_id="biling"))
    assert "the nearest name is billing" in render(answer)


def test_a_member_that_never_fetched_has_no_offset_to_begin_at() -> None:
    past = GroupHistory((), members((900_000, "m-1")))
    early = event(100, "appended-at", ends={"t/0": 100})
    case = group(committed=None, end=100, velocity=None, history=past, view=journal(early))
    answer = why_silent(case)
    assert (first(answer), answer.verdict) == ("never-fetched", CAUSE)
    assert "auto.offset.reset=none" in answer.sentence
    unsure = [
        journal(early._replace(at_ms=950_000)),
        journal(early, event(950_000, "more", of="fetch-position", more=9)),
        journal(early, reads(950_000, 0)),
    ]
    for view in unsure:
        assert "never-fetched" not in names(why_silent(replace(case, journal=view)))


def test_a_log_whose_records_are_all_deleted_is_not_said_never_to_have_been_written_to() -> None:
    case = group(committed=100, end=100, start=100, view=journal(reads(990_000, 100)), last_record_ms={})
    answer = why_silent(case)
    assert first(answer) == "all-deleted"
    assert "the 100 that were written are deleted" in answer.sentence
    untold = group(committed=100, end=100, view=journal(reads(990_000, 100)), last_record_ms={})
    assert "nothing was written to t that it has not read" in why_silent(untold).sentence


def test_a_topic_with_almost_the_same_name_is_named() -> None:
    never = group(committed=0, end=0, view=journal(reads(990_000, 0)), last_record_ms={})
    answer = why_silent(replace(never, topics={"t": 1, "T": 1}))
    assert "there is also a topic T" in render(answer)
    assert "also a topic" not in render(why_silent(replace(never, topics={"t": 1, "payments": 1})))


def dying(count: int) -> tuple[JournalEvent, ...]:
    return tuple(
        event(
            900_000 + number,
            "member-left",
            group="g",
            member=f"m-{number}",
            client="reader",
            why="session",
            after_ms=45_000,
            connected=False,
        )
        for number in range(count)
    )


def test_a_consumer_that_dies_before_a_generation_is_done_is_named_with_the_codec() -> None:
    one = record(T0, 0, b"k", 1)
    batch = one.batch._replace(codec="snappy")
    case = group(
        committed=None,
        end=300,
        velocity=None,
        history=GroupHistory((), members((890_000, "m-0"))),
        view=journal(reads(891_000, 0, closed=True), *dying(3)),
        bounds={T0: (0, 300)},
        log=LogSample((one._replace(batch=batch),), (batch,), {T0: 0}, {T0: 300}, True),
    )
    description = GroupDescription(
        "g", "classic", "CompletingRebalance", "consumer", "", 1, None, None, (MEMBER,)
    )
    answer = why_silent(replace(case, description=description))
    assert first(answer) == "kills-its-consumer"
    assert "t/0@0" in answer.sentence
    assert "3 of reader have gone, and none got past it" in answer.sentence
    assert "compressed with snappy" in render(answer)
    waiting = replace(
        case, journal=journal(reads(891_000, 0, closed=True), *dying(1)), description=description
    )
    assert (names(why_silent(waiting)), why_silent(waiting).verdict) == (["kills-its-consumer"], UNKNOWN)
    twice = replace(case, journal=journal(reads(891_000, 0, closed=True), *dying(2)))
    assert "kills-its-consumer" not in names(why_silent(twice))
    passed = replace(case, journal=journal(reads(891_000, 7, closed=True), *dying(3)))
    assert "kills-its-consumer" not in names(why_silent(passed))


def test_a_group_that_is_behind_is_not_said_to_keep_up() -> None:
    moving = Velocity(10, 20)
    answer = why_silent(group(committed=5, end=3_000, velocity=moving, view=journal(reads(990_000, 5))))
    assert answer.verdict == HEALTHY
    assert "keeps up" not in answer.sentence
    assert "2995 records behind" in answer.sentence


def test_members_that_come_and_go_keep_a_group_silent_and_the_one_that_dies_is_named() -> None:
    past = GroupHistory((), members(*((940_000 + 1_000 * number, f"m-{number}") for number in range(8))))
    left = [one._replace(at_ms=950_000) for one in dying(3)]
    case = group(committed=5, end=5, history=past, view=journal(*left, reads(990_000, 5)))
    answer = why_silent(case)
    assert first(answer) == "too-many-rebalances"
    assert "reader left or died 3 times" in answer.sentence


LEADERLESS = {T0: ReplicaStates(-1, (3,), (3,), (3,))}
TOO_FEW = {T0: ReplicaStates(1, (1, 2), (1,), (2,))}
TWO_IN_SYNC = {"t": {"min.insync.replicas": "2"}}


def test_a_partition_without_a_leader_comes_first_whatever_is_asked() -> None:
    changed = event(900_000, "leader-changed", at="t/0", before=3, leader=-1)
    case = group(view=journal(changed, reads(910_000, 5)), replicas=LEADERLESS)
    behind = group(committed=0, end=500, view=journal(changed), replicas=LEADERLESS)
    for answer in (why_silent(case), why_slow(behind), why_lost(case)):
        assert first(answer) == "partition-without-leader"
        assert "t-0 has no leader" in answer.sentence
        assert "node 3, which is not available" in answer.sentence
        assert "led by nobody, before that by node 3" in render(answer)
    written = replace(topic(1, view=journal(changed)), replicas=LEADERLESS)
    assert first(why_topic_slow(written)) == first(why_topic_lost(written)) == "partition-without-leader"


def test_a_topic_with_too_few_replicas_in_sync_takes_no_writes() -> None:
    refused = event(
        950_000,
        "request-refused",
        "client/till@10.0.0.9",
        api="produce",
        error="NOT_ENOUGH_REPLICAS",
        count=2,
    )
    answer = why_silent(
        group(view=journal(reads(910_000, 5), refused), replicas=TOO_FEW, configs=TWO_IN_SYNC)
    )
    assert first(answer) == "too-few-in-sync"
    assert "1 of its replicas are in sync, and min.insync.replicas=2; node 2 is missing" in answer.sentence
    assert "till@10.0.0.9: produce got NOT_ENOUGH_REPLICAS, 2 times" in render(answer)
    alone = {T0: ReplicaStates(1, (1,), (1,), ())}
    single = group(view=journal(reads(910_000, 5)), replicas=alone, configs=TWO_IN_SYNC)
    assert "too-few-in-sync" not in names(why_silent(single)), "all that there are is enough"
    enough = group(view=journal(reads(910_000, 5)), replicas=TOO_FEW, configs={"t": {}})
    assert "too-few-in-sync" not in names(why_silent(enough))


# Lost


def test_records_that_are_gone_long_before_their_time_carried_times_long_past() -> None:
    written = [
        event(1_000, "topic-created", topic="t", partitions=1),
        event(5_000, "appended-at", ends={"t/0": 100}),
    ]
    gone = replace(topic(1, view=journal(*written)), configs=KEPT)
    gone = replace(gone, sample=gone.sample._replace(starts={T0: 100}, ends={T0: 100}))
    answer = why_topic_lost(gone)
    assert first(answer) == "deleted-by-timestamp"
    assert answer.causes[0].strength is Strength.LIKELY
    assert "retention goes by the times that records carry" in answer.sentence
    old = replace(gone, journal=journal(*written, event(90_000_000, "node-started", n=1)))
    assert not names(why_topic_lost(old)), "retention had its time"
    request = event(6_000, "records-deleted", at="t/0", before=100, client="ops", host="h")
    by_somebody = replace(gone, journal=journal(*written, request))
    assert names(why_topic_lost(by_somebody)) == ["deleted-by-admin"]
    assert "ops at h has deleted what was before" in why_topic_lost(by_somebody).sentence
    unread = group(committed=5, start=100, end=100, view=journal(request), configs={"t": KEPT})
    assert "by ops at h (DeleteRecords)" in why_lost(unread).sentence
    by_size = replace(gone, configs={**KEPT, "retention.bytes": "1000"})
    assert not names(why_topic_lost(by_size)), "its size may have been the reason"
    unknown = replace(gone, journal=journal(written[1]))
    assert not names(why_topic_lost(unknown)), "nobody saw when they were written"


def test_what_was_refused_to_a_client_of_another_topic_is_not_blamed() -> None:
    refused = event(
        9_000, "request-refused", "client/uploader@h", api="produce", error="MESSAGE_TOO_LARGE", count=3
    )
    elsewhere = event(8_000, "writes", client="uploader", host="h", at=["images/0"])
    seen = event(7_000, "producer-seen", producer=7, epoch=0, client="uploader", host="h")
    by_id = event(8_000, "producer-wrote", at="images/0", producer=7, epoch=0)
    assert names(why_topic_lost(topic(1, view=journal(refused)))) == ["produce-refused"]
    assert not names(why_topic_lost(topic(1, view=journal(elsewhere, refused))))
    assert not names(why_topic_lost(topic(1, view=journal(seen, by_id, refused))))
    newer = refused._replace(at_ms=9_500)
    (told,) = why_topic_lost(topic(1, view=journal(refused, newer))).causes
    assert told.evidence[0].at_ms == 9_500, "somebody asks about the newest"
    here = event(8_500, "writes", client="uploader", host="h", at=["t/0"])
    assert names(why_topic_lost(topic(1, view=journal(here, refused)))) == ["produce-refused"]


def test_a_connection_that_closed_after_a_commit_may_have_lost_what_it_committed() -> None:
    past = GroupHistory(history((5_000, 500), (5_500, 500)).commits, members((4_000, "m-1")))
    view = journal(reads(4_500, 0), reads(6_000, 500, closed=True))
    answer = why_lost(group(committed=500, end=500, history=past, view=view))
    assert (first(answer), answer.verdict) == ("committed-before-processed", UNKNOWN)
    assert "1.0 s after 500 of t-0 was committed" in answer.sentence
    assert "or hands records to threads, up to 500 records are lost" in answer.sentence
    still = journal(reads(4_500, 0), reads(6_000, 500))
    assert not names(why_lost(group(committed=500, end=500, history=past, view=still)))


def test_offsets_that_a_script_set_forward_are_found_though_the_dead_member_had_fetched_ahead() -> None:
    past = GroupHistory(
        history((5_000, 86), (60_000, 240)).commits,
        members((4_000, "m-1"), (50_000, ""), (61_000, "m-2")),
    )
    view = journal(reads(4_500, 0), reads(6_000, 240, closed=True), reads(62_000, 240, port=2))
    answer = why_lost(group(committed=240, end=240, history=past, view=view))
    assert first(answer) == "offsets-set-forward"
    assert "from 86 to 240" in answer.sentence
    alone = journal(reads(4_500, 0), reads(55_000, 200))
    assert "offsets-set-forward" not in names(
        why_lost(group(committed=240, end=240, history=past, view=alone))
    ), "somebody read them, by partitions of its own"


def test_keys_that_end_without_a_value_are_named_with_who_may_have_written_them() -> None:
    wrote = event(9_000, "writes", client="cleaner", host="h", at=["t/0"], since=100)
    records = [record(T0, 0, b"a", 1_000), record(T0, 1, b"b", 1_000), record(T0, 2, b"a", 2_000)]
    records[2] = records[2]._replace(value=None)
    compacted = replace(topic(1, *records, view=journal(wrote)), configs={"cleanup.policy": "compact"})
    answer = why_topic_lost(compacted)
    assert first(answer) == "deleted-by-tombstone"
    assert "1 of 2 keys" in answer.sentence
    assert "cleaner at h may have written them" in render(answer)
    assert not names(why_topic_lost(replace(compacted, configs=KEPT | {"retention.ms": "-1"})))


# Twice


def test_a_new_group_at_each_start_reads_everything_again() -> None:
    before = [
        reads(1_000, 0),
        reads(5_000, 300, closed=True),
        event(6_000, "member-left", group="app-1", member="a", client="reader", why="left", connected=False),
    ]
    past = GroupHistory((), members((10_000, "m-1")))
    now = reads(11_000, 0, port=5_000)
    answer = why_twice(group(committed=None, end=300, history=past, view=journal(*before, now)))
    assert first(answer) == "read-by-other-groups"
    assert "as a member of app-1: " in answer.sentence
    unnamed = group(committed=None, end=300, history=past, view=journal(*before[:2], now))
    assert "as a member of another group, or of none" in why_twice(unnamed).sentence
    assert "each new group.id begins where auto.offset.reset says" in answer.sentence
    later = reads(11_000, 300, port=5_000)
    assert not names(why_twice(group(committed=None, end=300, history=past, view=journal(*before, later))))


def test_one_client_that_sends_again_after_an_error_is_named_by_its_connections() -> None:
    one, again = record(T0, 4, b"k", 10_000, b"invoice 4"), record(T0, 5, b"k", 16_000, b"invoice 4")
    others = [record(T0, number, b"k", 9_000 + number, b"invoice %d" % number) for number in range(4)]
    views = [
        event(10_500, "writes", client="checkout", host="h", port=1, at=["t/0"], since=9_000),
        event(17_000, "writes", client="checkout", host="h", port=2, at=["t/0"], since=9_500),
    ]
    answer = why_topic_twice(topic(1, *others, one, again, view=journal(*views)))
    assert first(answer) == "produced-twice-by-application"
    assert answer.verdict == CAUSE
    assert "checkout at h has sent them again, 6.0 s later, and nobody else wrote there" in answer.sentence
    other = event(17_000, "writes", client="else", host="h", port=3, at=["t/0"], since=9_500)
    assert why_topic_twice(topic(1, *others, one, again, view=journal(*views, other))).verdict == UNKNOWN


def test_short_values_with_keys_and_topics_that_were_written_thrice_are_no_false_all_clear() -> None:
    def run(number: int, value: bytes = b"v%d") -> list[Any]:
        return [
            record(T0, number * 20 + at, b"key%d" % at, 1_000 * number + at, value % at) for at in range(20)
        ]

    assert why_topic_twice(topic(1, *run(0), *run(1))).verdict != HEALTHY
    answer = why_topic_twice(topic(1, *run(0), *run(1), *run(2)))
    assert (first(answer), answer.verdict) == ("equal-values", UNKNOWN)
    assert "40 of 60 records" in answer.sentence
    connections = [
        event(
            1_000 * number + 900,
            "writes",
            client="importer",
            host="h",
            port=number,
            at=["t/0"],
            since=1_000 * number,
            closed=True,
        )
        for number in range(3)
    ]
    answer = why_topic_twice(topic(1, *run(0), *run(1), *run(2), view=journal(*connections)))
    assert (first(answer), answer.verdict) == ("produced-by-two-producers", CAUSE)


# Order and slow


def test_a_single_key_is_explained_by_how_producers_place_all_keys() -> None:
    murmur2, crc32 = list(PARTITIONERS.values())[:2]
    keys = [b"k%d" % number for number in range(40)]
    records = []
    for number, key in enumerate(keys):
        records.append(record(T0._replace(partition=murmur2(key, 6)), number, key, 1_000 + number))
        records.append(record(T0._replace(partition=crc32(key, 6)), 100 + number, key, 2_000 + number))
    split = next(key for key in keys if murmur2(key, 6) != crc32(key, 6))
    answer = why_order(topic(6, *records), split)
    assert first(answer) == "another-partitioner"
    assert "so one key is in several partitions" in answer.sentence


def test_a_group_that_commits_after_each_record_is_told_so() -> None:
    commits = tuple(Commit(990_000 + 10 * at, T0, at, "", False, at) for at in range(200))
    case = group(
        committed=200,
        end=20_000,
        velocity=Velocity(0, 60),
        history=GroupHistory(commits, members((900_000, "m-1"))),
        view=journal(reads(989_000, 0)),
    )
    answer = why_slow(case)
    assert first(answer) == "commits-each-record"
    assert "200 commits in 2.0 s, of 199 records" in render(answer)
    rare = tuple(one._replace(offset=50 * place) for place, one in enumerate(commits))
    seldom = replace(case, history=case.history._replace(commits=rare))
    assert "commits-each-record" not in names(why_slow(seldom))
