"""AlterShareGroupOffsets: an empty share group goes on from other offsets."""

from ottla.broker.authorization.refusals import refused_part
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.demands import OfEach, OfRequest
from ottla.broker.serving.handlers import serves
from ottla.coordination.group.share.persister import Errors
from ottla.model.uuid import ZERO_UUID
from ottla.security.rights import Operation, on_group, on_topic
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

_UNKNOWN = "This server does not host this topic-partition."


def _refused_topic(
    topic: AlterShareGroupOffsetsRequestTopic, error_code: ErrorCode, context: RequestContext
) -> AlterShareGroupOffsetsResponseTopic:
    """Give the id of the topic, as Kafka does."""
    refusal: AlterShareGroupOffsetsResponseTopic = refused_part(
        topic, AlterShareGroupOffsetsResponseTopic, error_code, {}
    )
    found = context.node.image.topics.find(topic.topic_name)
    return replace(refusal, topic_id=ZERO_UUID if found is None else found.id)


@serves(
    AlterShareGroupOffsetsRequest,
    "0",
    OfRequest(on_group(Operation.READ), "group_id"),
    OfEach(on_topic(Operation.READ), "topics.topic_name", "responses", refuse=_refused_topic),
)
def alter_share_group_offsets(
    ask: AlterShareGroupOffsetsRequest, context: BrokerContext
) -> Deferred[AlterShareGroupOffsetsResponse]:
    """Sort out what does not exist, and let the group coordinator set the rest."""
    groups = context.broker.groups
    if not groups.serves_share_protocol:
        return Deferred.of(_refused(ErrorCode.UNSUPPORTED_VERSION))
    if not ask.group_id:
        return Deferred.of(_refused(ErrorCode.INVALID_GROUP_ID))
    starts = {topic.topic_name: _known(topic, context) for topic in ask.topics}
    answer: Deferred[AlterShareGroupOffsetsResponse] = Deferred()
    groups.coordinator.share_starts.alter(
        ask.group_id,
        starts,
        lambda errors: answer.resolve(_response(ask, errors, context)),
        lambda refused: answer.resolve(_refused(refused.error_code, refused.message)),
    )
    return answer


def _known(topic: AlterShareGroupOffsetsRequestTopic, context: BrokerContext) -> dict[int, int]:
    found = context.broker.image.topics.find(topic.topic_name)
    numbers = () if found is None else found.partitions
    return {
        one.partition_index: one.start_offset for one in topic.partitions if one.partition_index in numbers
    }


def _response(
    ask: AlterShareGroupOffsetsRequest, errors: Errors, context: BrokerContext
) -> AlterShareGroupOffsetsResponse:
    topics = []
    for topic in ask.topics:
        found = context.broker.image.topics.find(topic.topic_name)
        topic_id = ZERO_UUID if found is None else found.id
        partitions = []
        for one in topic.partitions:
            error_code = errors.get((topic_id, one.partition_index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            is_unknown = error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            message = _UNKNOWN if is_unknown else None if error_code is ErrorCode.NONE else error_code.name
            partitions.append(
                AlterShareGroupOffsetsResponsePartition(
                    partition_index=one.partition_index, error_code=error_code, error_message=message
                )
            )
        topics.append(
            AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, topic_id=topic_id, partitions=tuple(partitions)
            )
        )
    return AlterShareGroupOffsetsResponse(responses=tuple(topics))


def _refused(error_code: ErrorCode, message: str | None = None) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=error_code, error_message=message, responses=())
