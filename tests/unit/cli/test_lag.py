"""How far behind a group is, and how fast it goes."""

import pytest

from ottla.cli.lag import Velocity, label_of, total, velocities
from ottla.client.admin.group_offsets import PartitionLag
from ottla.model.ids import TopicPartition

WHERE = TopicPartition("t", 0)


def look(committed: int | None, end: int | None) -> tuple[PartitionLag, ...]:
    return (PartitionLag(WHERE, committed, 0, end, None, None),)


@pytest.mark.parametrize(
    ("lag", "label"),
    [(None, None), (0, "normal"), (99, "normal"), (100, "caution"), (1_000, "warning"), (10_000, "critical")],
)
def test_labels_begin_where_they_should(lag: int | None, label: str | None) -> None:
    assert label_of(lag) == label


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
