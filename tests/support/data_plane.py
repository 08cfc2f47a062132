"""Producing and fetching by hand: requests and batches as clients send them, for tests."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

from ottla.model.uuid import Uuid
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)


class Asks(Protocol):
    """Whoever can ask a broker."""

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Send a request in `version`, or in the newest, and return the answer."""


# Of batches of the same millisecond, the first one would have the latest time of a log.
_last_ms = 0


def batch_of(*values: bytes, key: bytes | None = None, **settings: Any) -> bytearray:
    """Build the batch of a producer that sends these values now, at a later time than any before."""
    global _last_ms
    _last_ms = max(time.time_ns() // 1_000_000, _last_ms + 1)
    return build_batch(
        [Record(offset, _last_ms, key, value) for offset, value in enumerate(values)], **settings
    )


def create_topic(
    client: Asks, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> Uuid:
    """Create a topic and return its id."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
    )
    result = client.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=30_000)).topics[0]
    assert result.error_code is ErrorCode.NONE, result.error_message
    topic_id: Uuid = result.topic_id
    return topic_id


def produce_request(
    topic: str | Uuid,
    batch: bytes | bytearray | None,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Make a request that appends one batch. A topic id asks for version 13."""
    records = None if batch is None else memoryview(bytearray(batch))
    data = (PartitionProduceData(partition_index=partition, records=records),)
    if isinstance(topic, Uuid):
        named = TopicProduceData(topic_id=topic, partition_data=data)
    else:
        named = TopicProduceData(name=topic, partition_data=data)
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=30_000, topic_data=(named,)
    )


def produce(
    client: Asks, topic: str, batch: bytes | bytearray, partition: int = 0, acks: int = -1
) -> PartitionProduceResponse:
    """Append a batch, and return the answer for its partition."""
    answer = client.ask(produce_request(topic, batch, partition, acks), 12)
    result: PartitionProduceResponse = answer.responses[0].partition_responses[0]
    return result


def fetch_request(
    topic: str | Uuid,
    offset: int,
    partition: int = 0,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    **settings: Any,
) -> FetchRequest:
    """Make a request that reads one partition. `settings` of the partition or of the request."""
    of_partition = {
        name: settings.pop(name)
        for name in ("current_leader_epoch", "last_fetched_epoch", "partition_max_bytes")
        if name in settings
    }
    asked = (
        FetchPartition(
            partition=partition, fetch_offset=offset, **{"partition_max_bytes": 1 << 20, **of_partition}
        ),
    )
    if isinstance(topic, Uuid):
        named = FetchTopic(topic_id=topic, partitions=asked)
    else:
        named = FetchTopic(topic=topic, partitions=asked)
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=(named,), **settings)


def fetch(client: Asks, topic: str, offset: int, partition: int = 0, **settings: Any) -> PartitionData:
    """Read one partition, and return the answer for it."""
    answer = client.ask(fetch_request(topic, offset, partition, **settings), 12)
    assert answer.error_code is ErrorCode.NONE
    data: PartitionData = answer.responses[0].partitions[0]
    return data


def values_in(records: memoryview | bytes | None) -> list[bytes | None]:
    """Return the values of all whole batches."""
    assert records is not None
    return [
        record.value for batch in iter_batches(memoryview(records)) for record in iter_batch_records(batch)
    ]


def fetch_all(client: Asks, topic: str, partition: int = 0) -> list[bytes | None]:
    """Read a partition from its beginning to its high watermark."""
    values: list[bytes | None] = []
    offset = 0
    while True:
        data = fetch(client, topic, offset, partition)
        assert data.error_code is ErrorCode.NONE, data.error_code
        if offset >= data.high_watermark:
            return values
        for batch in iter_batches(memoryview(data.records or b"")):
            values += [record.value for record in iter_batch_records(batch) if record.offset >= offset]
            offset = batch.last_offset + 1
