"""The coordinator over a simulated log: fencing, waiting, expiry, worn-out epochs."""

from typing import Any

import pytest
from tests.simulation.transactions.world import PARTITIONS, SETTINGS, World

from ottla.coordination.transaction.coordinator import ProducerIdResult, TransactionCoordinator
from ottla.coordination.transaction.decide import Identity
from ottla.coordination.transaction.listing import Filters
from ottla.coordination.transaction.status import TransactionStatus
from ottla.coordination.transaction.transaction import EPOCH_MAX, transaction_record
from ottla.wire.error_code import ErrorCode

A, B = PARTITIONS[:2]


class Node(World):
    """A world in which one thing happens after the other."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.start()

    @property
    def serving(self) -> TransactionCoordinator:
        assert self.coordinator is not None
        return self.coordinator

    def ask(self, method: Any, *arguments: Any, **settings: Any) -> Any:
        """Call a method of the coordinator, and wait for the answer."""
        answers: list[Any] = []
        method(*arguments, answers.append, **settings)
        self.run(self.now_ms() + 200)
        (answer,) = answers
        return answer

    def init(self, timeout_ms: int = 60_000, expected: Identity | None = None) -> ProducerIdResult:
        given: ProducerIdResult = self.ask(self.serving.init_producer_id, "t", timeout_ms, expected)
        return given

    def add(self, who: Identity, *partitions: Any) -> ErrorCode:
        code: ErrorCode = self.ask(
            self.serving.add_partitions, "t", who, frozenset(partitions), 2, waits=True
        )
        return code

    def end(self, who: Identity, committed: bool = True) -> ProducerIdResult:
        given: ProducerIdResult = self.ask(self.serving.end, "t", who, committed, 2)
        return given

    def statuses(self) -> list[TransactionStatus]:
        """Return the states that the log has records of, in order."""
        return [
            TransactionStatus(record.value.transaction_status)
            for batch in self.log.batches()
            for record in batch.records
            if record.value is not None
        ]

    def names(self) -> list[str]:
        listing = self.ask(self.serving.list, Filters())
        return [one.transactional_id for one in listing.transactions]

    def put(self, **fields: Any) -> None:
        """Change the state by a record."""
        shard = self.serving.shards.get(0)
        assert shard is not None
        before = shard.state.transactions["t"]
        shard.state.replay((transaction_record(before._replace(**fields), 2),), None)


@pytest.fixture
def node() -> Node:
    return Node()


def identity(given: ProducerIdResult) -> Identity:
    return Identity(given.producer_id, given.producer_epoch)


def test_new_instance_aborts_what_the_old_one_left_open(node: Node) -> None:
    old = identity(node.init())
    assert node.add(old, A) is ErrorCode.NONE
    assert node.init().error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    given = node.init()
    assert (given.error_code, given.producer_epoch) == (ErrorCode.NONE, 2)
    assert [entry.is_commit for entry in node.partitions[A].entries] == [False]
    assert node.add(old, A) is ErrorCode.PRODUCER_FENCED
    assert node.statuses() == [
        TransactionStatus.EMPTY,
        TransactionStatus.ONGOING,
        TransactionStatus.PREPARE_ABORT,
        TransactionStatus.COMPLETE_ABORT,
        TransactionStatus.EMPTY,
    ]


def test_stranger_is_refused_and_nothing_is_written(node: Node) -> None:
    stranger = Identity(node.init().producer_id, 7)
    written = node.statuses()
    assert node.add(stranger, A) is ErrorCode.PRODUCER_FENCED
    assert node.statuses() == written


def test_write_waits_until_the_transaction_before_is_complete(node: Node) -> None:
    who = identity(node.init())
    node.add(who, A)
    answers: list[ErrorCode] = []

    def go_on(given: ProducerIdResult) -> None:
        # The markers are not written yet.
        node.serving.add_partitions("t", identity(given), frozenset((B,)), 2, answers.append, waits=True)
        assert answers == []

    node.serving.end("t", who, True, 2, go_on)
    node.run(node.now_ms() + 300)
    assert answers == [ErrorCode.NONE]


def test_write_is_told_to_come_again_if_that_takes_too_long(node: Node) -> None:
    who = identity(node.init())
    node.add(who, A)
    node.write_markers = lambda *_: None  # type: ignore[method-assign]
    given = node.end(who)
    assert node.add(identity(given), B) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_transactions_that_time_out_together_are_aborted_in_the_order_in_which_they_began(node: Node) -> None:
    names = [f"transaction {number}" for number in range(8)]
    deadline_ms = node.now_ms() + 10_000
    for name in names:
        who = identity(node.ask(node.serving.init_producer_id, name, deadline_ms - node.now_ms() - 200, None))
        added = node.ask(node.serving.add_partitions, name, who, frozenset((A,)), 2, waits=True)
        assert added is ErrorCode.NONE
    node.run(deadline_ms + 1000)
    aborted = [
        record.key.transactional_id
        for batch in node.log.batches()
        for record in batch.records
        if record.value is not None and record.value.transaction_status == TransactionStatus.PREPARE_ABORT
    ]
    assert aborted == names


def test_transaction_that_lasts_too_long_is_aborted(node: Node) -> None:
    who = identity(node.init(timeout_ms=1000))
    node.add(who, A)
    node.run(node.now_ms() + 2000)
    assert [entry.is_commit for entry in node.partitions[A].entries] == [False]
    assert node.statuses()[-2:] == [TransactionStatus.PREPARE_ABORT, TransactionStatus.COMPLETE_ABORT]
    assert node.end(who).error_code is ErrorCode.INVALID_TXN_STATE


def test_worn_out_epochs_lead_to_another_id_and_the_retry_learns_of_it(node: Node) -> None:
    who = identity(node.init())
    node.put(producer_epoch=EPOCH_MAX - 1)
    last = Identity(who.producer_id, EPOCH_MAX - 1)
    assert node.add(last, A) is ErrorCode.NONE
    given = node.end(last)
    assert given.error_code is ErrorCode.NONE
    assert given.producer_id != who.producer_id
    assert given.producer_epoch == 0
    assert node.end(last) == given
    assert node.add(identity(given), B) is ErrorCode.NONE
    assert node.partitions[A].entries[0].producer_epoch == EPOCH_MAX


def test_id_that_nobody_uses_is_forgotten(node: Node) -> None:
    node.init()
    assert node.names() == ["t"]
    shard = node.serving.shards.get(0)
    assert shard is not None
    node.put(updated_ms=node.now_ms() - SETTINGS.id_expiration_ms)
    decision = shard.state._decide_expiry(node.now_ms())
    shard.write(lambda _: decision, lambda _: None, lambda _: None)
    node.run(node.now_ms() + 100)
    assert node.names() == []
    node.crash()
    node.run(node.now_ms() + 300)
    assert node.names() == []


def test_decided_outcome_is_carried_out_by_the_next_coordinator(node: Node) -> None:
    who = identity(node.init())
    node.add(who, A, B)
    write_markers, node.write_markers = node.write_markers, lambda *_: None  # type: ignore[method-assign]
    assert node.end(who).error_code is ErrorCode.NONE
    node.write_markers = write_markers  # type: ignore[method-assign]
    node.crash()
    node.run(node.now_ms() + 1000)
    for where in (A, B):
        assert [entry.is_commit for entry in node.partitions[where].entries] == [True]
    shard = node.serving.shards.get(0)
    assert shard is not None
    assert shard.state.transactions["t"].status is TransactionStatus.COMPLETE_COMMIT
