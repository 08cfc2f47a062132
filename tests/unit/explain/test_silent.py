"""Why a group gets nothing: what is said of members that are there, gone, or only seem to read."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.made_up_evidence import MEMBER, T0, T1, event, first, group, history, journal

from ottla.client.admin.descriptions import GroupDescription
from ottla.explain.answer import HEALTHY, UNKNOWN, Strength, render
from ottla.explain.causes.absent import departure
from ottla.explain.causes.silent import why_silent
from ottla.explain.causes.slow import why_slow
from ottla.explain.evidence.cases import GroupCase
from ottla.explain.evidence.group_history import Generation, GroupHistory, MemberFacts
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.lag.outlook import Velocity


def fetches(at_ms: int, offset: int, place: str = "t/0", **facts: Any) -> JournalEvent:
    """A line that tells where the member reads."""
    known = {"client": "reader", "host": "10.0.0.1", "n": 1, "port": 4000, "at": {place: offset}}
    return event(at_ms, "fetch-position", **{**known, **facts})


def sessions(*hands: tuple[int, str], session_ms: int = 600_000) -> tuple[Generation, ...]:
    return tuple(
        Generation(
            at_ms,
            number,
            {name: MemberFacts(name, "reader", "/10.0.0.1", session_ms, 6_000, frozenset({T0}))},
        )
        for number, (at_ms, name) in enumerate(hands)
    )


def test_a_group_keeps_up_only_if_its_member_was_seen_to_fetch() -> None:
    moving = Velocity(0, 5)
    case = group(committed=5, end=5, velocity=moving, view=journal(fetches(900_000, 5)))
    assert why_silent(case).verdict == HEALTHY
    for unseen in (journal(), journal(fetches(900_000, 5, closed=True)), journal(fetches(900_000, 5, "t/1"))):
        answer = why_silent(replace(case, journal=unseen))
        assert answer.verdict == UNKNOWN
        assert "reader was not seen to fetch t-0" in answer.sentence
        assert "keeps up" not in render(answer)
        assert any("next: " in line for line in render(answer).splitlines())
        assert why_slow(replace(case, journal=unseen)).verdict == HEALTHY, "it has no lag at all"


def test_a_group_keeps_up_only_if_it_has_committed() -> None:
    case = group(committed=None, end=1_200, velocity=None, view=journal(fetches(995_000, 7)))
    answer = why_silent(case)
    assert answer.verdict == UNKNOWN
    assert "nothing is committed for t-0" in answer.sentence
    assert "at most 1200 records" in why_slow(case).sentence
    assert why_slow(case).exit_code == 11


def test_what_a_node_saw_before_it_has_started_anew_is_over() -> None:
    view = journal(fetches(900_000, 5), event(950_000, "node-started", n=1))
    assert why_silent(group(velocity=Velocity(0, 5), view=view)).verdict == UNKNOWN
    other = journal(fetches(900_000, 5), event(950_000, "node-started", n=2))
    assert why_silent(group(velocity=Velocity(0, 5), view=other)).verdict == HEALTHY


def test_a_static_member_that_died_is_named_with_the_time_until_which_it_holds_its_partitions() -> None:
    pod = replace(MEMBER, instance_id="pod-a")
    past = GroupHistory((), sessions((100_000, "m-1")))
    view = journal(fetches(700_000, 5), fetches(800_000, 9, closed=True))
    case = group(members=(pod,), committed=5, end=50, history=past, view=view)
    for answer in (
        why_silent(case),
        why_slow(replace(case, look=group(members=(pod,), committed=5, end=500).look)),
    ):
        assert first(answer) == "static-member-gone"
        assert answer.causes[0].strength is Strength.PROVED
        assert "is gone since 1970-01-01 00:13:20" in answer.sentence
        assert "until about 1970-01-01 00:23:20" in answer.sentence
    mortal = replace(case, description=group().description, look=group(committed=5, end=50).look)
    assert first(why_silent(mortal)) == "member-gone"


def test_a_member_whose_session_would_be_over_still_lives() -> None:
    past = GroupHistory((), sessions((100_000, "m-1"), session_ms=10_000))
    view = journal(fetches(700_000, 5), fetches(800_000, 9, closed=True))
    case = group(committed=5, end=50, history=past, view=view)
    assert first(why_silent(case)) is None
    assert why_silent(case).verdict == UNKNOWN


def test_a_group_that_began_at_the_end_has_not_read_what_is_before_it() -> None:
    began = fetches(900_000, 1_000, began={"t/0": [-1, 1_000]})
    for committed in (None, 1_000):
        answer = why_silent(group(committed=committed, end=1_000, velocity=None, view=journal(began)))
        assert first(answer) == "began-at-end"
        assert "the 1000 records before it are not read" in answer.sentence
    read_on = group(committed=1_007, end=1_007, velocity=Velocity(3, 3), view=journal(began))
    assert first(why_silent(read_on)) is None
    earliest = fetches(900_000, 1_000, began={"t/0": [-2, 0]})
    case = group(committed=None, end=1_000, velocity=None, view=journal(earliest))
    assert first(why_silent(case)) == "reads-without-committing"


def test_a_topic_that_was_deleted_and_made_again_is_named() -> None:
    view = journal(
        event(500_000, "topic-deleted", topic="t"),
        event(600_000, "topic-created", topic="t", partitions=1),
        fetches(900_000, 0),
    )
    past = history((400_000, 70), (500_000, None))
    case = group(committed=None, end=30, velocity=None, history=past, view=view)
    answer = why_silent(case)
    assert first(answer) == "topic-made-again"
    assert "70 of t-0" in answer.causes[0].evidence[-1].text
    went_on = history((400_000, 70), (500_000, None), (700_000, 30))
    assert "topic-made-again" not in [one.name for one in why_silent(replace(case, history=went_on)).causes]
    made_once = journal(event(600_000, "topic-created", topic="t", partitions=1))
    assert "topic-made-again" not in [one.name for one in why_silent(replace(case, journal=made_once)).causes]


def crash_loop(deaths: int) -> GroupCase:
    hands = [(100_000 + 10_000 * number, f"m-{number}") for number in range(deaths + 1)]
    gone = [
        event(
            at_ms + 8_000,
            "member-left",
            group="g",
            member=name,
            client="reader",
            why="session",
            after_ms=6_000,
        )
        for at_ms, name in hands[:-1]
    ]
    past = history((90_000, 37))._replace(generations=sessions(*hands))
    return group(committed=37, end=300, history=past, view=journal(*gone))


def test_a_record_that_kills_one_consumer_after_another_is_named() -> None:
    answer = why_silent(crash_loop(4))
    assert first(answer) == "kills-its-consumer"
    assert "t/0@37" in answer.sentence
    assert answer.sentence.startswith("probably: ")
    assert answer.as_json()["strength"] == "likely"
    nobody_now = replace(crash_loop(4), description=None)
    assert first(why_silent(nobody_now)) == "kills-its-consumer"
    for calm in (crash_loop(1), replace(crash_loop(4), look=group(committed=300, end=300).look)):
        assert "kills-its-consumer" not in [one.name for one in why_silent(calm).causes]


def test_a_member_that_committed_and_stopped_is_told_from_one_that_never_commits() -> None:
    view = journal(fetches(900_000, 1), fetches(910_000, 200))
    joined = sessions((800_000, "m-1"))
    once = history((905_000, 1))._replace(generations=joined)
    case = group(committed=1, end=200, history=once, view=view)
    answer = why_silent(case)
    assert first(answer) == "stopped-polling"
    assert "librdkafka" in answer.sentence
    never = history((700_000, 1))._replace(generations=joined)
    assert first(why_silent(replace(case, history=never))) == "reads-without-committing"


def test_assignors_that_do_not_match_are_named_with_both() -> None:
    refused = event(
        990_000,
        "join-refused",
        group="g",
        client="newer",
        host="10.0.0.2",
        error="INCONSISTENT_GROUP_PROTOCOL",
        offers=["cooperative-sticky"],
    )
    case = group(velocity=Velocity(1, 1), view=journal(fetches(900_000, 5), refused))
    for client in (None, "newer"):
        answer = why_silent(case, client)
        assert first(answer) == "assignors-do-not-match"
        assert "cooperative-sticky" in answer.sentence
        assert "range" in answer.sentence
    assert first(why_silent(case, "reader")) is None
    elsewhere = refused._replace(facts={**refused.facts, "group": "h"})
    assert first(why_silent(replace(case, journal=journal(fetches(900_000, 5), elsewhere)))) is None


@pytest.mark.parametrize("is_there", [True, False])
def test_a_client_that_assigns_itself_another_partition_is_told_where_the_records_are(is_there: bool) -> None:
    case = group(
        velocity=Velocity(1, 1),
        view=journal(fetches(900_000, 0, "t/1", client="loner")),
        bounds={T0: (0, 40), T1: (0, 0)},
    )
    if not is_there:
        case = replace(case, look=None, description=None)
    answer = why_silent(case, "loner", "t")
    assert first(answer) == "reads-other-partitions"
    assert "fetches only t-1, where there is nothing to read" in answer.sentence
    assert answer.sentence.endswith("records that it does not read are in t-0")


def test_a_group_that_is_rebalancing_says_so_and_no_more() -> None:
    bare = replace(MEMBER, subscribed_topics=(), assignment=())
    known = group(members=(bare,), velocity=Velocity(0, 5))
    description = known.description
    assert isinstance(description, GroupDescription)
    case = replace(known, description=replace(description, state="PreparingRebalance"))
    answer = why_silent(case)
    assert answer.causes == ()
    assert answer.exit_code == 11
    assert "was dividing its partitions" in answer.sentence


def test_an_answer_lists_what_was_looked_at_and_what_had_no_room() -> None:
    view = journal(fetches(900_000, 5), event(999_000, "more", of="fetch-position", more=7))
    answer = why_silent(group(velocity=Velocity(3, 3), view=view))
    assert any("2 lines of the journal" in text for text in answer.looked_at)
    assert any("7 events of kind fetch-position" in text for text in answer.missing)
    assert answer.as_json()["looked_at"] == list(answer.looked_at)


def test_a_record_that_kills_from_the_first_one_on_is_where_the_log_begins() -> None:
    loop = crash_loop(4)
    nothing = group(committed=None, end=300, start=12, history=loop.history._replace(commits=()))
    answer = why_silent(replace(nothing, journal=loop.journal))
    kills = [cause for cause in answer.causes if cause.name == "kills-its-consumer"]
    assert len(kills) == 1
    assert "t/0@12" in kills[0].sentence
    assert "nothing was ever committed" in [each.text for each in kills[0].evidence]


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (
            {"why": "left", "reason": "bye", "connected": True},
            "left (bye) +",
        ),
        ({"why": "left", "connected": False}, "left -"),
        ({"why": "session", "after_ms": 6_000}, "sent nothing for 6.0 s -"),
        (
            {"why": "rebalance", "after_ms": 60_000},
            "did not join again within 60.0 s -",
        ),
        ({"why": "sync"}, "did not ask for its assignment in time -"),
        ({"why": "news"}, "is gone -"),
        ({}, "is gone -"),
    ],
)
def test_how_a_member_left_is_said_as_the_journal_has_it(facts: dict[str, Any], sentence: str) -> None:
    shown = {"+": ", its client stayed connected", "-": ", its client is gone"}[sentence[-1]]
    told = departure(event(5, "member-left", client="reader", **facts))
    assert told.text == f"reader {sentence[:-2]}{shown}"
