"""Committed offsets, and those of open transactions: whatever the order, the log decides."""

import pytest

from ottla.coordination.group.offsets.ledger import (
    OffsetLedger,
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
    ledger: OffsetLedger,
    offset: int | None,
    producer: ProducerIdentity | None = None,
    where: TopicPartition = HERE,
    group: str = "g",
) -> None:
    if offset is None:
        record = offset_tombstone(group, where)
    else:
        record = commit_record(group, where.topic, where.partition, offset, 0, "", 1, -1, ZERO_UUID)
    ledger.replay(record.key, record.value, producer)


def found(ledger: OffsetLedger, where: TopicPartition = HERE, group: str = "g") -> int | None:
    committed = ledger.find(group, where)
    return None if committed is None else committed.offset


def test_the_last_commit_counts() -> None:
    ledger = OffsetLedger()
    for offset in (5, 9, 3):
        commit(ledger, offset)
    assert found(ledger) == 3
    assert found(ledger, THERE) is None
    assert found(ledger, group="another") is None
    assert len(ledger) == 1


def test_a_tombstone_takes_an_offset_away() -> None:
    ledger = OffsetLedger()
    commit(ledger, 5)
    commit(ledger, None)
    assert found(ledger) is None
    assert list(ledger.groups()) == []
    commit(ledger, None)


@pytest.mark.parametrize(("is_commit", "expected"), [(True, 7), (False, 5)])
def test_a_transaction_counts_when_it_ends(is_commit: bool, expected: int) -> None:
    ledger = OffsetLedger()
    commit(ledger, 5)
    commit(ledger, 7, PRODUCER)
    assert found(ledger) == 5
    assert ledger.is_unstable("g", HERE)
    assert not ledger.is_unstable("g", THERE)
    assert ledger.pending_of("g") == (HERE,)
    ledger.replay_marker(PRODUCER, is_commit)
    assert found(ledger) == expected
    assert not ledger.is_unstable("g", HERE)
    assert not ledger.has_pending("g")


def test_a_later_plain_commit_is_not_overwritten_when_a_transaction_ends() -> None:
    ledger = OffsetLedger()
    commit(ledger, 7, PRODUCER)
    commit(ledger, 8)
    ledger.replay_marker(PRODUCER, True)
    assert found(ledger) == 8


def test_of_two_transactions_the_later_commit_counts_whichever_ends_last() -> None:
    ledger = OffsetLedger()
    commit(ledger, 1, PRODUCER)
    commit(ledger, 2, OTHER)
    ledger.replay_marker(OTHER, True)
    assert ledger.is_unstable("g", HERE), "one is still open"
    ledger.replay_marker(PRODUCER, True)
    assert found(ledger) == 2
    assert not ledger.has_pending("g")


def test_a_transaction_may_hold_offsets_of_several_groups() -> None:
    ledger = OffsetLedger()
    commit(ledger, 1, PRODUCER, group="a")
    commit(ledger, 2, PRODUCER, group="b")
    commit(ledger, 3, PRODUCER, THERE, group="b")
    ledger.replay_marker(PRODUCER, True)
    assert [found(ledger, HERE, "a"), found(ledger, HERE, "b"), found(ledger, THERE, "b")] == [1, 2, 3]


def test_a_deletion_also_ends_what_open_transactions_hold() -> None:
    ledger = OffsetLedger()
    commit(ledger, 1)
    commit(ledger, 2, PRODUCER)
    commit(ledger, 3, PRODUCER, THERE)
    commit(ledger, None)
    assert not ledger.is_unstable("g", HERE)
    assert ledger.is_unstable("g", THERE)
    ledger.replay_marker(PRODUCER, True)
    assert found(ledger) is None
    assert found(ledger, THERE) == 3


def test_a_marker_of_a_stranger_changes_nothing() -> None:
    ledger = OffsetLedger()
    commit(ledger, 1, PRODUCER)
    ledger.replay_marker(OTHER, True)
    assert found(ledger) is None
    assert ledger.has_pending("g")


def test_offsets_of_a_topic_are_found_in_all_groups_and_transactions() -> None:
    ledger = OffsetLedger()
    commit(ledger, 1, group="a")
    commit(ledger, 2, PRODUCER, THERE, group="b")
    commit(ledger, 3, where=TopicPartition("other", 0), group="c")
    assert [(group, where) for group, where, _ in ledger.all_of_topic("orders")] == [
        ("a", HERE),
        ("b", THERE),
    ]


def test_records_have_the_version_that_kafka_writes() -> None:
    assert commit_record("g", "orders", 0, 5, 3, "note", 10, -1, ZERO_UUID).value_version == 4
    assert commit_record("g", "orders", 0, 5, 3, "note", 10, 99, ZERO_UUID).value_version == 1
    assert offset_tombstone("g", HERE).value is None
