"""Batches as brokers take them: encoded, and together in a request of a version that the broker knows."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Protocol, TypeAlias

from ottla.client.cluster import Cluster
from ottla.client.connection import BrokerConnection
from ottla.client.errors import BrokerError, ClientError, UnsupportedByBroker
from ottla.client.producer.batch import Batch
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.settings import ProducerSettings
from ottla.client.topology import TopicView
from ottla.model.ids import TopicPartition
from ottla.records.attributes import Codec
from ottla.records.builder import build_batch
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import (
    TOPIC_IDS_FROM,
    ZSTD_FROM,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

_LAST_VERSION_OF_TRANSACTIONS_V1: Final = 11
Buffer: TypeAlias = bytes | bytearray | memoryview


class TransactionGate(Protocol):
    """What the sender must know of transactions."""

    transactional_id: str | None
    is_v2: bool

    @property
    def is_aborting(self) -> bool:
        """Say whether the transaction is being aborted because the user wants that."""

    def refusal(self) -> ClientError | None:
        """Return why nothing may be sent now: the transaction has failed, or is being aborted."""

    def is_admitted(self, where: TopicPartition) -> bool:
        """Say whether records may go to a partition, for all that the coordinator knows."""

    def failed(self, error: ClientError, fatal: bool) -> None:
        """Take note that the transaction, or the producer, cannot go on."""

    async def admit(self, partitions: Collection[TopicPartition]) -> None:
        """Make partitions part of the transaction before the first record goes there."""

    def left_gap(self) -> None:
        """Take note that a batch that had a number will not be sent."""


def produce_request(
    topics: Mapping[str, TopicView],
    batches: Iterable[tuple[TopicPartition, Buffer]],
    version: int,
    *,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Return the request that carries encoded batches, in a version that names topics or one that has ids."""
    by_topic: dict[str, list[PartitionProduceData]] = defaultdict(list)
    for where, content in batches:
        data = PartitionProduceData(partition_index=where.partition, records=memoryview(content))
        by_topic[where.topic].append(data)
    if gone := [name for name in by_topic if name not in topics]:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {gone[0]!r} no longer exists")
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=tuple(
            TopicProduceData(topic_id=topics[name].topic_id, partition_data=tuple(parts))
            if version >= TOPIC_IDS_FROM
            else TopicProduceData(name=name, partition_data=tuple(parts))
            for name, parts in by_topic.items()
        ),
    )


class ProduceRequests:
    """Makes the requests of one producer."""

    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, identity: ProducerIdentity, gate: TransactionGate
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._identity = identity
        self._gate = gate
        self.codec = Codec[settings.compression_type.upper()]
        self.level = {
            Codec.GZIP: settings.compression_gzip_level if settings.compression_gzip_level >= 0 else None,
            Codec.LZ4: settings.compression_lz4_level,
            Codec.ZSTD: settings.compression_zstd_level,
        }.get(self.codec)

    def encode(self, batch: Batch) -> None:
        """Give a batch its bytes, and its numbers if it has none yet. Those of one that was sent stay."""
        if batch.encoded is not None:
            return
        if self._settings.is_idempotent and batch.base_sequence < 0:
            batch.base_sequence = self._identity.next_sequence(batch.where, len(batch.records))
        producer_id, producer_epoch = -1, -1
        if batch.base_sequence >= 0:
            producer_id, producer_epoch = self._identity.numbers_in(batch.where)
        batch.encoded = build_batch(
            batch.records,
            codec=self.codec,
            level=self.level,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=self._gate.transactional_id is not None,
        )

    def version_for(self, connection: BrokerConnection) -> int:
        """Return the version to speak with a broker."""
        in_transaction = self._gate.transactional_id is not None
        at_most = _LAST_VERSION_OF_TRANSACTIONS_V1 if in_transaction and not self._gate.is_v2 else None
        version = connection.version_for(ProduceRequest, at_most)
        if self.codec is Codec.ZSTD and version < ZSTD_FROM:
            raise UnsupportedByBroker(
                f"the broker at {connection.address} is too old for zstd: set compression.type to another "
                "codec"
            )
        return version

    def make(self, batches: Iterable[Batch], version: int) -> ProduceRequest:
        """Return the request that carries these batches, which are encoded."""
        encoded: list[tuple[TopicPartition, Buffer]] = []
        for batch in batches:
            assert batch.encoded is not None, "only encoded batches are sent"
            encoded.append((batch.where, batch.encoded))
        return self.carry(encoded, version)

    def carry(self, encoded: Iterable[tuple[TopicPartition, Buffer]], version: int) -> ProduceRequest:
        """Return the request that carries batches of which only the bytes are known."""
        return produce_request(
            self._cluster.topology.topics,
            encoded,
            version,
            acks=self._settings.required_acks,
            timeout_ms=self._settings.request_timeout_ms,
            transactional_id=self._gate.transactional_id,
        )
