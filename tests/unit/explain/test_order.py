"""Why the order is not what it should be: clocks, changed keys, and producers that nobody can tell apart."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.made_up_evidence import T0, T1, event, first, journal, record, topic

from ottla.explain.answer import Strength
from ottla.explain.causes.order import why_order
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.logs import RecordFacts

HOURS_MS = 7_200_000
START_MS = 100_000_000


def looks(count: int) -> list[JournalEvent]:
    """A line each second: one record comes before each."""
    return [
        event(START_MS + 1_000 * number, "appended-at", ends={"t/0": number + 1}) for number in range(count)
    ]


def wrote(client: str, port: int) -> JournalEvent:
    return event(START_MS, "writes", client=client, host="10.0.0.7", n=1, port=port, at=["t/0"])


def two_hosts(behind_ms: int, producers: tuple[int, int] = (-1, -1)) -> list[RecordFacts]:
    """Two producers in turn, the second with a clock that is behind."""
    return [
        record(
            T0,
            number,
            b"k",
            START_MS + 1_000 * number - 500 - (behind_ms if number % 2 else 0),
            producer_id=producers[number % 2],
        )
        for number in range(20)
    ]


@pytest.mark.parametrize("producers", [(-1, -1), (3, 4)])
def test_a_clock_that_is_behind_is_named(producers: tuple[int, int]) -> None:
    answer = why_order(
        topic(1, *two_hosts(HOURS_MS, producers), view=journal(*looks(20), wrote("host-b", 1)))
    )
    assert first(answer) == "clocks-differ"
    assert answer.causes[0].strength is Strength.PROVED
    assert "120 min behind" in answer.sentence
    if producers == (-1, -1):
        assert "host-b" in answer.sentence


def test_times_that_an_application_sets_are_no_clock() -> None:
    old = [
        record(T0, number, b"k", START_MS + 1_000 * number - number % 7 * HOURS_MS) for number in range(20)
    ]
    answer = why_order(topic(1, *old, view=journal(*looks(20), wrote("replay", 1))))
    assert first(answer) == "sent-out-of-order"


def test_producers_without_ids_are_several_only_if_the_journal_knows_several() -> None:
    mixed = two_hosts(1_700)
    two = why_order(topic(1, *mixed, view=journal(*looks(20), wrote("a", 1), wrote("b", 2))))
    assert first(two) == "several-producers"
    assert two.sentence.startswith("probably: ")
    one = why_order(topic(1, *mixed, view=journal(*looks(20), wrote("a", 1))))
    assert first(one) == "retry-without-idempotence"
    assert one.causes[0].strength is Strength.LIKELY
    nobody = why_order(replace(topic(1, *mixed), now_ms=2 * START_MS))
    assert nobody.causes[0].strength is Strength.POSSIBLE
    assert nobody.exit_code == 11
    for answer in (two, one, nobody):
        assert "failed" not in answer.sentence


def keyed(at: Any, number: int, key: str, at_ms: int) -> RecordFacts:
    return record(at, number, key.encode(), at_ms, b"v%d" % number)


def test_keys_that_a_deploy_has_changed_are_named_with_an_example_and_the_time() -> None:
    old = [keyed(T0, number, str(number % 6), START_MS + number) for number in range(12)]
    new = [keyed(T1, number, f"user-{number % 6}", START_MS + 60_000 + number) for number in range(12)]
    answer = why_order(topic(2, *old, *new))
    assert first(answer) == "keys-changed"
    assert answer.causes[0].strength is Strength.LIKELY
    assert "'user-" in answer.sentence
    assert first(why_order(topic(2, *old, *new), b"user-3")) == "keys-changed"


def test_keys_of_two_forms_side_by_side_have_not_changed() -> None:
    old = [keyed(T0, number, str(number % 6), START_MS + 20_000 * number) for number in range(12)]
    new = [keyed(T1, number, f"user-{number % 6}", START_MS + 20_000 * number) for number in range(12)]
    assert first(why_order(topic(2, *old, *new))) is None
    others = [
        keyed(T1, number, f"user-{100 + number}", START_MS + 60_000_000 + number) for number in range(12)
    ]
    assert first(why_order(topic(2, *old, *others))) is None


@pytest.mark.parametrize(("partitions", "cause"), [(1, None), (2, "no-key")])
def test_records_without_keys_have_an_order_in_one_partition(partitions: int, cause: str | None) -> None:
    records = [record((T0, T1)[number % partitions], number, None, START_MS + number) for number in range(20)]
    assert first(why_order(topic(partitions, *records))) == cause
