"""DeleteShareGroupOffsets: an empty share group forgets where it is in topics."""

from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.demands import OfEach, OfRequest
from ottla.broker.serving.handlers import serves
from ottla.coordination.group.share.offsets import Deletion
from ottla.coordination.group.share.persister import Errors
from ottla.model.uuid import ZERO_UUID
from ottla.security.rights import Operation, on_group, on_topic
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)


@serves(
    DeleteShareGroupOffsetsRequest,
    "0",
    OfRequest(on_group(Operation.DELETE), "group_id"),
    OfEach(on_topic(Operation.READ), "topics.topic_name", "responses", is_request_checked=True),
)
def delete_share_group_offsets(
    ask: DeleteShareGroupOffsetsRequest, context: BrokerContext
) -> Deferred[DeleteShareGroupOffsetsResponse]:
    """Let the group coordinator delete what there is."""
    groups = context.broker.groups
    if not groups.serves_share_protocol:
        return Deferred.of(_refused(ErrorCode.UNSUPPORTED_VERSION))
    if not ask.group_id:
        return Deferred.of(_refused(ErrorCode.INVALID_GROUP_ID))
    answer: Deferred[DeleteShareGroupOffsetsResponse] = Deferred()
    groups.coordinator.share_starts.delete(
        ask.group_id,
        [topic.topic_name for topic in ask.topics],
        lambda deletion, errors: answer.resolve(_response(deletion, errors, context)),
        lambda refused: answer.resolve(_refused(refused.error_code, refused.message)),
    )
    return answer


def _response(deletion: Deletion, errors: Errors, context: BrokerContext) -> DeleteShareGroupOffsetsResponse:
    topics = context.broker.image.topics
    results = [
        DeleteShareGroupOffsetsResponseTopic(
            topic_name=name,
            topic_id=ZERO_UUID,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=(
                "This server does not host this topic-partition."
                if topics.find(name) is None
                else "There is no offset information to delete."
            ),
        )
        for name in deletion.unknown
    ]
    for topic_id in deletion.partitions:
        failed = [
            code for (topic, _), code in errors.items() if topic == topic_id and code is not ErrorCode.NONE
        ]
        found = topics.find_by_id(topic_id)
        results.append(
            DeleteShareGroupOffsetsResponseTopic(
                topic_name="" if found is None else found.name,
                topic_id=topic_id,
                error_code=failed[0] if failed else ErrorCode.NONE,
                error_message=failed[0].name if failed else None,
            )
        )
    return DeleteShareGroupOffsetsResponse(responses=tuple(results))


def _refused(error_code: ErrorCode, message: str | None = None) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=error_code, error_message=message, responses=())
