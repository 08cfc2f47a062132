"""Requests as those clients send them that do wrong things on purpose."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from tests.simulation.storage.batches import Record, make_batch

from ottla.client.cluster import TRANSACTION, Cluster
from ottla.client.connection import Address, BrokerConnection, open_connection
from ottla.client.errors import BrokerError
from ottla.model.ids import TopicPartition
from ottla.testing.simulation.node import PORT
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TIMEOUT_S: Final = 2.0
PRODUCE_VERSION: Final = 11
"""The last one in which the client adds partitions to its transactions, and names topics by name."""


@asynccontextmanager
async def raw_cluster(bootstrap: str) -> AsyncIterator[Cluster]:
    """Know a cluster for the time being."""
    pairs = [address.rpartition(":") for address in bootstrap.split(",")]
    cluster = Cluster(
        [Address(host, int(port)) for host, _, port in pairs],
        request_timeout_s=TIMEOUT_S,
        setup_timeout_s=TIMEOUT_S,
        retry_timeout_s=5.0,
    )
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.close()


@asynccontextmanager
async def raw_connection(host: str, port: int) -> AsyncIterator[BrokerConnection]:
    """Be connected to one listener of one node."""
    connection = await open_connection(Address(host, port), timeout_s=TIMEOUT_S, setup_timeout_s=TIMEOUT_S)
    try:
        yield connection
    finally:
        await connection.close()


async def ask_slowly(host: str, request: Any, timeout_s: float) -> Any:
    """Ask one node, and have patience."""
    async with raw_connection(host, PORT) as connection:
        return await connection.ask(request, timeout_s=timeout_s)


class RawProducer:
    """A producer that chooses its epochs and sequences itself."""

    def __init__(self, cluster: Cluster, where: TopicPartition, now_ms: int, producer_id: int = -1) -> None:
        self._cluster = cluster
        self._where = where
        self._now_ms = now_ms
        self.producer_id = producer_id

    async def begin(self) -> None:
        """Get an id that nobody has."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=5_000)
        found = await self._cluster.ask_any(request)
        if found.error_code is not ErrorCode.NONE:
            raise BrokerError(found.error_code, "no producer id")
        self.producer_id = found.producer_id

    async def send(self, epoch: int, sequence: int, **options: Any) -> tuple[ErrorCode, int]:
        """Send a batch, and return what the leader says and the offset of its first record."""
        request = self.request(epoch, sequence, **options)
        answer = await ask_leader(self._cluster, self._where, request, PRODUCE_VERSION)
        told = answer.responses[0].partition_responses[0]
        return told.error_code, told.base_offset

    def request(
        self,
        epoch: int,
        sequence: int,
        *,
        records: int = 1,
        attributes: int = 0,
        transactional_id: str | None = None,
        acks: int = -1,
    ) -> ProduceRequest:
        """Return the request for a batch."""
        batch = make_batch(
            [Record(None, b"%d %d" % (epoch, sequence + n), self._now_ms) for n in range(records)],
            producer_id=self.producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            attributes=attributes,
        )
        data = PartitionProduceData(partition_index=self._where.partition, records=memoryview(batch))
        return ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=1_500,
            topic_data=(TopicProduceData(name=self._where.topic, partition_data=(data,)),),
        )


async def ask_leader(
    cluster: Cluster, where: TopicPartition, request: Any, version: int | None = None
) -> Any:
    """Ask the leader of a partition, as far as that is known."""
    await cluster.refresh([where.topic])
    view = await cluster.leader(where)
    return await cluster.ask_node(view.leader, request, version)


async def ask_coordinator(
    cluster: Cluster, transactional_id: str, request: Any, version: int | None = None
) -> Any:
    """Ask the coordinator of a transactional id."""
    cluster.forget_coordinator(TRANSACTION, transactional_id)
    node_id = await cluster.coordinator(TRANSACTION, transactional_id)
    return await cluster.ask_node(node_id, request, version)
