"""A transaction is whole or it is not committed, and whatever cuts a call off, the producer can go on."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.client.errors import BrokerError, ClientError, ConnectionLost
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.settings import ProducerSettings
from ottla.client.producer.transactions import Transactions, TransactionState, WrongTransactionState
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

WHERE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


class Coordinator:
    """Takes everything, unless `hook` says otherwise. `asked` has the requests."""

    def __init__(self, *, is_v2: bool) -> None:
        self.finalized_features = {"transaction.version": 2 if is_v2 else 1}
        self.asked: list[Any] = []
        self.epoch = -1
        self.hook: Callable[[Any], Awaitable[Any]] | None = None
        self._is_v2 = is_v2

    # As a cluster

    async def retry(self, once: Callable[[], Awaitable[Any]]) -> Any:
        return await once()

    async def coordinator(self, _kind: int, _key: str) -> int:
        return 0

    def forget_coordinator(self, _kind: int, _key: str) -> None:
        pass

    async def connection(self, _node_id: int) -> "Coordinator":
        return self

    async def any_connection(self) -> "Coordinator":
        return self

    # As a connection

    def version_for(self, _kind: type[Any], at_most: int | None = None) -> int:
        return 5 if at_most is None else at_most

    async def ask(self, request: Any, _version: int | None = None) -> Any:
        self.asked.append(request)
        if self.hook is not None and (answer := await self.hook(request)) is not None:
            return answer
        if isinstance(request, InitProducerIdRequest):
            self.epoch += 1
            return InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch)
        if isinstance(request, AddPartitionsToTxnRequest):
            return AddPartitionsToTxnResponse()
        assert isinstance(request, EndTxnRequest)
        self.epoch += self._is_v2
        return EndTxnResponse(producer_id=7 if self._is_v2 else -1, producer_epoch=self.epoch)

    def kinds(self) -> list[str]:
        return [
            type(ask).__name__.removesuffix("Request")
            + (f" {'commit' if ask.committed else 'abort'}" if isinstance(ask, EndTxnRequest) else "")
            for ask in self.asked
        ]


def run(scene: Callable[[Transactions, Coordinator], Awaitable[None]], *, is_v2: bool = True) -> None:
    async def play() -> None:
        coordinator = Coordinator(is_v2=is_v2)
        settings = ProducerSettings.of({"bootstrap.servers": "nowhere:1", "transactional.id": "id"})
        transactions = Transactions(coordinator, settings, ProducerIdentity())  # type: ignore[arg-type]
        await transactions.initialize()
        coordinator.asked.clear()
        transactions.begin()
        await scene(transactions, coordinator)

    asyncio.run(play())


async def one_more(transactions: Transactions, coordinator: Coordinator) -> None:
    """Go through another transaction, to show that the producer can."""
    coordinator.hook = None
    transactions.begin()
    assert await transactions.may_send(WHERE)
    await transactions.end(commit=True, number=transactions.number)
    assert transactions.state is TransactionState.READY


@pytest.mark.parametrize("is_v2", [False, True])
def test_a_transaction_without_one_of_its_records_cannot_be_committed(is_v2: bool) -> None:
    async def scene(transactions: Transactions, coordinator: Coordinator) -> None:
        assert await transactions.may_send(WHERE)
        transactions.failed(ClientError("one was too large"), fatal=False)
        assert not await transactions.may_send(WHERE)
        with pytest.raises(WrongTransactionState, match="one was too large"):
            await transactions.end(commit=True, number=transactions.number)
        await transactions.end(commit=False, number=transactions.number)
        await one_more(transactions, coordinator)

    run(scene, is_v2=is_v2)


def test_a_record_that_fails_while_the_commit_flushes_keeps_it_from_being_asked_for() -> None:
    async def scene(transactions: Transactions, coordinator: Coordinator) -> None:
        assert await transactions.may_send(WHERE)
        transactions.begin_end(commit=True)
        transactions.failed(ClientError("one timed out"), fatal=False)
        with pytest.raises(WrongTransactionState, match="one timed out"):
            await transactions.end(commit=True, number=transactions.number)
        await transactions.end(commit=False, number=transactions.number)
        assert coordinator.kinds() == ["EndTxn abort"]

    run(scene)


def test_before_version_2_a_transaction_with_a_failure_is_followed_by_a_new_epoch() -> None:
    async def scene(transactions: Transactions, coordinator: Coordinator) -> None:
        assert await transactions.may_send(WHERE)
        transactions.failed(ClientError("one was dropped"), fatal=False)
        await transactions.end(commit=False, number=transactions.number)
        assert coordinator.kinds() == ["AddPartitionsToTxn", "EndTxn abort", "InitProducerId"]
        assert (coordinator.asked[-1].producer_id, coordinator.asked[-1].producer_epoch) == (7, 0)
        await one_more(transactions, coordinator)
        assert coordinator.asked[-1].producer_epoch == 1

    run(scene, is_v2=False)


def test_before_version_2_an_abort_that_drops_numbered_batches_is_followed_by_a_new_epoch() -> None:
    async def scene(transactions: Transactions, coordinator: Coordinator) -> None:
        assert await transactions.may_send(WHERE)
        transactions.begin_end(commit=False)
        transactions.left_gap()
        await transactions.end(commit=False, number=transactions.number)
        assert coordinator.kinds()[-1] == "InitProducerId"

    run(scene, is_v2=False)


@pytest.mark.parametrize("is_v2", [False, True])
@pytest.mark.parametrize("commit", [False, True])
def test_an_end_that_is_cut_off_is_gone_on_with(is_v2: bool, commit: bool) -> None:
    async def never(_request: Any) -> None:
        await asyncio.get_running_loop().create_future()

    async def scene(transactions: Transactions, coordinator: Coordinator) -> None:
        assert await transactions.may_send(WHERE)
        coordinator.hook = never
        ending = asyncio.create_task(transactions.end(commit, transactions.number))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)
        with pytest.raises(WrongTransactionState, match="again"):
            transactions.begin()
        with pytest.raises(WrongTransactionState, match="again"):
            await transactions.end(not commit, transactions.number)
        coordinator.hook = None
        await transactions.end(commit, transactions.number)
        await one_more(transactions, coordinator)

    run(scene, is_v2=is_v2)


@pytest.mark.parametrize("is_v2", [False, True])
def test_a_commit_whose_answer_is_lost_is_asked_for_again_and_never_aborted(is_v2: bool) -> None:
    async def lost(_request: Any) -> None:
        raise ConnectionLost("the connection broke")

    async def scene(transactions: Transactions, coordinator: Coordinator) -> None:
        assert await transactions.may_send(WHERE)
        coordinator.hook = lost
        with pytest.raises(ConnectionLost):
            await transactions.end(commit=True, number=transactions.number)
        assert not transactions.may_abort
        coordinator.hook = None
        await transactions.end(commit=True, number=transactions.number)
        await one_more(transactions, coordinator)

    run(scene, is_v2=is_v2)


def test_a_commit_that_was_not_asked_for_yet_may_become_an_abort() -> None:
    async def scene(transactions: Transactions, coordinator: Coordinator) -> None:
        assert await transactions.may_send(WHERE)
        transactions.begin_end(commit=True)
        await transactions.end(commit=False, number=transactions.number)
        assert coordinator.kinds() == ["EndTxn abort"]

    run(scene)


@pytest.mark.parametrize("is_v2", [False, True])
def test_an_abort_that_the_coordinator_does_not_understand_ends_in_a_new_epoch(is_v2: bool) -> None:
    async def refuse(request: Any) -> Any:
        is_end = isinstance(request, EndTxnRequest)
        return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE) if is_end else None

    async def scene(transactions: Transactions, coordinator: Coordinator) -> None:
        assert await transactions.may_send(WHERE)
        coordinator.hook = refuse
        with pytest.raises(BrokerError, match="INVALID_TXN_STATE"):
            await transactions.end(commit=True, number=transactions.number)
        await transactions.end(commit=False, number=transactions.number)
        await one_more(transactions, coordinator)

    run(scene, is_v2=is_v2)


@pytest.mark.parametrize("asks", [AddPartitionsToTxnRequest, AddOffsetsToTxnRequest])
def test_a_transaction_that_the_coordinator_may_have_begun_is_ended(asks: type[Any]) -> None:
    async def lost(request: Any) -> None:
        if isinstance(request, asks):
            raise ConnectionLost("the connection broke")

    async def scene(transactions: Transactions, coordinator: Coordinator) -> None:
        coordinator.hook = lost
        adds_partition = asks is AddPartitionsToTxnRequest
        cut_off = (
            transactions.may_send(WHERE) if adds_partition else transactions.send_offsets({WHERE: 1}, "g")
        )
        with pytest.raises(ConnectionLost):
            await cut_off
        await transactions.end(commit=False, number=transactions.number)
        assert "EndTxn abort" in coordinator.kinds()

    run(scene, is_v2=False)


def test_several_partitions_are_added_at_once_and_the_telling_error_is_told() -> None:
    def result(partition: int, code: ErrorCode) -> AddPartitionsToTxnPartitionResult:
        return AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)

    results = (
        result(0, ErrorCode.OPERATION_NOT_ATTEMPTED),
        result(1, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    )
    answer = AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=(AddPartitionsToTxnTopicResult(name="t", results_by_partition=results),)
    )

    async def refuse(_request: Any) -> Any:
        return answer

    async def scene(transactions: Transactions, coordinator: Coordinator) -> None:
        coordinator.hook = refuse
        with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
            await transactions.admit([WHERE, OTHER])
        [request] = coordinator.asked
        assert request.v3_and_below_topics[0].partitions == (0, 1)

    run(scene, is_v2=False)
