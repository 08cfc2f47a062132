"""Transactions: several records, and the offsets of what was read to make them, all or nothing.

States: UNINITIALIZED -> READY -> IN_TRANSACTION -> ENDING -> READY; FAILED until the open transaction is
aborted; FENCED for ever when another producer took the transactional id.

Transactions v2 (KIP-890) need no word to the coordinator before records go to a partition, and each end gives
the epoch for the next transaction. Which of the two it is, the cluster's finalized features say.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any

from ottla.client.cluster import GROUP, TRANSACTION, Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.group import GroupMetadata, OffsetAndMetadata
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.settings import ProducerSettings
from ottla.model.ids import TopicPartition
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

_LAST_CLIENT_VERSION_OF_ADD_PARTITIONS = 3
_LAST_V1_VERSION = 4
_FIRST_VERSION_WITH_MEMBER = 3
_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_FENCED = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


class TransactionState(Enum):
    """Where the producer is."""

    UNINITIALIZED = "not initialized"
    READY = "no transaction open"
    IN_TRANSACTION = "in a transaction"
    ENDING = "ending a transaction"
    FAILED = "the transaction must be aborted"
    FENCED = "another producer took the transactional id"


class WrongTransactionState(ClientError):
    """A call that the state of the transaction does not allow."""


class Fenced(ClientError):
    """Another producer with the same transactional id is alive: this one must stop."""


class Transactions:
    """The transactional side of a producer. Without a transactional id it lets everything through."""

    def __init__(self, cluster: Cluster, settings: ProducerSettings, identity: ProducerIdentity) -> None:
        self.transactional_id = settings.transactional_id
        self.is_v2 = False
        self.state = TransactionState.UNINITIALIZED
        self._cluster = cluster
        self._settings = settings
        self._identity = identity
        self._partitions: set[TopicPartition] = set()
        self._has_content = False
        self._error: ClientError | None = None

    async def initialize(self) -> None:
        """Get the id and epoch. An open transaction of an earlier life is aborted, its producer fenced."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._settings.transaction_timeout_ms,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
        )
        if self.transactional_id is None:
            answer = await self._cluster.retry(lambda: self._acquire_plain(request))
        else:
            answer = await self._ask_coordinator(request)
            features = (await self._cluster.any_connection()).finalized_features
            self.is_v2 = features.get("transaction.version", 0) >= 2
            self.state = TransactionState.READY
        self._identity.assume(answer.producer_id, answer.producer_epoch)

    def begin(self) -> None:
        """Open a transaction. The broker learns of it with the first record."""
        self._require(TransactionState.READY)
        self.state = TransactionState.IN_TRANSACTION
        self._partitions.clear()
        self._has_content = False
        self._error = None

    def check_may_send(self) -> None:
        """Raise unless records may be handed over now."""
        if self.transactional_id is not None:
            self._require(TransactionState.IN_TRANSACTION)

    async def may_send(self, where: TopicPartition) -> bool:
        """Make a partition part of the transaction before the first record goes there."""
        if self.transactional_id is None:
            return True
        if self.state not in (TransactionState.IN_TRANSACTION, TransactionState.ENDING):
            return False
        if where not in self._partitions:
            if not self.is_v2:
                await self._add_partition(where)
            self._partitions.add(where)
            self._has_content = True
        return True

    async def send_offsets(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: str | GroupMetadata,
        metadata: str = "",
    ) -> None:
        """Commit a group's offsets as part of the transaction; plain numbers with the note in `metadata`."""
        self._require(TransactionState.IN_TRANSACTION)
        assert self.transactional_id is not None
        member = GroupMetadata(group) if isinstance(group, str) else group
        if not self.is_v2:
            await self._ask_coordinator(
                AddOffsetsToTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=self._identity.producer_id,
                    producer_epoch=self._identity.producer_epoch,
                    group_id=member.group_id,
                )
            )
        self._has_content = True
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for where, item in offsets.items():
            chosen = item if isinstance(item, OffsetAndMetadata) else OffsetAndMetadata(item, metadata)
            part = TxnOffsetCommitRequestPartition(
                partition_index=where.partition,
                committed_offset=chosen.offset,
                committed_leader_epoch=chosen.leader_epoch,
                committed_metadata=chosen.metadata,
            )
            topics.setdefault(where.topic, []).append(part)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=member.group_id,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            topics=tuple(
                TxnOffsetCommitRequestTopic(name=name, partitions=tuple(parts))
                for name, parts in topics.items()
            ),
        )
        await self._guarded(lambda: self._commit_offsets(member.group_id, request))

    async def end(self, commit: bool) -> None:
        """Commit or abort. All records must have been flushed."""
        if commit or self.state is not TransactionState.FAILED:
            self._require(TransactionState.IN_TRANSACTION)
        must_tell = self._has_content or (self.is_v2 and self.state is TransactionState.FAILED)
        self.state = TransactionState.ENDING
        assert self.transactional_id is not None
        if must_tell:
            request = EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self._identity.producer_id,
                producer_epoch=self._identity.producer_epoch,
                committed=commit,
            )
            try:
                answer = await self._ask_coordinator(request, None if self.is_v2 else _LAST_V1_VERSION)
            except ClientError:
                if self.state is TransactionState.ENDING:
                    self.state = TransactionState.FAILED
                raise
            if self.is_v2 and answer.producer_id >= 0:
                self._identity.assume(answer.producer_id, answer.producer_epoch)
        self.state = TransactionState.READY

    def failed(self, error: ClientError, fatal: bool) -> None:
        """Take note that a record of the open transaction could not be sent."""
        if self.transactional_id is None:
            return
        self._error = error
        if fatal:
            self.state = TransactionState.FENCED
        elif self.state in (TransactionState.IN_TRANSACTION, TransactionState.ENDING):
            self.state = TransactionState.FAILED

    async def _acquire_plain(self, request: InitProducerIdRequest) -> Any:
        answer = await (await self._cluster.any_connection()).ask(request)
        if answer.error_code is not ErrorCode.NONE:
            raise BrokerError(answer.error_code, "cannot get a producer id")
        return answer

    async def _add_partition(self, where: TopicPartition) -> None:
        assert self.transactional_id is not None
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._identity.producer_id,
            v3_and_below_producer_epoch=self._identity.producer_epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=where.topic, partitions=(where.partition,)),),
        )
        await self._ask_coordinator(request, _LAST_CLIENT_VERSION_OF_ADD_PARTITIONS)

    async def _commit_offsets(self, group_id: str, request: TxnOffsetCommitRequest) -> None:
        node_id = await self._cluster.coordinator(GROUP, group_id)
        try:
            connection = await self._cluster.connection(node_id)
            version = connection.version_for(TxnOffsetCommitRequest, None if self.is_v2 else _LAST_V1_VERSION)
            if version < _FIRST_VERSION_WITH_MEMBER:
                # Before Kafka 2.5 a group did not ask who commits: that one does is up to the application.
                request = replace(request, generation_id=-1, member_id="", group_instance_id=None)
            answer = await connection.ask(request, version)
        except ClientError:
            self._cluster.forget_coordinator(GROUP, group_id)
            raise
        for topic in answer.topics:
            for part in topic.partitions:
                if part.error_code in _MOVED:
                    self._cluster.forget_coordinator(GROUP, group_id)
                if part.error_code is not ErrorCode.NONE:
                    raise BrokerError(
                        part.error_code, f"the offset of {topic.name}-{part.partition_index} was refused"
                    )

    async def _ask_coordinator(self, request: Any, at_most: int | None = None) -> Any:
        assert self.transactional_id is not None
        transactional_id = self.transactional_id

        async def once() -> Any:
            node_id = await self._cluster.coordinator(TRANSACTION, transactional_id)
            try:
                connection = await self._cluster.connection(node_id)
                answer = await connection.ask(request, connection.version_for(type(request), at_most))
            except ClientError:
                self._cluster.forget_coordinator(TRANSACTION, transactional_id)
                raise
            code = _first_error(answer)
            if code in _MOVED:
                self._cluster.forget_coordinator(TRANSACTION, transactional_id)
            if code is not ErrorCode.NONE:
                raise BrokerError(code, f"{type(request).__name__} for {transactional_id!r} was refused")
            return answer

        return await self._guarded(once)

    async def _guarded(self, once: Callable[[], Awaitable[Any]]) -> Any:
        """Retry what may be retried; let the state follow what may not."""
        try:
            return await self._cluster.retry(once)
        except BrokerError as error:
            self.failed(error, fatal=error.error_code in _FENCED)
            if error.error_code in _FENCED:
                raise Fenced(
                    f"another producer has taken transactional id {self.transactional_id!r}: stop this one"
                ) from error
            raise
        except ClientError as error:
            self.failed(error, fatal=False)
            raise

    def _require(self, state: TransactionState) -> None:
        if self.transactional_id is None:
            raise WrongTransactionState("this producer has no transactional.id: set it to use transactions")
        if self.state is TransactionState.FENCED:
            raise Fenced(
                f"transactional id {self.transactional_id!r} now belongs to another producer"
            ) from self._error
        if self.state is not state:
            raise WrongTransactionState(
                f"this call needs the state '{state.value}', but the state is '{self.state.value}'"
            ) from self._error


def _first_error(answer: Any) -> ErrorCode:
    results = getattr(answer, "results_by_topic_v3_and_below", None)
    if results is not None:
        codes = [part.partition_error_code for topic in results for part in topic.results_by_partition]
        return next((code for code in codes if code is not ErrorCode.NONE), ErrorCode.NONE)
    code: ErrorCode = answer.error_code
    return code
