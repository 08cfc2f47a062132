"""Writes batches in transactions: all of a round, or nothing.

The producer of the client makes batches out of records. Here batches come ready, so this sends them itself,
with the client's own transactions and requests. Nothing is repeated inside a transaction once a partition
has taken its first batch: whatever fails ends it, and the caller begins again from what is committed.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from ottla.client.admin import Admin
from ottla.client.backoff import backoff_s
from ottla.client.cluster import Cluster
from ottla.client.connection import BrokerConnection
from ottla.client.errors import BrokerError, ClientError, RequestTimedOut
from ottla.client.producer.batch import Batch
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.produce_requests import ProduceRequests
from ottla.client.producer.settings import ProducerSettings
from ottla.client.producer.transactions import Transactions
from ottla.mirror.maker.batches import Outgoing, stamped
from ottla.mirror.maker.left_open import left_open, was_committed
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import TOPIC_IDS_FROM, PartitionProduceResponse

_logger = logging.getLogger("ottla.mirror")

_IN_FLIGHT_MAX: Final = 5
_REQUEST_BYTES_MAX: Final = 16 << 20
_FIRST_BATCH_TIMEOUT_S: Final = 30.0

_OF_A_PARTITION: Final = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)
"""What has its reason in one partition, and says nothing about the others."""

Queues = dict[TopicPartition, deque[Batch]]


class PartitionRefused(BrokerError):
    """A partition that takes no batches of ours, or not this one."""

    def __init__(self, where: TopicPartition, error_code: ErrorCode, detail: str | None) -> None:
        super().__init__(error_code, f"{where} did not take a batch", detail)
        self.where = where


class TransactionalWriter:
    """One transactional producer. `start` ends what an earlier life of it, or another process, left open."""

    def __init__(self, cluster: Cluster, properties: Mapping[str, str], transactional_id: str) -> None:
        settings = ProducerSettings.of(dict(properties), transactional_id=transactional_id)
        self._cluster = cluster
        self._transactional_id = transactional_id
        self._identity = ProducerIdentity()
        self._transactions = Transactions(cluster, settings, self._identity)
        self._requests = ProduceRequests(cluster, settings, self._identity, self._transactions)

    async def start(self, admin: Admin, partitions: Collection[TopicPartition]) -> None:
        """Take the transactional id. Every transaction before it is committed or aborted afterwards.

        This holds in `partitions` even if their markers got lost. `admin` is one of the same cluster.
        """
        commit = await was_committed(admin, self._transactional_id)
        await self._transactions.initialize()
        if left := await left_open(admin, partitions, self._identity.producer_id):
            _logger.warning(
                "the last transaction is still open in %s, without its coordinator: it is %s there",
                ", ".join(map(str, left)), "committed" if commit else "aborted",
            )  # fmt: skip
            await self._end_again(left, commit)

    async def _end_again(self, partitions: Collection[TopicPartition], commit: bool) -> None:
        """Have markers written to partitions, by a transaction that writes nothing itself."""
        # By the newer protocol, only a record makes a partition part of a transaction.
        self._transactions.is_v2 = False
        self._transactions.begin()
        for where in partitions:
            await self._transactions.may_send(where)
        await self._transactions.end(commit, number=self._transactions.number)
        # This waits until the markers are there, and settles the protocol again.
        await self._transactions.initialize()

    async def write(
        self, content: Mapping[TopicPartition, Sequence[Outgoing]]
    ) -> dict[TopicPartition, list[int]]:
        """Write batches in one transaction and commit it. Returns the offset that each batch has got."""
        self._transactions.begin()
        offsets: dict[TopicPartition, list[int]] = {where: [] for where in content}
        by_leader: dict[int, Queues] = {}
        for where, batches in content.items():
            leader = (await self._cluster.leader(where)).leader
            await self._transactions.may_send(where)
            by_leader.setdefault(leader, {})[where] = deque(self._numbered(where, batches))
        await _all(self._write_to(node_id, queues, offsets) for node_id, queues in by_leader.items())
        await self._transactions.end(commit=True, number=self._transactions.number)
        return offsets

    def _numbered(self, where: TopicPartition, batches: Sequence[Outgoing]) -> list[Batch]:
        made = []
        for item in batches:
            batch = Batch(where, 0.0)
            batch.base_sequence = self._identity.next_sequence(where, item.records)
            batch.encoded = stamped(
                item.content, self._identity.producer_id, self._identity.producer_epoch, batch.base_sequence
            )
            made.append(batch)
        return made

    async def _write_to(self, node_id: int, queues: Queues, offsets: dict[TopicPartition, list[int]]) -> None:
        connection = await self._cluster.connection(node_id)
        await self._write_first(connection, [queue.popleft() for queue in queues.values()], offsets)
        in_flight: deque[asyncio.Task[None]] = deque()
        try:
            while batches := _next_batches(queues):
                if len(in_flight) >= _IN_FLIGHT_MAX:
                    await in_flight.popleft()
                in_flight.append(asyncio.create_task(self._send(connection, batches, offsets)))
            while in_flight:
                await in_flight.popleft()
        finally:
            for task in in_flight:
                task.cancel()
            await asyncio.gather(*in_flight, return_exceptions=True)

    async def _write_first(
        self, connection: BrokerConnection, batches: list[Batch], offsets: dict[TopicPartition, list[int]]
    ) -> None:
        """Write the first batch of each partition. A broker refuses it while the last transaction ends."""
        waits = backoff_s(0.005, 0.2)
        give_up_s = asyncio.get_running_loop().time() + _FIRST_BATCH_TIMEOUT_S
        while batches:
            answers = await self._ask(connection, batches)
            refused = []
            for batch in batches:
                answer = answers[batch.where]
                code = answer.error_code
                if code is ErrorCode.NONE:
                    offsets[batch.where].append(answer.base_offset)
                    continue
                is_late = asyncio.get_running_loop().time() > give_up_s
                if is_late or not code.retriable or code.refreshes_metadata:
                    raise _refusal(batch.where, answer)
                refused.append(batch)
            batches = refused
            if batches:
                await asyncio.sleep(next(waits))

    async def _send(
        self, connection: BrokerConnection, batches: list[Batch], offsets: dict[TopicPartition, list[int]]
    ) -> None:
        answers = await self._ask(connection, batches)
        for batch in batches:
            answer = answers[batch.where]
            if answer.error_code is not ErrorCode.NONE:
                raise _refusal(batch.where, answer)
            offsets[batch.where].append(answer.base_offset)

    async def _ask(
        self, connection: BrokerConnection, batches: list[Batch]
    ) -> dict[TopicPartition, PartitionProduceResponse]:
        version = self._requests.version_for(connection)
        answer: Any = await connection.ask(self._requests.make(batches, version), version)
        names = self._cluster.topology.topic_names
        found = {
            TopicPartition(
                (names.get(topic.topic_id) or "") if version >= TOPIC_IDS_FROM else topic.name,
                part.partition_index,
            ): part
            for topic in answer.responses
            for part in topic.partition_responses
        }
        for batch in batches:
            if batch.where not in found:
                raise RequestTimedOut(f"the broker's response has no entry for {batch.where}")
        return found


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do things at the same time. When one fails, the others are ended before its error is raised."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _next_batches(queues: Queues) -> list[Batch]:
    """Take the next batch of each partition: a request has at most one of each, and a bounded size."""
    batches: list[Batch] = []
    size_bytes = 0
    for queue in queues.values():
        if queue and size_bytes < _REQUEST_BYTES_MAX:
            batch = queue.popleft()
            assert batch.encoded is not None
            size_bytes += len(batch.encoded)
            batches.append(batch)
    return batches


def _refusal(where: TopicPartition, answer: PartitionProduceResponse) -> ClientError:
    if answer.error_code in _OF_A_PARTITION:
        return PartitionRefused(where, answer.error_code, answer.error_message)
    return BrokerError(answer.error_code, f"{where} did not take a batch", answer.error_message)
