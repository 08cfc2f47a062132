"""Produces columns: batches made of whole columns, sent one request at a time to each leader.

The client's own producer takes one record at a time and gives each a future, which costs more than all the
rest of a sink. Here a batch is one piece from the column to the socket. Batches are numbered, so that one
that is sent again is taken once.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from ottla.client.cluster import Cluster
from ottla.client.connection import BrokerConnection
from ottla.client.errors import BrokerError, ClientError
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.produce_requests import ProduceRequests
from ottla.client.producer.settings import ProducerSettings
from ottla.client.producer.transactions import Fenced, Transactions
from ottla.model.ids import TopicPartition
from ottla.pipelines.columns.encode import encode_area, encoded_sizes_max
from ottla.pipelines.columns.partitions import choose_partitions, rows_by_partition
from ottla.pipelines.sink.rows import OutgoingRows
from ottla.records.attributes import TRANSACTIONAL_BIT
from ottla.records.batch import MAGIC, BatchHeader
from ottla.records.builder import seal_batch
from ottla.records.compression import compress
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.produce import TOPIC_IDS_FROM, ProduceResponse

TAKEN_OVER: Final = "another attempt of this task has taken over"
_FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


class _Encoded(NamedTuple):
    where: TopicPartition
    content: bytearray


class ColumnProducer:
    """A producer of one task. With a transactional id all that it sends is part of one transaction."""

    def __init__(self, cluster: Cluster, settings: ProducerSettings, now_ms: Callable[[], int]) -> None:
        self.identity = ProducerIdentity()
        self.transactions = Transactions(cluster, settings, self.identity)
        self._cluster = cluster
        self._settings = settings
        self._now_ms = now_ms
        self._requests = ProduceRequests(cluster, settings, self.identity, self.transactions)
        self._turn = 0

    async def start(self) -> None:
        """Get an id. With a transactional id, whatever an earlier life left open is aborted."""
        await self.transactions.initialize()

    async def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has. It is created if it is not there and brokers do that."""

        async def once() -> int:
            view = self._cluster.topology.topics.get(topic)
            if view is None or not view.partitions:
                view = (await self._cluster.refresh([topic])).topics.get(topic)
            if view is None or not view.partitions:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if view is None else view.error_code
                raise BrokerError(code, f"cannot write to topic {topic!r}")
            return len(view.partitions)

        return await self._cluster.retry(once)

    async def send(self, topic: str, rows: OutgoingRows) -> None:
        """Deliver rows to a topic, and return when brokers have taken them."""
        count = await self.partition_count(topic)
        chosen = choose_partitions(rows.keys, rows.partitions, count, self._turn)
        self._turn = (self._turn + len(rows)) % count
        queues: dict[TopicPartition, Iterator[_Encoded]] = {
            TopicPartition(topic, number): self._encode(TopicPartition(topic, number), rows.take(which))
            for number, which in rows_by_partition(chosen)
        }
        # One batch of each partition goes out with each request: a request cannot carry two.
        while queues:
            heads = {where: next(queue, None) for where, queue in queues.items()}
            queues = {where: queues[where] for where, head in heads.items() if head is not None}
            ready = {where: head.content for where, head in heads.items() if head is not None}
            if ready:
                await self._deliver(ready)

    def _encode(self, where: TopicPartition, rows: OutgoingRows) -> Iterator[_Encoded]:
        """Make batches of rows, each as large as the settings allow, one row at least."""
        edges = np.cumsum(encoded_sizes_max(rows.keys, rows.values))
        start = 0
        while start < len(rows):
            before = int(edges[start - 1]) if start else 0
            stop = int(np.searchsorted(edges, before + self._settings.batch_size, side="right"))
            stop = max(stop, start + 1)
            yield _Encoded(where, self._encode_batch(where, rows, start, stop))
            start = stop

    def _encode_batch(self, where: TopicPartition, rows: OutgoingRows, start: int, stop: int) -> bytearray:
        count = stop - start
        now_ms = self._now_ms()
        headers = None if rows.headers is None else rows.headers[start:stop]
        timestamps_ms = np.full(count, now_ms, dtype=np.int64)
        area = encode_area(rows.keys[start:stop], rows.values[start:stop], timestamps_ms, headers)
        is_transactional = self.transactions.transactional_id is not None
        header = BatchHeader(
            base_offset=0,
            batch_length=0,
            leader_epoch=-1,
            magic=MAGIC,
            crc=0,
            attributes=self._requests.codec | (TRANSACTIONAL_BIT if is_transactional else 0),
            last_offset_delta=count - 1,
            base_timestamp=now_ms,
            max_timestamp=now_ms,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            base_sequence=self.identity.next_sequence(where, count),
            count=count,
        )
        return seal_batch(header, compress(self._requests.codec, area, self._requests.level))

    async def _deliver(self, batches: Mapping[TopicPartition, bytearray]) -> None:
        left = dict(batches)
        for where in left:
            await self.transactions.may_send(where)

        async def once() -> None:
            by_leader: dict[int, dict[TopicPartition, bytearray]] = {}
            for where, content in left.items():
                by_leader.setdefault((await self._cluster.leader(where)).leader, {})[where] = content
            for node_id, some in by_leader.items():
                await self._exchange(await self._cluster.connection(node_id), some, left)

        async def once_or_elsewhere() -> None:
            try:
                await once()
            except ClientError as error:
                if error.retriable:
                    await self._cluster.refresh({where.topic for where in left})
                raise

        await self._cluster.retry(once_or_elsewhere)

    async def _exchange(
        self,
        connection: BrokerConnection,
        batches: Mapping[TopicPartition, bytearray],
        left: dict[TopicPartition, bytearray],
    ) -> None:
        """Send batches to their leader, and strike those it took off what is left."""
        version = self._requests.version_for(connection)
        if self._settings.required_acks == 0:
            connection.send_unanswered(self._requests.carry(batches.items(), version), version)
            # Nothing runs here after the task, so what was sent has to leave before. A broker answers in
            # the order of requests: when it has answered this one, it has read all before it.
            await connection.ask(ApiVersionsRequest(), 0)
            for where in batches:
                left.pop(where, None)
            return
        answer: ProduceResponse = await connection.ask(
            self._requests.carry(batches.items(), version), version
        )
        names = self._cluster.topology.topic_names
        failure: BrokerError | None = None
        for topic in answer.responses:
            name = names.get(topic.topic_id) if version >= TOPIC_IDS_FROM else topic.name
            for part in topic.partition_responses:
                where = TopicPartition(name or "", part.partition_index)
                if part.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                    left.pop(where, None)
                elif failure is None or not part.error_code.retriable:
                    failure = BrokerError(
                        part.error_code, f"{where} did not take a batch", part.error_message
                    )
        if failure is not None:
            if failure.error_code in _FENCED:
                raise Fenced(f"{TAKEN_OVER}, so this one must stop") from failure
            raise failure
        if any(where in left for where in batches):
            raise BrokerError(
                ErrorCode.UNKNOWN_TOPIC_ID, "the broker's response has no entry for some batches"
            )
