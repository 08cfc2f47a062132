"""Committed offsets, and those of open transactions: whatever the order, the log decides."""

import pytest

from ottla.coordination.group.offsets.committed_offsets import (
    CommittedOffsets,
    commit_record,
    offset_tombstone,
)
from ottla.coordination.runtime.decision import ProducerIdentity
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID

HERE = TopicPartition("orders", 0)
THERE = TopicPartition("orders", 1)
PRODUCER = ProducerIdentity(1, 0)
OTHER = ProducerIdentity(2, 0)


def commit(
    offsets: CommittedOffsets,
    offset: int | None,
    producer: ProducerIdentity | None = None,
    where: TopicPartition = HERE,
    group: str = "g",
) -> None:
    if offset is None:
        record = offset_tombstone(group, where)
    else:
        record = commit_record(group, where.topic, where.partition, offset, 0, "", 1, -1, ZERO_UUID)
    offsets.replay(record.key, record.value, producer)


def found(offsets: CommittedOffsets, where: TopicPartition = HERE, group: str = "g") -> int | None:
    committed = offsets.find(group, where)
    return None if committed is None else committed.offset


def test_the_last_commit_counts() -> None:
    offsets = CommittedOffsets()
    for offset in (5, 9, 3):
        commit(offsets, offset)
    assert found(offsets) == 3
    assert found(offsets, THERE) is None
    assert found(offsets, group="another") is None
    assert len(offsets) == 1


def test_a_tombstone_takes_an_offset_away() -> None:
    offsets = CommittedOffsets()
    commit(offsets, 5)
    commit(offsets, None)
    assert found(offsets) is None
    assert list(offsets.groups()) == []
    commit(offsets, None)


@pytest.mark.parametrize(("is_commit", "expected"), [(True, 7), (False, 5)])
def test_a_transaction_counts_when_it_ends(is_commit: bool, expected: int) -> None:
    offsets = CommittedOffsets()
    commit(offsets, 5)
    commit(offsets, 7, PRODUCER)
    assert found(offsets) == 5
    assert offsets.is_unstable("g", HERE)
    assert not offsets.is_unstable("g", THERE)
    assert offsets.pending_of("g") == (HERE,)
    offsets.replay_marker(PRODUCER, is_commit)
    assert found(offsets) == expected
    assert not offsets.is_unstable("g", HERE)
    assert not offsets.has_pending("g")


def test_a_later_plain_commit_is_not_overwritten_when_a_transaction_ends() -> None:
    offsets = CommittedOffsets()
    commit(offsets, 7, PRODUCER)
    commit(offsets, 8)
    offsets.replay_marker(PRODUCER, True)
    assert found(offsets) == 8


def test_of_two_transactions_the_later_commit_counts_whichever_ends_last() -> None:
    offsets = CommittedOffsets()
    commit(offsets, 1, PRODUCER)
    commit(offsets, 2, OTHER)
    offsets.replay_marker(OTHER, True)
    assert offsets.is_unstable("g", HERE), "one is still open"
    offsets.replay_marker(PRODUCER, True)
    assert found(offsets) == 2
    assert not offsets.has_pending("g")


def test_a_transaction_may_hold_offsets_of_several_groups() -> None:
    offsets = CommittedOffsets()
    commit(offsets, 1, PRODUCER, group="a")
    commit(offsets, 2, PRODUCER, group="b")
    commit(offsets, 3, PRODUCER, THERE, group="b")
    offsets.replay_marker(PRODUCER, True)
    assert [found(offsets, HERE, "a"), found(offsets, HERE, "b"), found(offsets, THERE, "b")] == [1, 2, 3]


def test_a_deletion_also_ends_what_open_transactions_hold() -> None:
    offsets = CommittedOffsets()
    commit(offsets, 1)
    commit(offsets, 2, PRODUCER)
    commit(offsets, 3, PRODUCER, THERE)
    commit(offsets, None)
    assert not offsets.is_unstable("g", HERE)
    assert offsets.is_unstable("g", THERE)
    offsets.replay_marker(PRODUCER, True)
    assert found(offsets) is None
    assert found(offsets, THERE) == 3


def test_a_marker_of_a_stranger_changes_nothing() -> None:
    offsets = CommittedOffsets()
    commit(offsets, 1, PRODUCER)
    offsets.replay_marker(OTHER, True)
    assert found(offsets) is None
    assert offsets.has_pending("g")


def test_offsets_of_a_topic_are_found_in_all_groups_and_transactions() -> None:
    offsets = CommittedOffsets()
    commit(offsets, 1, group="a")
    commit(offsets, 2, PRODUCER, THERE, group="b")
    commit(offsets, 3, where=TopicPartition("other", 0), group="c")
    assert [(group, where) for group, where, _ in offsets.all_of_topic("orders")] == [
        ("a", HERE),
        ("b", THERE),
    ]


def test_records_have_the_version_that_kafka_writes() -> None:
    assert commit_record("g", "orders", 0, 5, 3, "note", 10, -1, ZERO_UUID).value_version == 4
    assert commit_record("g", "orders", 0, 5, 3, "note", 10, 99, ZERO_UUID).value_version == 1
    assert offset_tombstone("g", HERE).value is None
