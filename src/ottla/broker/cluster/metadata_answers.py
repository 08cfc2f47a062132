"""Answers to Metadata requests, kept encoded: each as a whole, and each topic in it by itself.

Clients of one kind ask the same question again and again. A whole answer stays right as long as topics and
brokers of the image are the very same objects. It also depends on the address the client connected to, since
that is the address it gets, and on what the client may see.

When one topic has changed, all answers are made again, but only that topic is encoded again: images share the
topics that are the same in both.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from ottla.broker.cluster.partition_descriptions import PartitionDescriptions, leader_and_replicas
from ottla.broker.logs.partition import INTERNAL_TOPICS
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.replies import EncodedResponse
from ottla.metadata.image import MetadataImage
from ottla.metadata.topics import Topic
from ottla.model.uuid import Uuid
from ottla.wire.codec import encode, encode_struct
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.metadata_records.partitions import PartitionRecord

BYTES_MAX: Final = 16 << 20
"""How much memory the answers may take, and the topics as much again. A larger answer is not kept."""


class MetadataAnswers:
    """The answers that were asked for since the metadata last changed."""

    def __init__(self) -> None:
        self._topics: object = None
        self._brokers: object = None
        self._size_bytes = 0
        self._answers: dict[Any, EncodedResponse] = {}
        self.described_topics = DescribedTopics()

    def find(self, ask: MetadataRequest, context: RequestContext) -> EncodedResponse | None:
        """Return the answer to a request that was answered before."""
        image: MetadataImage = context.node.image
        if image.topics is not self._topics or image.brokers is not self._brokers:
            self._topics, self._brokers = image.topics, image.brokers
            self._answers.clear()
            self._size_bytes = 0
        return self._answers.get(_key(ask, context))

    def keep(
        self, ask: MetadataRequest, context: RequestContext, response: MetadataResponse
    ) -> EncodedResponse:
        """Encode an answer, and keep it if there is room."""
        encoded = EncodedResponse(encode(response, context.version))
        if self._size_bytes + len(encoded.body) <= BYTES_MAX:
            self._size_bytes += len(encoded.body)
            self._answers[_key(ask, context)] = encoded
        return encoded


def _key(ask: MetadataRequest, context: RequestContext) -> Any:
    return (
        ask,
        context.version,
        context.listener_name,
        context.local_host,
        context.local_port,
        context.node.authorizer.audience(context.principal, context.host),
    )


class DescribedTopics:
    """Topics as they were described, with all their partitions, since the brokers last changed."""

    def __init__(self) -> None:
        self._size_bytes = 0
        # By version, operations and living brokers, and then by id. A topic that has changed is another
        # object; one that was deleted stays until there is no room any more.
        self._kept: dict[Any, dict[Uuid, tuple[Topic, bytes]]] = {}

    def describe(
        self, topics: Iterable[Topic], living: frozenset[int], operations: int, version: int
    ) -> list[bytes]:
        """Return the topics as they lie in an answer of this version."""
        kept = self._kept.setdefault((version, operations, living), {})
        partitions = PartitionDescriptions(
            partial(_describe_partition, living=living, version=version), MetadataResponse, version
        )
        described: list[bytes] = []
        for topic in topics:
            known = kept.get(topic.id)
            if known is None or known[0] is not topic:
                known = kept[topic.id] = topic, _encode_topic(topic, partitions, operations, version)
                self._size_bytes += len(known[1])
            described.append(known[1])
        if self._size_bytes > BYTES_MAX:
            self._kept.clear()
            self._size_bytes = 0
        return described


def _encode_topic(topic: Topic, partitions: PartitionDescriptions, operations: int, version: int) -> bytes:
    described = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions.encode(topic.partitions.values()),
        topic_authorized_operations=operations,
    )
    return encode_struct(described, MetadataResponse, version)


def _describe_partition(
    record: PartitionRecord, living: frozenset[int], version: int
) -> MetadataResponsePartition:
    described = MetadataResponsePartition(**leader_and_replicas(record, living))
    return described if version > 0 else _without_unavailable(described, living)


def _without_unavailable(
    described: MetadataResponsePartition, living: frozenset[int]
) -> MetadataResponsePartition:
    """Leave out replicas that are not available: the first version has no place to say which these are."""
    is_whole = living.issuperset(described.replica_nodes) and living.issuperset(described.isr_nodes)
    if is_whole:
        return described
    has_leader = described.error_code is ErrorCode.NONE
    return replace(
        described,
        error_code=ErrorCode.REPLICA_NOT_AVAILABLE if has_leader else described.error_code,
        replica_nodes=tuple(one for one in described.replica_nodes if one in living),
        isr_nodes=tuple(one for one in described.isr_nodes if one in living),
    )
