"""Records on their way through a share group: who has them, what becomes of them, and what is never lost."""

import random

import pytest

from ottla.broker.share.acquiring import Acquired, Limits, Wanted
from ottla.broker.share.in_flight import Acknowledgement, InFlight, InvalidAcknowledgement
from ottla.broker.share.runs import AcknowledgeType, RecordState, Run
from ottla.coordination.share.state_batches import StateBatch
from ottla.wire.error_code import ErrorCode

LIMITS = Limits(deliveries_max=3, in_flight_max=100, lock_ms=1000)
ALL = Wanted(500, 500)
TEN_BATCHES = [(first, first + 9) for first in range(0, 100, 10)]


def acquire(
    in_flight: InFlight, member: str = "m", wanted: Wanted = ALL, now_ms: int = 0, limits: Limits = LIMITS
) -> list[Acquired]:
    offset = in_flight.next_fetch_offset()
    batches = [one for one in TEN_BATCHES if one[1] >= offset]
    return in_flight.acquire(member, wanted, offset, batches, limits, now_ms)


def say(in_flight: InFlight, kind: AcknowledgeType, first: int, last: int, member: str = "m") -> list[Run]:
    return in_flight.acknowledge(member, [Acknowledgement(first, last, (kind,))], LIMITS, 0)


def test_a_batch_is_given_as_a_whole_unless_the_limit_is_exact() -> None:
    assert acquire(InFlight(0), wanted=Wanted(15, 500)) == [Acquired(0, 19, 1)]
    assert acquire(InFlight(0), wanted=Wanted(15, 500, is_record_limit=True)) == [Acquired(0, 14, 1)]
    assert acquire(InFlight(7), wanted=Wanted(1, 500)) == [Acquired(7, 9, 1)]


def test_what_is_acquired_at_once_is_divided_at_batches_of_the_log() -> None:
    assert acquire(InFlight(0), wanted=Wanted(45, 20)) == [
        Acquired(0, 19, 1),
        Acquired(20, 39, 1),
        Acquired(40, 49, 1),
    ]


def test_nobody_gets_what_another_has() -> None:
    in_flight = InFlight(0)
    assert acquire(in_flight, "a", Wanted(10, 500)) == [Acquired(0, 9, 1)]
    assert acquire(in_flight, "b", Wanted(10, 500)) == [Acquired(10, 19, 1)]


def test_what_is_accepted_is_done_when_it_is_written() -> None:
    in_flight = InFlight(0)
    acquire(in_flight, wanted=Wanted(10, 500))
    runs = say(in_flight, AcknowledgeType.ACCEPT, 0, 9)
    assert (in_flight.start, in_flight.start_when_written()) == (0, 10)
    in_flight.written(runs)
    assert (in_flight.start, in_flight.end, in_flight.runs) == (10, 10, [])


def test_what_cannot_be_written_is_as_it_was() -> None:
    in_flight = InFlight(0)
    acquire(in_flight, wanted=Wanted(10, 500))
    in_flight.not_written(say(in_flight, AcknowledgeType.ACCEPT, 0, 4), LIMITS, now_ms=10)
    assert all(run.is_held for run in in_flight.runs)
    in_flight.not_written(say(in_flight, AcknowledgeType.ACCEPT, 0, 4), LIMITS, now_ms=2000)
    assert in_flight.next_fetch_offset() == 0, "meanwhile its time was over"


def test_a_record_is_delivered_as_often_as_the_group_allows() -> None:
    in_flight = InFlight(0)
    for deliveries in (1, 2, 3):
        acquired = acquire(in_flight, wanted=Wanted(1, 500, is_record_limit=True))
        assert acquired == [Acquired(0, 0, deliveries)]
        in_flight.written(say(in_flight, AcknowledgeType.RELEASE, 0, 0))
    assert in_flight.start == 1


