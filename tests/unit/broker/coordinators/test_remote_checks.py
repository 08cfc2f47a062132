"""Another broker's coordinator is asked about many transactions at once, and again while it is early."""

from typing import Any

from tests.support.group_world import ManualClock
from tests.support.replicas import ManualScheduler

from ottla.broker.coordinators.remote_checks import RemoteChecks
from ottla.coordination.transaction.decide import Identity
from ottla.model.ids import TopicPartition
from ottla.runtime.connections.peer import Unanswered
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

A = TopicPartition("a", 0)
WHO = Identity(9, 1)


class World:
    """A broker to ask, which answers when it is told to."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.scheduler = ManualScheduler(self.clock)
        self.asked: list[tuple[AddPartitionsToTxnRequest, Any]] = []
        peer: Any = self
        self.checks = RemoteChecks(lambda _broker: peer, self.scheduler, lambda: 20)
        self.told: list[Any] = []

    def ask(self, request: Any, answered: Any) -> None:
        self.asked.append((request, answered))

    def check(self, transactional_id: str, adds: bool) -> None:
        self.checks.ask(2, transactional_id, WHO, frozenset((A,)), adds, self.told.append)

    def answer(self, code: ErrorCode) -> AddPartitionsToTxnRequest:
        request, answered = self.asked.pop(0)
        result = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code)
        topics = (AddPartitionsToTxnTopicResult(name="a", results_by_partition=(result,)),)
        answered(
            AddPartitionsToTxnResponse(
                results_by_transaction=tuple(
                    AddPartitionsToTxnResult(transactional_id=one.transactional_id, topic_results=topics)
                    for one in request.transactions
                )
            )
        )
        return request


def test_questions_share_requests() -> None:
    world = World()
    for number in range(3):
        world.check(f"t{number}", adds=number == 2)
    assert [one.transactional_id for one in world.answer(ErrorCode.NONE).transactions] == ["t0"]
    second = world.answer(ErrorCode.INVALID_TXN_STATE)
    assert [(one.transactional_id, one.verify_only) for one in second.transactions] == [
        ("t1", True),
        ("t2", False),
    ]
    refused = {A: ErrorCode.INVALID_TXN_STATE}
    assert world.told == [{A: ErrorCode.NONE}, refused, refused]


def test_a_partition_is_added_when_the_transaction_before_is_complete() -> None:
    world = World()
    world.check("t", adds=True)
    world.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert world.told == []
    world.clock.advance(20)
    world.scheduler.run_once()
    world.answer(ErrorCode.NONE)
    assert world.told == [{A: ErrorCode.NONE}]


def test_it_is_not_asked_for_ever() -> None:
    world = World()
    world.check("t", adds=True)
    for _ in range(6):
        world.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
        world.clock.advance(20)
        world.scheduler.run_once()
    assert world.told == [{A: ErrorCode.CONCURRENT_TRANSACTIONS}]


def test_a_broker_that_does_not_answer_or_refuses() -> None:
    world = World()
    world.check("t", adds=False)
    world.asked.pop()[1](Unanswered("gone"))
    world.check("t", adds=False)
    refusal = AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    world.asked.pop()[1](refusal)
    assert world.told == [{A: ErrorCode.NETWORK_EXCEPTION}, {A: ErrorCode.INVALID_TXN_STATE}]
