"""A compacted topic with one partition that instances keep what they know in.

It is read from the beginning, without a group. A write is done when the reader has seen it. Only one
instance writes. Its batches carry the producer id of all instances, with an epoch that each new writer
raises. So a broker refuses the batches of a writer that does not know yet that another one has taken over,
and there are no transactions, which other implementations would not expect in this topic.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from ottla.client import surroundings
from ottla.client.admin.admin import Admin
from ottla.client.cluster import FETCH_LANE, TRANSACTION, Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.fetching import FetchLimits, fetch_once, next_offset
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.client.producer.produce_requests import produce_request
from ottla.model.ids import TopicPartition
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import ACKS_ALL, ProduceRequest

_logger = logging.getLogger(__name__)
_LIMITS: Final = FetchLimits(partition_max_bytes=8_388_608)
_REPLICAS_MAX: Final = 3
_PAUSE_S: Final = 0.2
# Nothing is ever part of a transaction, so nothing can time out. Brokers want a number all the same.
_TRANSACTION_TIMEOUT_MS: Final = 60_000
_FENCED: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)


class Stored(Protocol):
    """A record to be written."""

    @property
    def key(self) -> bytes:
        """The key."""

    @property
    def value(self) -> bytes | None:
        """The value."""


class WriterFenced(ClientError):
    """Another instance writes now."""


class UnusableTopic(ClientError):
    """The topic is there, but it is not one that can be used."""


async def create_if_missing(
    admin: Admin, name: str, partitions: int = 1, replicas: int | None = None
) -> None:
    """Create a compacted topic if it is not there."""
    brokers = len((await admin.cluster.describe()).brokers)
    try:
        await admin.topics.create(
            name,
            partitions=partitions,
            replication_factor=replicas or min(_REPLICAS_MAX, brokers),
            configs={"cleanup.policy": "compact"},
        )
    except BrokerError as error:
        if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


async def ensure_topic(admin: Admin, name: str) -> None:
    """Create the topic if it is not there. Raises UnusableTopic if it has more than one partition."""
    await create_if_missing(admin, name)
    description = await admin.topics.describe(name)
    if len(description.partitions) != 1:
        raise UnusableTopic(
            f"topic {name!r} has {len(description.partitions)} partitions, but it must have exactly 1: "
            "name another topic with --topic"
        )
    configs = await admin.configs.describe(ResourceType.TOPIC, name, keys=["cleanup.policy"])
    policy = configs["cleanup.policy"].value
    if policy != "compact":
        _logger.warning(
            "topic %r has cleanup.policy=%s: what is in it will be lost by retention. Set it to compact",
            name,
            policy,
        )


class TopicReader:
    """Follows the topic and passes each record on, once and in order.

    Two readers of one cluster need two lanes: a broker answers a fetch only after the one before on the same
    connection, and that one may wait for records.
    """

    def __init__(
        self, cluster: Cluster, topic: str, replay: Callable[[Any], None], lane: int = FETCH_LANE
    ) -> None:
        self.where = TopicPartition(topic, 0)
        self.position = 0
        self._cluster = cluster
        self._lane = lane
        self._replay = replay
        self._moved = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read all there is, and follow from there."""
        found = await list_offsets(self._cluster, {self.where: EARLIEST})
        self.position = found[self.where].offset
        self._task = asyncio.create_task(self._follow())
        await self.catch_up()

    async def stop(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def catch_up(self) -> None:
        """Wait until everything is read that is in the topic now."""
        found = await list_offsets(self._cluster, {self.where: LATEST})
        await self.wait_for(found[self.where].offset)

    async def wait_for(self, offset: int) -> None:
        """Wait until everything before an offset is read."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.position >= offset)

    async def _follow(self) -> None:
        while True:
            try:
                await self._read_once()
            except ClientError as error:
                _logger.warning("topic %r cannot be read, trying again: %s", self.where.topic, error)
            except Exception:
                # Damaged bytes, or a bug of ours. Every write waits for this reader, so it must not end.
                _logger.exception("topic %r cannot be read on, trying again", self.where.topic)
            else:
                continue
            await asyncio.sleep(_PAUSE_S)

    async def _read_once(self) -> None:
        try:
            answers = await fetch_once(
                self._cluster, {self.where: self.position}, limits=_LIMITS, lane=self._lane
            )
        except ClientError:
            await self._cluster.refresh([self.where.topic])
            raise
        fetched = answers.get(self.where)
        if fetched is None or fetched.error_code is not ErrorCode.NONE:
            await self._cluster.refresh([self.where.topic])
            code = ErrorCode.UNKNOWN_TOPIC_ID if fetched is None else fetched.error_code
            raise BrokerError(code, f"{self.where} cannot be read")
        for batch in iter_batches(fetched.records):
            if not batch.is_control:
                for record in iter_batch_records(batch):
                    if record.offset >= self.position:
                        self._replay(record)
        after = next_offset(fetched.records, self.position)
        if after > self.position:
            async with self._moved:
                self.position = after
                self._moved.notify_all()


class TopicWriter:
    """Appends to the topic for as long as no other instance has begun to."""

    def __init__(
        self, cluster: Cluster, reader: TopicReader, writer_name: str, opening: Sequence[Stored]
    ) -> None:
        self._cluster = cluster
        self._reader = reader
        self._name = writer_name
        self._opening = opening
        self._producer_id = -1
        self._epoch = -1
        self._sequence = 0
        self._is_certain = True
        """Whether it is known how the last batch ended."""

    async def start(self) -> None:
        """Take over from earlier writers, and read all that they have written."""
        answer = await self._cluster.retry(self._raise_epoch)
        self._producer_id, self._epoch, self._sequence = answer.producer_id, answer.producer_epoch, 0
        self._is_certain = True
        # With this batch brokers know the new epoch, and nothing of the old one can come after it.
        await self.append(self._opening)

    async def settle(self) -> None:
        """Take over again if it is not known how the last batch ended. Call it before deciding what to write.

        That batch may still be on its way to the broker. Now it is read, or it will be refused. And a broker
        that has it would take the next one for it, since both have one number.
        """
        if not self._is_certain:
            await self.start()

    async def append(self, records: Sequence[Stored]) -> None:
        """Append records in one batch, and wait until they are read. Raises WriterFenced."""
        assert self._is_certain, "what is to be written was decided after `settle`"
        now_ms = surroundings.now_ms()
        batch = build_batch(
            [(place, now_ms, record.key, record.value, ()) for place, record in enumerate(records)],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
        )
        # The same bytes each time: a broker that has them already answers where they are.
        self._is_certain = False
        base_offset = await self._cluster.retry(lambda: self._produce(bytes(batch)))
        self._is_certain = True
        self._sequence += len(records)
        await self._reader.wait_for(base_offset + len(records))

    async def _raise_epoch(self) -> Any:
        request = InitProducerIdRequest(
            transactional_id=self._name, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
        )
        node_id = await self._cluster.coordinator(TRANSACTION, self._name)
        try:
            answer = await self._cluster.ask_node(node_id, request)
        except ClientError:
            self._cluster.forget_coordinator(TRANSACTION, self._name)
            raise
        if answer.error_code is not ErrorCode.NONE:
            self._cluster.forget_coordinator(TRANSACTION, self._name)
            raise BrokerError(answer.error_code, f"this instance cannot become the writer {self._name!r}")
        return answer

    async def _produce(self, batch: bytes) -> int:
        where = self._reader.where
        leader = (await self._cluster.leader(where)).leader
        try:
            connection = await self._cluster.connection(leader)
            version = connection.version_for(ProduceRequest)
            request = produce_request(
                self._cluster.topology.topics, [(where, batch)], version, acks=ACKS_ALL, timeout_ms=30_000
            )
            answer = (await connection.ask(request, version)).responses[0].partition_responses[0]
        except ClientError:
            await self._cluster.refresh([where.topic])
            raise
        code = answer.error_code
        if code in _FENCED:
            raise WriterFenced(f"another instance writes to topic {where.topic!r} now")
        if code is not ErrorCode.NONE:
            if code.refreshes_metadata:
                await self._cluster.refresh([where.topic])
            raise BrokerError(code, f"{where} did not take the records", answer.error_message)
        base_offset: int = answer.base_offset
        return base_offset
