"""Speaking the transaction protocol by hand, request by request, in any version, with any broker.

A producer here is in no way careful: it sends what a test tells it to, also what no client would.
"""

import time
from typing import Any, Self

from tests.support.data_plane import Asks, batch_of, fetch_request

from ottla.model.uuid import Uuid
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

_TRIES = 200
_PAUSE_S = 0.05
_COME_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)


class TransactionTalk:
    """One instance of a transactional producer: its id and epoch, and a connection."""

    def __init__(
        self,
        client: Asks,
        transactional_id: str,
        topics: dict[str, Uuid],
        version: int = 2,
        prefix: str = "",
    ) -> None:
        """`version` is that of transactions: 2 is what clients since 4.0 speak. Topics have a `prefix`."""
        self.prefix = prefix
        self.client = client
        self.transactional_id = transactional_id
        self.topics = topics
        self.version = version
        self.producer_id = -1
        self.producer_epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def twin(self) -> Self:
        """Return another instance with the same id and epoch: a zombie, from now on."""
        other = type(self)(self.client, self.transactional_id, self.topics, self.version, self.prefix)
        other.producer_id, other.producer_epoch = self.producer_id, self.producer_epoch
        other.sequences = dict(self.sequences)
        return other

    def find_coordinator(self) -> None:
        for kind, key in ((1, self.transactional_id), (0, "some-group")):
            for _ in range(_TRIES):
                answer = self.client.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,)), 4)
                if answer.coordinators[0].error_code is ErrorCode.NONE:
                    break
                time.sleep(_PAUSE_S)

    def init(
        self, timeout_ms: int = 60_000, expected: tuple[int, int] = (-1, -1), version: int = 5
    ) -> InitProducerIdResponse:
        """Become the instance; keep the id and epoch if there are some."""
        ask = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        answer: InitProducerIdResponse = self._insist(ask, version, lambda reply: reply.error_code)
        if answer.error_code is ErrorCode.NONE:
            self._become(answer.producer_id, answer.producer_epoch)
        return answer

    def add(self, topic: str, partition: int = 0, version: int = 3) -> ErrorCode:
        """Announce a partition, as clients of version 1 do."""
        ask = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=self.prefix + topic, partitions=(partition,)),),
        )
        return self._insist_code(ask, version, _added_code)

    def write(self, topic: str, value: bytes, partition: int = 0, version: int | None = None) -> ErrorCode:
        """Write a record in the transaction, announced if need be."""
        if version is None:
            version = 12 if self.version == 2 else 11
        sequence = self.sequences.get((topic, partition), 0)
        answer = self._insist(
            self.write_request(topic, value, partition, sequence, version), version, _produced_code
        )
        code = _produced_code(answer)
        if code is ErrorCode.NONE:
            self.sequences[topic, partition] = sequence + 1
        return code

    def write_request(
        self, topic: str, value: bytes, partition: int, sequence: int, version: int
    ) -> ProduceRequest:
        """Make the request that writes one record."""
        batch = batch_of(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = (PartitionProduceData(partition_index=partition, records=memoryview(batch)),)
        named = (
            TopicProduceData(topic_id=self.topics[self.prefix + topic], partition_data=data)
            if version >= 13
            else TopicProduceData(name=self.prefix + topic, partition_data=data)
        )
        return ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout_ms=30_000, topic_data=(named,)
        )

    def add_offsets(self, group: str, version: int = 3) -> ErrorCode:
        ask = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=group,
        )
        return self._insist_code(ask, version, lambda reply: reply.error_code)

    def commit_offset(
        self, group: str, topic: str, offset: int, version: int | None = None, **member: Any
    ) -> ErrorCode:
        if version is None:
            version = 5 if self.version == 2 else 3
        part = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        ask = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            topics=(TxnOffsetCommitRequestTopic(name=self.prefix + topic, partitions=(part,)),),
            **member,
        )
        return self._insist_code(ask, version, lambda reply: reply.topics[0].partitions[0].error_code)

    def end(self, committed: bool, version: int | None = None, takes: bool = True) -> EndTxnResponse:
        """Commit or abort; go on with what the answer gives, if it `takes` it."""
        if version is None:
            version = 5 if self.version == 2 else 4
        answer: EndTxnResponse = self._insist(
            self.end_request(committed), version, lambda reply: reply.error_code
        )
        if takes and answer.error_code is ErrorCode.NONE and answer.producer_id >= 0:
            self._become(answer.producer_id, answer.producer_epoch)
        return answer

    def end_request(self, committed: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=committed,
        )

    def committed_values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        """Return what a reader of committed records sees, after the aborted are taken out."""
        ask = fetch_request(self.prefix + topic, 0, partition, isolation_level=1)
        data = self.client.ask(ask, 12).responses[0].partitions[0]

        aborted = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
        open_aborts: set[int] = set()
        values: list[bytes | None] = []
        for batch in iter_batches(memoryview(data.records or b"")):
            if batch.base_offset >= data.last_stable_offset:
                break
            while aborted and aborted[0][0] <= batch.last_offset:
                open_aborts.add(aborted.pop(0)[1])
            header = batch.header
            if header.is_control:
                open_aborts.discard(header.producer_id)
            elif header.producer_id not in open_aborts:
                values += [record.value for record in iter_batch_records(batch)]
        return values

    def stable_offset(self, topic: str, partition: int = 0) -> int:
        """Return the last stable offset, as ListOffsets tells it."""
        part = ListOffsetsPartition(partition_index=partition, timestamp=-1)
        ask = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=1,
            topics=(ListOffsetsTopic(name=self.prefix + topic, partitions=(part,)),),
        )
        offset: int = self.client.ask(ask, 7).topics[0].partitions[0].offset
        return offset

    def _become(self, producer_id: int, producer_epoch: int) -> None:
        if (producer_id, producer_epoch) != (self.producer_id, self.producer_epoch):
            self.sequences.clear()
        self.producer_id, self.producer_epoch = producer_id, producer_epoch

    def _insist(self, ask: Any, version: int, code_of: Any) -> Any:
        for _ in range(_TRIES):
            answer = self.client.ask(ask, version)
            if code_of(answer) not in _COME_AGAIN:
                return answer
            time.sleep(_PAUSE_S)
        raise AssertionError(f"{code_of(answer).name} for ever")

    def _insist_code(self, ask: Any, version: int, code_of: Any) -> ErrorCode:
        code: ErrorCode = code_of(self._insist(ask, version, code_of))
        return code


def _added_code(answer: Any) -> ErrorCode:
    code: ErrorCode = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
    return code


def _produced_code(answer: Any) -> ErrorCode:
    code: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return code
