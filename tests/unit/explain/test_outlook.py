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
    records_deleted_unread,
    retention_of,
    say_outlook,
    seconds_to_deletion,
    seconds_to_zero,
    total,
    total_speed,
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


def test_what_is_not_known_of_retention_sets_no_limit() -> None:
    by_time = Retention(time_ms=60_000)
    assert seconds_to_deletion(moving(5, 0, 0, retention=by_time), now_ms=0) is None
    by_size = Retention(size_bytes=1_000)
    still = moving(50, 9, 0, retention=by_size, record_bytes=10.0)
    assert seconds_to_deletion(still, now_ms=0) is None, "nothing is written that could displace it"
    assert seconds_to_deletion(replace(still, velocity=None), now_ms=0) is None
    unknown = replace(still, lag=PartitionLag(WHERE, None, 0, None, None, None))
    assert seconds_to_deletion(unknown, now_ms=0) is None


def test_what_is_due_already_is_due_now() -> None:
    old = moving(5, 0, 1, retention=Retention(time_ms=10), oldest_unread_ms=0)
    assert seconds_to_deletion(old, now_ms=5_000) == 0.0
    large = moving(500, 0, 1, retention=Retention(size_bytes=10), record_bytes=1.0)
    assert seconds_to_deletion(large, now_ms=0) == 0.0


@pytest.mark.parametrize(
    ("committed", "start", "deleted"), [(3, 5, 2), (5, 5, 0), (7, 5, 0), (None, 5, 0), (3, None, 0)]
)
def test_records_that_were_deleted_unread_are_counted(
    committed: int | None, start: int | None, deleted: int
) -> None:
    assert records_deleted_unread(PartitionLag(WHERE, committed, start, 9, None, None)) == deleted


def test_speeds_add_up_as_far_as_they_are_known() -> None:
    still = replace(moving(1, 1, 1), velocity=None)
    assert total_speed([moving(1, 2, 3), still, moving(1, 4, 5)]) == Velocity(6, 8)
    assert total_speed([still]) is None
    assert say_outlook([still]) is None
    assert seconds_to_zero([still]) is None
    assert seconds_to_zero([]) == 0.0


def test_a_compacted_topic_that_also_deletes_has_a_retention() -> None:
    assert retention_of({"cleanup.policy": "compact,delete", "retention.ms": "0"}) == Retention(0, None)
    assert retention_of({"retention.ms": None, "retention.bytes": "7"}) == Retention(None, 7)


@pytest.mark.parametrize(
    ("now", "then"),
    [(look(1, None), look(1, 1)), (look(1, 1), look(1, None))],
)
def test_an_end_that_is_not_known_has_no_velocity(
    now: tuple[PartitionLag, ...], then: tuple[PartitionLag, ...]
) -> None:
    assert velocities(then, now, 1.0) == {}
