"""Why a group falls behind: each cause from made-up evidence, and what is just not enough for it."""

from collections.abc import Mapping

import pytest
from tests.support.made_up_evidence import NOW_MS, event, first, group, journal, record

from ottla.client.admin.descriptions import MemberDescription
from ottla.client.admin.group_offsets import PartitionLag
from ottla.explain.causes.slow import hot_keys, why_slow
from ottla.explain.evidence.cases import GroupCase
from ottla.explain.evidence.group_history import Generation, GroupHistory, MemberFacts
from ottla.explain.evidence.journal import JournalView
from ottla.explain.evidence.logs import LogSample, RecordFacts
from ottla.explain.lag.looking import GroupLook
from ottla.explain.lag.outlook import PartitionLook, Velocity
from ottla.model.ids import TopicPartition

SLOW = Velocity(10.0, 20.0)


def where(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def member(name: str, *partitions: int) -> MemberDescription:
    return MemberDescription(
        name,
        None,
        f"client-{name}",
        "/10.0.0.1",
        None,
        None,
        ("t",),
        None,
        tuple(map(where, partitions)),
        None,
    )


def case(
    ends: Mapping[int, int],
    committed: Mapping[int, int] | None = None,
    members: tuple[MemberDescription, ...] = (),
    velocity: Velocity | None = SLOW,
    log: LogSample | None = None,
    history: GroupHistory | None = None,
    view: JournalView | None = None,
) -> GroupCase:
    """Return a group that has read partitions up to `committed`, of which the end is given."""
    holders = {place: one for one in members for place in one.assignment}
    looks = []
    for number, end in ends.items():
        at = (committed or {}).get(number, 0)
        lag = PartitionLag(where(number), at, 0, end, end - at, holders.get(where(number)))
        looks.append(PartitionLook(lag, velocity=velocity))
    made = group(members=members, log=log, view=view, history=history or GroupHistory())
    return GroupCase(
        "g", NOW_MS, 3.0, GroupLook("g", "classic", "Stable", len(members), tuple(looks)), made.description,
        made.history, made.journal, {"t": len(ends)}, log=log,
    )  # fmt: skip


def sample(*records: RecordFacts) -> LogSample:
    return LogSample(records, tuple(item.batch for item in records), {}, {}, True)


def test_a_small_lag_is_not_slow() -> None:
    for lag, verdict in ((99, "healthy"), (100, "unknown")):
        answer = why_slow(case({0: lag}))
        assert answer.verdict == verdict
        assert f"{lag} records behind" in answer.sentence
    assert "keeps up" in why_slow(case({0: 99})).sentence


@pytest.mark.parametrize(("seconds", "verdict"), [(59, "healthy"), (60, "unknown")])
def test_who_catches_up_within_a_minute_is_healthy(seconds: int, verdict: str) -> None:
    assert why_slow(case({0: 10 * seconds}, velocity=Velocity(20.0, 10.0))).verdict == verdict


@pytest.mark.parametrize(
    ("ends", "committed", "is_hot"),
    [
        ({0: 900, 1: 50, 2: 50}, {}, True),
        ({0: 500, 1: 500}, {}, False),
        # It has most of the lag, but not most of the records: who reads it is slow.
        ({0: 500, 1: 900, 2: 900}, {1: 850, 2: 900}, False),
        ({0: 900}, {}, False),
        # With two partitions one of them would have to have everything.
        ({0: 900, 1: 100}, {}, False),
    ],
)
def test_a_partition_with_most_records_and_most_of_the_lag_is_hot(
    ends: dict[int, int], committed: dict[int, int], is_hot: bool
) -> None:
    assert (first(why_slow(case(ends, committed))) == "hot-partition") is is_hot


def test_hot_keys_are_named_if_they_are_a_part_of_it() -> None:
    records = [record(where(0), offset, b"a", 1) for offset in range(3)]
    records += [record(where(0), 3 + offset, b"k%d" % offset, 1) for offset in range(7)]
    records += [record(where(0), 10, None, 1), record(where(1), 0, b"other", 1)]
    log = sample(*records[:10], *records[11:])
    assert hot_keys(log, where(0))[0] == (b"a", 0.3)
    assert len(hot_keys(log, where(0))) == 5
    assert hot_keys(sample(*records[10:11]), where(0)) == []
    ends = {0: 900, 1: 50, 2: 50}
    (cause, *_) = why_slow(case(ends, log=log)).causes
    assert "90% of the records and has 90% of the lag; its hot keys: 'a' with 30%" in cause.sentence
    (cause, *_) = why_slow(case(ends, log=sample(*records[:11]))).causes
    assert "hot keys" not in cause.sentence


@pytest.mark.parametrize(
    ("members", "lag_of_first", "is_skewed"),
    [
        ((member("a", 0, 1, 2), member("b", 3)), 1000, True),
        ((member("a", 0, 1, 2), member("b", 3)), 100, False),
        ((member("a", 0, 1), member("b", 2, 3)), 1000, False),
        ((member("a", 0, 1, 2), member("b", 3), member("c")), 1000, True),
        ((member("a", 0, 1, 2, 3),), 1000, False),
    ],
)
def test_a_member_with_most_partitions_and_most_of_the_lag(
    members: tuple[MemberDescription, ...], lag_of_first: int, is_skewed: bool
) -> None:
    committed = dict.fromkeys(range(3), 1000 - lag_of_first) | {3: 900}
    answer = why_slow(case(dict.fromkeys(range(4), 1000), committed, members))
    assert (first(answer) == "skewed-assignment") is is_skewed
    if is_skewed:
        assert "client-a has 3 of 4 partitions and 97% of the lag" in answer.causes[0].sentence


def test_fewer_members_than_partitions_that_all_lag() -> None:
    ends = dict.fromkeys(range(4), 1000)
    two = (member("a", 0, 1), member("b", 2, 3))
    (cause, *_) = why_slow(case(ends, members=two)).causes
    assert cause.name == "too-few-members"
    # Two read 40 a second, and 80 are written: four are needed.
    assert "2 members read 4 partitions at 40 records a second, while 80 are written" in cause.sentence
    assert "they catch up never" in cause.sentence
    assert cause.advice[0].startswith("run 4 members")
    slowly = why_slow(case(ends, members=two, velocity=Velocity(20.0, 19.0))).causes[0]
    assert "they catch up slowly" in slowly.sentence
    assert slowly.advice[0].startswith("run 3 members")
    enough = tuple(member(str(number), number) for number in range(4))
    assert first(why_slow(case(ends, members=enough))) is None
    assert first(why_slow(case(ends, members=two, velocity=Velocity(0.0, 9.0)))) is None
    assert first(why_slow(case(ends, members=two, velocity=None))) is None
    one_lags = case(ends, {1: 1000, 2: 1000}, two)
    assert first(why_slow(one_lags)) is None


def test_many_rebalances_are_a_cause_while_they_go_on() -> None:
    facts = MemberFacts("m", "c", "/h", 1, 1, frozenset({where(0)}))

    def history(count: int, last_ms: int, empty: int = 0) -> GroupHistory:
        generations = [Generation(last_ms - 1000 * place, 9 - place, {"m": facts}) for place in range(count)]
        generations += [Generation(last_ms - 500, 99, {}) for _ in range(empty)]
        return GroupHistory(generations=tuple(sorted(generations, key=lambda one: one.at_ms)))

    left = journal(event(NOW_MS - 5, "member-left", group="g", client="c-1", why="left"))
    answer = why_slow(case({0: 1000}, history=history(7, NOW_MS - 1000), view=left))
    assert first(answer) == "too-many-rebalances"
    assert "was rebalanced 7 times in five minutes" in answer.causes[0].sentence
    assert first(why_slow(case({0: 1000}, history=history(6, NOW_MS - 1000, empty=3)))) is None
    assert first(why_slow(case({0: 1000}, history=history(7, NOW_MS - 290_000)))) is None
    assert first(why_slow(case({0: 1000}, history=history(7, NOW_MS - 296_000)))) is None


@pytest.mark.parametrize(
    ("waited_ms", "ago_ms", "client", "is_cause"),
    [
        (1000, 2_000, "client-a", True),
        (999, 2_000, "client-a", False),
        (5000, 200_000, "client-a", False),
        (5000, 2_000, "client-x", False),
    ],
)
def test_readers_over_their_quota(waited_ms: int, ago_ms: int, client: str, is_cause: bool) -> None:
    waits = event(NOW_MS - ago_ms, "throttled", f"client/{client}@h", ms=waited_ms, quota="bytes")
    answer = why_slow(case({0: 1000}, members=(member("a", 0),), view=journal(waits)))
    assert (first(answer) == "throttled") is is_cause