def test_records_that_fail_are_delivered_in_smaller_groups_and_at_last_alone() -> None:
    limits = Limits(deliveries_max=5, in_flight_max=100, lock_ms=1000)
    in_flight = InFlight(0, [StateBatch(0, 15, RecordState.AVAILABLE, 3)])
    assert acquire(in_flight, limits=limits) == [Acquired(0, 7, 4)]
    assert acquire(in_flight, limits=limits) == [Acquired(8, 15, 4)]
    in_flight = InFlight(0, [StateBatch(0, 15, RecordState.AVAILABLE, 4)])
    assert acquire(in_flight, limits=limits) == [Acquired(0, 0, 5)]


def test_what_is_held_too_long_is_free_again_and_so_is_what_a_leaving_member_has() -> None:
    in_flight = InFlight(0)
    acquire(in_flight, "a", Wanted(10, 500), now_ms=0)
    acquire(in_flight, "b", Wanted(10, 500), now_ms=500)
    assert in_flight.next_deadline_ms() == 1000
    assert in_flight.release_expired(LIMITS, 1000).batches == [StateBatch(0, 9, RecordState.AVAILABLE, 1)]
    assert in_flight.release_member("b", LIMITS).batches == [StateBatch(10, 19, RecordState.AVAILABLE, 1)]
    assert acquire(in_flight, "c", Wanted(20, 500)) == [Acquired(0, 19, 2)]


def test_a_lock_can_be_renewed() -> None:
    in_flight = InFlight(0)
    acquire(in_flight)
    assert in_flight.acknowledge("m", [Acknowledgement(0, 9, (4,))], LIMITS, 900) == []
    assert [batch.first_offset for batch in in_flight.release_expired(LIMITS, 1000).batches] == [10]
    with pytest.raises(InvalidAcknowledgement):
        in_flight.acknowledge("m", [Acknowledgement(0, 9, (4,))], LIMITS._replace(may_renew=False), 900)


