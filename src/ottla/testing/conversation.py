"""A blocking conversation with one node, for the few things a test wants done quickly.

It creates topics, writes and reads records, and asks anything else that the protocol has. It is no client: it
finds no leaders, retries nothing, and every error of the node is raised.
"""

import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Headers
from ottla.wire.apis import Api, api_of
from ottla.wire.declare import spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import FrameBuffer, decode_response, encode_request
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
)
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

_FETCH_BYTES = 16 << 20
_BY_NAME_PRODUCE = 12
_BY_NAME_FETCH = 12
_EARLIEST, _LATEST = -2, -1
_CREATION_TIMEOUT_S = 30.0
_CREATION_PAUSE_S = 0.005
# What is said of a topic that is being created.
_COMING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)


class NodeSaid(Exception):
    """The node answered with an error."""

    def __init__(self, error: ErrorCode, what: str) -> None:
        super().__init__(f"{what}: {error.name}")
        self.error = error


class StoredRecord(NamedTuple):
    """A record as it lies in a topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Conversation:
    """One connection to one node."""

    def __init__(self, host: str, port: int, timeout_s: float = 60.0) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._frames = FrameBuffer()
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        self._socket.close()

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Send a request in `version`, the newest if none is given, and return the answer."""
        spec = spec_of(type(request))
        assert spec.api_key is not None, "only requests can be sent"
        api = api_of(spec.api_key)
        version = api.stable_versions.last if version is None else version
        self._correlation_id += 1
        self._socket.sendall(encode_request(request, api, version, self._correlation_id, "ottla.testing"))
        return self._answer(api, version)

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Create a topic."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1,
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs.items()),
        )
        (result,) = self.ask(CreateTopicsRequest(topics=(topic,))).topics
        if result.error_code is not ErrorCode.NONE:
            raise NodeSaid(result.error_code, f"cannot create {name!r}: {result.error_message or ''}")

    def append(self, topic: str, partition: int, records: Sequence[tuple[Any, ...]]) -> int:
        """Append records (key, value, headers) as one batch. Returns the offset of the first."""
        now_ms = time.time_ns() // 1_000_000
        batch = build_batch([(number, now_ms, *record) for number, record in enumerate(records)])
        data = PartitionProduceData(partition_index=partition, records=memoryview(batch))
        request = ProduceRequest(
            acks=-1, timeout_ms=30_000, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
        )
        result = self.ask(request, _BY_NAME_PRODUCE).responses[0].partition_responses[0]
        if result.error_code is not ErrorCode.NONE:
            raise NodeSaid(result.error_code, f"cannot write to {topic}-{partition}")
        return int(result.base_offset)

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic."""
        request = DescribeTopicPartitionsRequest(topics=(DescribeTopicPartitionsRequestTopic(name=topic),))
        (found,) = self.ask(request).topics
        if found.error_code is not ErrorCode.NONE:
            raise NodeSaid(found.error_code, f"topic {topic!r}")
        return sorted(partition.partition_index for partition in found.partitions)

    def make_sure_of(self, topic: str) -> list[int]:
        """Return the partitions of a topic, which comes to exist if the question creates it."""
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
        deadline = time.monotonic() + _CREATION_TIMEOUT_S
        while True:
            (found,) = self.ask(request).topics
            errors = (found.error_code, *(partition.error_code for partition in found.partitions))
            error = next((error for error in errors if error is not ErrorCode.NONE), None)
            if error is None:
                return sorted(partition.partition_index for partition in found.partitions)
            if error not in _COMING or time.monotonic() >= deadline:
                raise NodeSaid(error, f"topic {topic!r} was not created")
            time.sleep(_CREATION_PAUSE_S)

    def read(self, topic: str, *, read_committed: bool) -> Iterable[StoredRecord]:
        """Return the records that are in a topic now, partition by partition."""
        for partition in self.partitions(topic):
            offset = self._offset(topic, partition, _EARLIEST, read_committed)
            end = self._offset(topic, partition, _LATEST, read_committed)
            while offset < end:
                data = self._fetch(topic, partition, offset, read_committed)
                aborted = {(item.producer_id, item.first_offset) for item in data.aborted_transactions or ()}
                for batch in iter_batches(memoryview(data.records)):
                    header = batch.header
                    offset = header.next_offset
                    if not header.is_control and not _is_aborted(header, aborted):
                        yield from _stored(partition, batch)
                    elif header.is_control:
                        aborted = {item for item in aborted if not _is_ended(item, header)}

    def _offset(self, topic: str, partition: int, timestamp: int, read_committed: bool) -> int:
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(read_committed),
            topics=(
                ListOffsetsTopic(
                    name=topic,
                    partitions=(ListOffsetsPartition(partition_index=partition, timestamp=timestamp),),
                ),
            ),
        )
        found = self.ask(request).topics[0].partitions[0]
        if found.error_code is not ErrorCode.NONE:
            raise NodeSaid(found.error_code, f"{topic}-{partition}")
        return int(found.offset)

    def _fetch(self, topic: str, partition: int, offset: int, read_committed: bool) -> Any:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            isolation_level=int(read_committed),
            topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
        )
        data = self.ask(request, _BY_NAME_FETCH).responses[0].partitions[0]
        if data.error_code is not ErrorCode.NONE:
            raise NodeSaid(data.error_code, f"cannot read {topic}-{partition}")
        return data

    def _answer(self, api: Api, version: int) -> Any:
        while not (frames := self._frames.feed(data := self._socket.recv(1 << 20))):
            if not data:
                raise ConnectionError("the node closed the connection instead of answering")
        _, response = decode_response(api, version, frames[0])
        return response


def _is_aborted(header: Any, aborted: set[tuple[int, int]]) -> bool:
    return bool(header.is_transactional) and any(
        producer_id == header.producer_id and first_offset <= header.base_offset
        for producer_id, first_offset in aborted
    )


def _is_ended(transaction: tuple[int, int], marker: Any) -> bool:
    producer_id, first_offset = transaction
    return bool(producer_id == marker.producer_id and first_offset < marker.base_offset)


def _stored(partition: int, batch: Any) -> Iterable[StoredRecord]:
    for record in iter_batch_records(batch):
        yield StoredRecord(partition, *record)
