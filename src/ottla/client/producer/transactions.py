"""Transactions: several records, and the offsets of what was read to make them, all or nothing.

States: UNINITIALIZED -> READY -> IN_TRANSACTION -> ENDING -> READY; FAILED until the open transaction is
aborted; FENCED for ever when another producer took the transactional id.

An end that is cut off, by a cancelled call or a coordinator that is away for too long, leaves ENDING: the
same call goes on with it. Once the coordinator was asked to commit, there is no other way: the transaction
may be committed.

Transactions v2 (KIP-890) need no word to the coordinator before records go to a partition, and each end gives
the epoch for the next transaction. Which of the two it is, the cluster's finalized features say. Before v2
the producer itself asks for the next epoch after a transaction with a failure: some numbers were never used,
so no broker would take the ones that follow (KIP-360).
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
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
_FIRST_VERSION_WITH_EPOCH = 3
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
        self._commits = False
        self._was_asked = False
        """Whether the coordinator may have been asked to end the transaction."""
        self._needs_epoch = False
        self._ending = asyncio.Lock()
        self._unsure_of: set[str] = set()
        """Groups whose offsets were sent to the transaction, and no answer came."""
        self.number = 0
        """How many transactions were begun."""

    @property
    def is_aborting(self) -> bool:
        """Say whether the transaction is being aborted because the user wants that."""
        return self.state is TransactionState.ENDING and not self._commits

    @property
    def may_abort(self) -> bool:
        """Say whether the transaction is open, and nobody knows it to be over."""
        if self.state is TransactionState.ENDING:
            return not (self._commits and self._was_asked)
        return self.state in (TransactionState.IN_TRANSACTION, TransactionState.FAILED)

    async def initialize(self) -> None:
        """Get the id and epoch. An open transaction of an earlier life is aborted, its producer fenced."""
        if self.transactional_id is None:
            answer = await self._cluster.retry(self._acquire_plain)
            self._identity.take_another(answer.producer_id, answer.producer_epoch)
            return
        await self._acquire_epoch()
        features = (await self._cluster.any_connection()).finalized_features
        self.is_v2 = features.get("transaction.version", 0) >= 2
        self.state = TransactionState.READY

    def begin(self) -> None:
        """Open a transaction. The broker learns of it with the first record."""
        self._require(TransactionState.READY)
        self.state = TransactionState.IN_TRANSACTION
        self.number += 1
        self._partitions.clear()
        self._unsure_of.clear()
        self._has_content = self._was_asked = self._needs_epoch = False
        self._error = None

    def check_may_send(self) -> None:
        """Raise unless records may be handed over now."""
        if self.transactional_id is not None:
            self._require(TransactionState.IN_TRANSACTION)

    def refusal(self) -> ClientError | None:
        """Return why no record may leave now. None of a transaction that failed, or is being aborted."""
        if self.transactional_id is None or self.state is TransactionState.IN_TRANSACTION:
            return None
        if self.state is TransactionState.ENDING:
            return None if self._commits else aborted()
        if self.state is TransactionState.FENCED:
            return Fenced(f"transactional id {self.transactional_id!r} now belongs to another producer")
        return BrokerError(ErrorCode.TRANSACTION_ABORTABLE, "another record of the transaction failed")

    def is_admitted(self, where: TopicPartition) -> bool:
        """Say whether records may go to a partition. In version 2 the first one tells the coordinator."""
        if self.transactional_id is None or where in self._partitions:
            return True
        if self.is_v2:
            self._partitions.add(where)
            self._has_content = True
        return self.is_v2

    async def admit(self, partitions: Collection[TopicPartition]) -> None:
        """Make partitions part of the transaction before the first record goes there."""
        # Before asking: if the answer is lost, the coordinator may have begun the transaction all the same.
        self._has_content = True
        await self._add_partitions(partitions)
        self._partitions.update(partitions)

    async def may_send(self, where: TopicPartition) -> bool:
        """Make a partition part of the transaction, and say whether records may go there."""
        if self.refusal() is not None:
            return False
        if not self.is_admitted(where):
            await self.admit([where])
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
        # Before asking: if the answer is lost, the coordinator may have begun the transaction all the same.
        self._has_content = True
        self._unsure_of.add(member.group_id)
        if not self.is_v2:
            await self._ask_coordinator(
                AddOffsetsToTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=self._identity.producer_id,
                    producer_epoch=self._identity.producer_epoch,
                    group_id=member.group_id,
                )
            )
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
        self._unsure_of.discard(member.group_id)

    def begin_end(self, commit: bool) -> int:
        """Let no more records in. What is there can then be flushed, and `end` called with this number."""
        if self.state is TransactionState.ENDING:
            self._require_same_end(commit)
        elif commit or self.state is not TransactionState.FAILED:
            self._require(TransactionState.IN_TRANSACTION)
            if commit and self._unsure_of:
                raise WrongTransactionState(
                    f"send_offsets_to_transaction() for group {min(self._unsure_of)!r} was cut off, so the "
                    "transaction cannot be committed: call it again, or abort_transaction()"
                )
        self.state = TransactionState.ENDING
        self._commits = commit
        return self.number

    async def end(self, commit: bool, number: int) -> None:
        """Commit or abort the transaction with this number. All records must have been flushed."""
        self._require_not_ended(number)
        self.begin_end(commit)
        async with self._ending:
            self._require_not_ended(number)
            if self.state is not TransactionState.ENDING:
                self._require(TransactionState.IN_TRANSACTION)
            if self._has_content or (self.is_v2 and self._needs_epoch):
                await self._ask_to_end(commit)
            if self._needs_epoch:
                await self._acquire_epoch()
                self._needs_epoch = False
            self.state = TransactionState.READY

    def failed(self, error: ClientError, fatal: bool) -> None:
        """Take note that a record of the open transaction could not be sent, or the coordinator refused."""
        if self.transactional_id is None or self.state is TransactionState.FENCED:
            return
        self._error = error
        self._needs_epoch = True
        if fatal:
            self.state = TransactionState.FENCED
        elif self.may_abort and not self.is_aborting:
            self.state = TransactionState.FAILED

    def left_gap(self) -> None:
        """Take note that a batch that had a number will not be sent."""
        self._needs_epoch = True

    async def _ask_to_end(self, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.transactional_id or "",
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            committed=commit,
        )
        self._was_asked = True
        try:
            answer = await self._ask_coordinator(request, None if self.is_v2 else _LAST_V1_VERSION)
        except Fenced:
            raise
        except ClientError as error:
            if error.retriable:
                raise  # The answer is lost, not the transaction: the same call asks again.
            self._was_asked = False
            if commit:
                self.state = TransactionState.FAILED
                raise
            # There is nothing that could be aborted. Its next epoch puts an end to whatever there is.
            self._needs_epoch = True
        else:
            if self.is_v2 and answer.producer_id >= 0:
                self._identity.assume(answer.producer_id, answer.producer_epoch)
                self._needs_epoch = False
        self._has_content = False

    async def _acquire_epoch(self) -> None:
        """Get the id and the next epoch. Whatever transaction is open is aborted by that."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._settings.transaction_timeout_ms,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
        )
        answer = await self._ask_coordinator(request)
        self._identity.assume(answer.producer_id, answer.producer_epoch)

    def _require_not_ended(self, number: int) -> None:
        if self.number != number:
            raise WrongTransactionState("another call has ended the transaction meanwhile")

    def _require_same_end(self, commit: bool) -> None:
        if commit is self._commits or (self._commits and not self._was_asked):
            return
        if self._commits:
            raise WrongTransactionState(
                "the commit was cut off and may have taken effect, so the transaction cannot be aborted: "
                "call commit_transaction() again"
            )
        raise WrongTransactionState(
            "the transaction is being aborted, so it cannot be committed: call abort_transaction() again"
        )

    async def _acquire_plain(self) -> Any:
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=self._settings.transaction_timeout_ms
        )
        answer = await (await self._cluster.any_connection()).ask(request)
        if answer.error_code is not ErrorCode.NONE:
            is_denied = answer.error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            needed = "an idempotent producer needs the right to write to some topic" if is_denied else None
            raise BrokerError(answer.error_code, "cannot get a producer id", needed)
        return answer

    async def _add_partitions(self, partitions: Collection[TopicPartition]) -> None:
        assert self.transactional_id is not None
        by_topic: dict[str, list[int]] = {}
        for where in partitions:
            by_topic.setdefault(where.topic, []).append(where.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._identity.producer_id,
            v3_and_below_producer_epoch=self._identity.producer_epoch,
            v3_and_below_topics=tuple(
                AddPartitionsToTxnTopic(name=name, partitions=tuple(numbers))
                for name, numbers in by_topic.items()
            ),
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
                version = connection.version_for(type(request), at_most)
                if isinstance(request, InitProducerIdRequest) and version < _FIRST_VERSION_WITH_EPOCH:
                    # Before Kafka 2.5 the coordinator gave the next epoch to anyone that asked.
                    ask = replace(request, producer_id=-1, producer_epoch=-1)
                    answer = await connection.ask(ask, version)
                else:
                    answer = await connection.ask(request, version)
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
        if self.state is TransactionState.ENDING:
            call = "commit_transaction" if self._commits else "abort_transaction"
            raise WrongTransactionState(
                f"the transaction has not ended yet: wait for {call}(), or call it again if it was cut off"
            )
        if self.state is not state:
            why = f" ({self._error})" if self._error is not None else ""
            raise WrongTransactionState(
                f"this call needs the state '{state.value}', but the state is '{self.state.value}'{why}"
            ) from self._error


def aborted() -> BrokerError:
    """Return what becomes of records that an abort discards."""
    return BrokerError(ErrorCode.TRANSACTION_ABORTABLE, "the transaction was aborted")


def _first_error(answer: Any) -> ErrorCode:
    results = getattr(answer, "results_by_topic_v3_and_below", None)
    if results is not None:
        codes = {part.partition_error_code for topic in results for part in topic.results_by_partition}
        codes -= {ErrorCode.NONE}
        # What was not attempted waits for what was refused, which says more.
        telling = codes - {ErrorCode.OPERATION_NOT_ATTEMPTED} or codes
        return min(telling, default=ErrorCode.NONE, key=lambda code: code.retriable)
    code: ErrorCode = answer.error_code
    return code
