"""DescribeTopicPartitions: topics with all that is known of their partitions, page by page (KIP-966).

Topics come in the order of their names. A page ends after a number of partitions, and its cursor says where
the next one begins.
"""

from bisect import bisect_left
from functools import partial
from typing import Final

from ottla.broker.cluster.partition_descriptions import PartitionDescriptions, leader_and_replicas
from ottla.broker.logs.partition import INTERNAL_TOPICS, UNLISTED_TOPICS
from ottla.broker.node import BrokerContext
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.broker.serving.in_turns import AT_ONCE, InTurns, finish
from ottla.metadata.topics import Topic
from ottla.model.topic_names import find_topic_name_fault
from ottla.model.uuid import ZERO_UUID
from ottla.security.rights import NOT_ASKED, Operation, ResourceType, on_topic
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.wire.metadata_records.partitions import PartitionRecord

_NOTHING: Final = ()
_DESCRIBE: Final = on_topic(Operation.DESCRIBE)


@serves(DescribeTopicPartitionsRequest, "0", on_topic(Operation.DESCRIBE), checked_by=CheckedBy.HANDLER)
def describe_topic_partitions(
    ask: DescribeTopicPartitionsRequest, context: BrokerContext
) -> DescribeTopicPartitionsResponse | InTurns[DescribeTopicPartitionsResponse]:
    """Describe one page. Where there are many names, others are served meanwhile."""
    page = _describe_page(ask, context)
    names = len(ask.topics) or len(context.broker.image.topics.names)
    return page if names > AT_ONCE else finish(page)


def _describe_page(
    ask: DescribeTopicPartitionsRequest, context: BrokerContext
) -> InTurns[DescribeTopicPartitionsResponse]:
    broker = context.broker
    topics = broker.image.topics
    names = sorted({topic.name for topic in ask.topics} or topics.names.keys() - UNLISTED_TOPICS)
    denied: list[DescribeTopicPartitionsResponseTopic] = []
    if broker.authorizer.is_active:
        names, denied = yield from _sort_out(names, bool(ask.topics), context)
    cursor = ask.cursor
    if cursor is not None:
        if cursor.partition_index < 0 or (ask.topics and cursor.topic_name not in names):
            return _refused_cursor(ask, cursor)
        names = names[bisect_left(names, cursor.topic_name) :]
    left = max(1, min(ask.response_partition_limit, broker.config.max_request_partition_size_limit))
    living = frozenset(node.node_id for node in broker.endpoints.living(context))
    partitions = PartitionDescriptions(
        partial(_describe_partition, living=living), DescribeTopicPartitionsResponse, context.version
    )
    described: list[DescribeTopicPartitionsResponseTopic] = []
    for place, name in enumerate(names):
        if left <= 0:
            return DescribeTopicPartitionsResponse(
                topics=(*described, *denied), next_cursor=Cursor(topic_name=name, partition_index=0)
            )
        if place % AT_ONCE == AT_ONCE - 1:
            yield None
        topic = topics.find(name)
        if topic is None:
            described.append(_unknown(name, context))
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        page = range(first, min(first + left, len(topic.partitions)))
        described.append(_describe(topic, page, partitions, context))
        left -= len(page)
        if page.stop < len(topic.partitions):
            return DescribeTopicPartitionsResponse(
                topics=(*described, *denied), next_cursor=Cursor(topic_name=name, partition_index=page.stop)
            )
    return DescribeTopicPartitionsResponse(topics=(*described, *denied))


def _sort_out(
    names: list[str], are_named: bool, context: BrokerContext
) -> InTurns[tuple[list[str], list[DescribeTopicPartitionsResponseTopic]]]:
    """Return the topics that the client may see, and refusals of the others if it has named them."""
    may_see = context.allows if are_named else context.may
    visible: list[str] = []
    denied: list[DescribeTopicPartitionsResponseTopic] = []
    for place, name in enumerate(names):
        if may_see(_DESCRIBE, name):
            visible.append(name)
        elif are_named:
            denied.append(_refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, NOT_ASKED))
        if place % AT_ONCE == AT_ONCE - 1:
            yield None
    return visible, denied


def _describe(
    topic: Topic, page: range, partitions: PartitionDescriptions, context: BrokerContext
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions.encode(topic.partitions[number] for number in page),
        topic_authorized_operations=context.operations(ResourceType.TOPIC, topic.name),
    )


def _describe_partition(
    record: PartitionRecord, living: frozenset[int]
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        **leader_and_replicas(record, living),
        eligible_leader_replicas=record.eligible_leader_replicas or _NOTHING,
        last_known_elr=record.last_known_elr or _NOTHING,
    )


def _unknown(name: str, context: BrokerContext) -> DescribeTopicPartitionsResponseTopic:
    is_invalid = find_topic_name_fault(name) is not None
    return _refused(
        name,
        ErrorCode.INVALID_TOPIC_EXCEPTION if is_invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        context.operations(ResourceType.TOPIC, name),
    )


def _refused(name: str, error_code: ErrorCode, operations: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=ZERO_UUID,
        partitions=(),
        topic_authorized_operations=operations,
    )


def _refused_cursor(ask: DescribeTopicPartitionsRequest, cursor: Cursor) -> DescribeTopicPartitionsResponse:
    names = [topic.name for topic in ask.topics] or [cursor.topic_name]
    return DescribeTopicPartitionsResponse(
        topics=tuple(
            DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST, name=name, topic_id=ZERO_UUID, partitions=()
            )
            for name in names
        )
    )
