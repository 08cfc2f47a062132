"""How far behind a group is, and how fast it goes."""

from dataclasses import replace
from typing import Any

import pytest

from ottla.client.admin.group_offsets import PartitionLag
from ottla.explain.lag.outlook import (
    Bounds,
    PartitionLook,
    Retention,
    Velocity,
    retention_of,
    say_outlook,
    seconds_to_deletion,
    seconds_to_zero,
    total,
    velocities,
)
from ottla.model.ids import TopicPartition

WHERE = TopicPartition("t", 0)


def look(committed: int | None, end: int | None) -> tuple[PartitionLag, ...]:
    return (PartitionLag(WHERE, committed, 0, end, None, None),)


@pytest.mark.parametrize(
    ("lag", "label"),
    [(None, None), (0, "normal"), (99, "normal"), (100, "caution"), (1_000, "warning"), (10_000, "critical")],
)
def test_labels_begin_where_they_should(lag: int | None, label: str | None) -> None:
    assert Bounds().label(lag) == label


def test_velocity_is_records_by_time() -> None:
    assert velocities(look(10, 20), look(30, 25), 2.0) == {WHERE: Velocity(reads=10.0, writes=2.5)}


@pytest.mark.parametrize(("before", "after"), [(look(None, 1), look(1, 1)), ((), look(1, 1))])
def test_what_was_not_known_before_has_no_velocity(
    before: tuple[PartitionLag, ...], after: tuple[PartitionLag, ...]
) -> None:
    assert velocities(before, after, 1.0) == {}


def test_unknown_lags_do_not_count() -> None:
    assert total([1, None, 2]) == 3
    assert total([None]) is None


def moving(lag: int, reads: float, writes: float, **facts: Any) -> PartitionLook:
    return PartitionLook(PartitionLag(WHERE, 0, 0, lag, lag, None), velocity=Velocity(reads, writes), **facts)


def test_the_slowest_partition_decides_when_a_group_has_caught_up() -> None:
    assert seconds_to_zero([moving(100, 20, 10), moving(90, 40, 10), moving(0, 0, 0)]) == 10
    assert seconds_to_zero([moving(100, 20, 10), moving(1, 5, 5)]) is None


@pytest.mark.parametrize(
    ("look", "said"),
    [
        (moving(0, 0, 0), "caught up"),
        (moving(5, 9, 3), "catching up"),
        (moving(5, 3, 9), "falling behind"),
        (moving(5, 3, 3), "keeping up"),
        (moving(5, 0, 0), "not reading"),
    ],
)
def test_an_outlook_in_words(look: PartitionLook, said: str) -> None:
    assert say_outlook([look]) == said


def test_the_nearer_limit_of_retention_counts() -> None:
    retention = Retention(time_ms=60_000, size_bytes=1_000)
    unread = moving(50, 0, 10, retention=retention, oldest_unread_ms=20_000, record_bytes=10.0)
    assert seconds_to_deletion(unread, now_ms=30_000) == 5.0
    assert seconds_to_deletion(replace(unread, record_bytes=None), now_ms=30_000) == 50.0
    assert seconds_to_deletion(moving(0, 0, 0, retention=retention), now_ms=0) is None


def test_retention_is_read_from_configs() -> None:
    assert retention_of({"cleanup.policy": "delete", "retention.ms": "5", "retention.bytes": "-1"}) == (
        Retention(5, None)
    )
    assert retention_of({"cleanup.policy": "compact", "retention.ms": "5"}) == Retention()
