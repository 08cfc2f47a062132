"""The check of a cluster: a line for each area, fine or with what to do next."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.made_up_evidence import NOW_MS, T0, event, journal

from ottla.client.admin.group_offsets import PartitionLag
from ottla.explain import doctor
from ottla.explain.doctor import Check, examine
from ottla.explain.evidence.journal import JournalView
from ottla.explain.lag.looking import GroupLook
from ottla.explain.lag.outlook import PartitionLook, Retention, Velocity


def group(
    lag: int,
    *,
    reads: float = 0.0,
    writes: float = 0.0,
    start: int = 0,
    members: int = 1,
    state: str = "Stable",
    deleted_in_s: float | None = None,
) -> GroupLook:
    """A group that has committed 100 of a partition."""
    part = PartitionLook(
        PartitionLag(T0, 100, start, 100 + lag, lag, None),
        None if deleted_in_s is None else NOW_MS,
        Velocity(reads, writes),
        Retention() if deleted_in_s is None else Retention(int(deleted_in_s * 1000)),
    )
    return GroupLook("g", "classic", state, members, (part,))


def lag_of(*groups: GroupLook) -> list[Check]:
    return list(doctor._lag(groups, NOW_MS))


# Lag


@pytest.mark.parametrize(
    ("look", "text", "next_step"),
    [
        (group(50, start=103), "group g has lost 3 records to retention", "ottla lag g"),
        (
            group(50, deleted_in_s=3_599),
            "retention deletes records that group g has not read in 3599 s",
            "ottla why slow g",
        ),
        (group(1_000), "group g is 1000 records behind and not reading", "ottla why silent g"),
        (
            group(10_000, reads=1, writes=2),
            "group g is 10000 records behind and falling behind",
            "ottla why slow g",
        ),
    ],
)
def test_a_group_in_trouble_is_told_with_what_to_ask_next(look: GroupLook, text: str, next_step: str) -> None:
    assert lag_of(look) == [Check("lag", False, text, next_step)]


@pytest.mark.parametrize(
    "look",
    [
        group(0),
        group(999),
        group(5_000, reads=3, writes=2),
        group(5_000, reads=2, writes=2),
        group(50, start=100),
        group(50, deleted_in_s=3_600),
        GroupLook("g", "classic", "Empty", 0),
    ],
)
def test_a_group_that_gets_on_is_fine(look: GroupLook) -> None:
    assert lag_of(look) == [Check("lag", True, "1 groups, none far behind without catching up")]


def test_each_group_in_trouble_has_a_line_and_the_others_have_none() -> None:
    found = lag_of(group(0), group(1_000), group(5_000, reads=3, writes=2), group(2_000))
    assert [check.is_fine for check in found] == [False, False]
    assert lag_of() == [Check("lag", True, "0 groups, none far behind without catching up")]


# Members


def members_of(*groups: GroupLook, view: JournalView | None = None) -> list[Check]:
    return list(doctor._members(groups, view or JournalView()))


def test_unread_records_that_nobody_reads_are_told() -> None:
    told = Check("members", False, "group g has no members and 7 unread records", "ottla why silent g")
    assert members_of(group(7, members=0, state="Empty")) == [told]
    assert members_of(group(7, members=0, state="EMPTY")) == [told]
    for fine in (
        group(0, members=0, state="Empty"),
        group(7, members=1, state="Empty"),
        group(7, members=0, state="Dead"),
        GroupLook("g", "classic", "Empty", 0),
    ):
        assert members_of(fine)[0].is_fine


def test_members_that_were_lost_are_told_and_those_that_left_are_not() -> None:
    left = [event(1, "member-left", why=why, group="a") for why in ("left", None)]
    assert members_of(group(0, members=2), group(0), view=journal(*left)) == [
        Check("members", True, "3 members, none lost of late")
    ]
    lost = [event(at, "member-left", why="session", group=name) for at, name in enumerate("bcb")]
    assert members_of(view=journal(*left, *lost)) == [
        Check("members", False, "3 members were lost in the last five minutes, of b, c", "ottla why twice b")
    ]


# Brokers and producers


def part(number: int, leader: int = 1, in_sync: int = 2) -> Any:
    return SimpleNamespace(
        partition=number, leader=leader, in_sync_replicas=(1, 2)[:in_sync], replicas=(1, 2)
    )


class Asked:
    """A cluster with these topics and these transactions that are open."""

    def __init__(self, *transactions: Any, **topics: tuple[Any, ...]) -> None:
        self._topics = topics
        self._transactions = transactions
        named = SimpleNamespace
        self.admin = named(
            topics=named(list=self._list, describe_many=self._describe_many),
            cluster=named(describe=self._describe),
            transactions=named(list=self._list_transactions, describe_many=self._describe_transactions),
        )

    async def _list(self, *, internal: bool) -> list[Any]:
        assert internal
        return [SimpleNamespace(name=name) for name in self._topics]

    async def _describe_many(self, names: list[str]) -> Any:
        found = {name: SimpleNamespace(name=name, partitions=self._topics[name]) for name in names}
        return SimpleNamespace(succeeded=found)

    async def _describe(self) -> Any:
        return SimpleNamespace(brokers=(1, 2))

    async def _list_transactions(self, *, states: tuple[str, ...]) -> list[Any]:
        assert states == ("Ongoing",)
        return list(self._transactions)

    async def _describe_transactions(self, names: list[str]) -> Any:
        return SimpleNamespace(
            succeeded={
                one.transactional_id: one for one in self._transactions if one.transactional_id in names
            }
        )


def brokers_of(**topics: tuple[Any, ...]) -> list[Check]:
    return asyncio.run(doctor._brokers(Asked(**topics)))  # type: ignore[arg-type]


def test_partitions_without_a_leader_or_a_replica_are_counted() -> None:
    assert brokers_of(a=(part(0), part(1)), b=(part(0),)) == [
        Check("brokers", True, "2 brokers lead 3 partitions, all in sync")
    ]
    assert brokers_of(
        a=(part(0), part(1, leader=-1, in_sync=0)), b=(part(0, in_sync=1), part(3, in_sync=1))
    ) == [
        Check("brokers", False, "1 partitions have no leader, for example a-1", "ottla topic describe a"),
        Check(
            "brokers",
            False,
            "2 partitions have replicas that are not in sync, for example b-0",
            "ottla topic describe b",
        ),
    ]
    assert brokers_of(a=(part(0, leader=0),))[0].is_fine


def transaction(age_ms: int | None, timeout_ms: int = 60_000) -> Any:
    return SimpleNamespace(
        transactional_id="t",
        started_at_ms=None if age_ms is None else NOW_MS - age_ms,
        timeout_ms=timeout_ms,
    )


@pytest.mark.parametrize(
    ("age_ms", "timeout_ms", "is_fine"),
    [
        (30_000, 60_000, True),
        (30_001, 60_000, False),
        (10_000, 1_000, True),
        (10_001, 1_000, False),
        (None, 1_000, True),
    ],
)
def test_a_transaction_is_long_after_half_of_its_timeout(
    age_ms: int | None, timeout_ms: int, is_fine: bool
) -> None:
    access: Any = Asked(transaction(age_ms, timeout_ms))
    (check,) = asyncio.run(doctor._producers(access, NOW_MS))
    if is_fine:
        assert check == Check("producers", True, "1 transactions are open, none for long")
    else:
        seconds = (age_ms or 0) / 1000
        text = f"the transaction of t holds back readers for {seconds:.0f} s"
        assert check == Check("producers", False, text, "ottla txn describe t")


# Network


def network_of(*events: Any) -> list[Check]:
    return list(doctor._network(journal(*events)))


def test_without_a_journal_nothing_is_known_of_the_network() -> None:
    (check,) = doctor._network(JournalView())
    assert check == Check("network", True, "not known: the cluster keeps no journal, or you may not read it")


def test_clients_over_their_quotas_are_named_at_most_three() -> None:
    throttled = [event(1, "throttled", f"client/{name}", ms=1, quota="q") for name in "dcbadd"]
    assert network_of(*throttled) == [
        Check("network", False, "clients are over their quotas: a, b, c", "ottla why slow GROUP")
    ]


def test_ten_slow_syncs_are_a_disk_to_look_at() -> None:
    assert network_of(event(1, "sync-slow", count=4), event(2, "sync-slow", count=5))[0].is_fine
    assert network_of(event(1, "sync-slow", count=4), event(2, "sync-slow", count=6)) == [
        Check("network", False, "10 syncs to disk took more than 131 ms", "look at the disk")
    ]


# The page


def test_areas_come_in_the_order_that_operators_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter(["before", "after"])
    asked: list[Any] = []

    async def look(_access: Any) -> Any:
        return next(looks)

    async def with_ages(_access: Any, seen: Any) -> Any:
        assert seen == ("before", "after")
        return SimpleNamespace(groups=(group(0),))

    old = event(NOW_MS - 300_001, "request-refused", "client/a@h", api="fetch", error="X", count=1)

    async def read_journal(_access: Any) -> JournalView:
        return journal(old)

    async def sleep(seconds: float) -> None:
        asked.append(seconds)

    monkeypatch.setattr(doctor, "look", look)
    monkeypatch.setattr(doctor, "with_ages", with_ages)
    monkeypatch.setattr(doctor, "with_speeds", lambda *seen: seen)
    monkeypatch.setattr(doctor, "read_journal", read_journal)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    access: Any = Asked(a=(part(0),))
    checks = asyncio.run(examine(access, NOW_MS))
    assert [check.area for check in checks] == ["lag", "members", "brokers", "producers", "network"]
    assert all(check.is_fine and check.next_step is None for check in checks)
    assert asked == [2.0]