@pytest.mark.parametrize(
    ("first", "last", "member", "expected"),
    [
        (0, 9, "other", ErrorCode.INVALID_RECORD_STATE),
        (5, 12, "m", ErrorCode.INVALID_RECORD_STATE),
        (0, 100, "m", ErrorCode.INVALID_REQUEST),
        (100, 101, "m", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_member_speaks_of_what_it_has(first: int, last: int, member: str, expected: ErrorCode) -> None:
    in_flight = InFlight(0)
    acquire(in_flight, "m", Wanted(10, 500))
    acquire(in_flight, "n", Wanted(10, 500))
    before = repr(in_flight.runs)
    with pytest.raises(InvalidAcknowledgement) as refused:
        say(in_flight, AcknowledgeType.ACCEPT, first, last, member)
    assert refused.value.error_code is expected
    assert repr(in_flight.runs) == before


def test_nothing_is_said_twice() -> None:
    in_flight = InFlight(0)
    acquire(in_flight)
    say(in_flight, AcknowledgeType.ACCEPT, 0, 9)
    with pytest.raises(InvalidAcknowledgement):
        say(in_flight, AcknowledgeType.RELEASE, 5, 5)


def test_there_is_a_limit_to_what_is_in_flight() -> None:
    limits = LIMITS._replace(in_flight_max=20)
    in_flight = InFlight(0)
    assert acquire(in_flight, limits=limits) == [Acquired(0, 19, 1)]
    assert not in_flight.can_acquire(20)
    assert acquire(in_flight, limits=limits) == []
    in_flight.written(say(in_flight, AcknowledgeType.RELEASE, 3, 4))
    assert in_flight.can_acquire(20)
    assert acquire(in_flight, "n", limits=limits) == [Acquired(3, 4, 2)], "something in between is free"


def test_what_is_not_in_the_log_any_more_is_done() -> None:
    in_flight = InFlight(0)
    acquire(in_flight)
    in_flight.written(say(in_flight, AcknowledgeType.RELEASE, 0, 19))
    assert in_flight.acquire("m", ALL, 0, [(15, 19)], LIMITS, 0) == [Acquired(15, 19, 2)]
    assert in_flight.start == 15
    in_flight.log_starts_at(17)
    assert in_flight.start == 17
    in_flight.written(say(in_flight, AcknowledgeType.ACCEPT, 0, 19))
    assert in_flight.start == 20


def test_what_was_never_written_is_free_after_loading() -> None:
    written = [StateBatch(5, 9, RecordState.ACKNOWLEDGED, 1), StateBatch(12, 12, RecordState.AVAILABLE, 2)]
    in_flight = InFlight(3, written)
    assert (in_flight.start, in_flight.end, in_flight.next_fetch_offset()) == (3, 13, 3)
    assert [(run.first, run.last, run.state.name) for run in in_flight.runs] == [
        (3, 4, "AVAILABLE"),
        (5, 9, "ACKNOWLEDGED"),
        (10, 11, "AVAILABLE"),
        (12, 12, "AVAILABLE"),
    ]


@pytest.mark.parametrize("seed", range(60))
def test_whatever_members_do_each_record_has_one_owner_and_one_end(seed: int) -> None:
    """Compare with a table that has each record by itself."""
    rng = random.Random(seed)
    limits = Limits(deliveries_max=rng.choice((2, 5)), in_flight_max=rng.choice((7, 50)), lock_ms=100)
    in_flight, now_ms = InFlight(0), 0
    owners: dict[int, tuple[str, int]] = {}
    done: set[int] = set()
    deliveries: dict[int, int] = {}
    for _ in range(300):
        now_ms += rng.randrange(20)
        for offset, (_, deadline_ms) in list(owners.items()):
            if deadline_ms <= now_ms:
                del owners[offset]
                if deliveries[offset] >= limits.deliveries_max:
                    done.add(offset)
        in_flight.release_expired(limits, now_ms)
        member = rng.choice("abc")
        if rng.random() < 0.5:
            wanted = Wanted(rng.randrange(1, 30), rng.choice((1, 10, 500)), rng.random() < 0.5)
            for first, last, count in acquire(in_flight, member, wanted, now_ms, limits):
                for offset in range(first, last + 1):
                    assert offset not in owners
                    assert offset not in done
                    deliveries[offset] = deliveries.get(offset, 0) + 1
                    assert deliveries[offset] == count <= limits.deliveries_max
                    owners[offset] = (member, now_ms + limits.lock_ms)
        mine = sorted(offset for offset, (owner, _) in owners.items() if owner == member)
        if mine and rng.random() < 0.7:
            offset, kind = rng.choice(mine), AcknowledgeType(rng.randrange(0, 4))
            runs = in_flight.acknowledge(member, [Acknowledgement(offset, offset, (kind,))], limits, now_ms)
            if rng.random() < 0.2:
                in_flight.not_written(runs, limits, now_ms)
            else:
                in_flight.written(runs)
                del owners[offset]
                is_used_up = deliveries[offset] >= limits.deliveries_max
                if kind is not AcknowledgeType.RELEASE or is_used_up:
                    done.add(offset)
        held = {offset for run in in_flight.runs if run.is_held for offset in range(run.first, run.last + 1)}
        assert held == set(owners)
        assert all(offset in done for offset in range(in_flight.start))
        assert [run.first for run in in_flight.runs[1:]] == [run.last + 1 for run in in_flight.runs[:-1]]


def test_what_is_owed_a_letter_stays_when_the_log_starts_later() -> None:
    in_flight = InFlight(0)
    limits = LIMITS._replace(keeps_dead_letters=True)
    acquire(in_flight, limits=limits)
    owed = in_flight.acknowledge("m", [Acknowledgement(3, 4, (AcknowledgeType.REJECT,))], limits, 0)
    in_flight.written(owed)
    in_flight.release_member("m", limits)
    in_flight.log_starts_at(10)
    assert (in_flight.start, in_flight.next_fetch_offset()) == (3, 10)
    in_flight.log_starts_at(30)
    assert (in_flight.start, in_flight.next_fetch_offset()) == (3, 30)
    in_flight.written(in_flight.archive_dead(in_flight.archiving_runs()))
    assert in_flight.start == 30
