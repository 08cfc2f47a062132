"""The guards of APIs about share groups."""

from typing import Any, Final

from ottla.broker.authorization.guards import Serve, guards
from ottla.broker.authorization.refusals import only_error
from ottla.broker.authorization.sorting import sort_out
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.replies import Reply, then
from ottla.coordination.group.share.heartbeat import refused_heartbeat
from ottla.model.uuid import ZERO_UUID
from ottla.security.rights import CLUSTER, Operation, on_cluster, on_group, on_topic
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.declare import Message, replace, spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_READ_TOPIC: Final = on_topic(Operation.READ)
_CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@guards(ApiKey.SHARE_GROUP_HEARTBEAT)
def share_group_heartbeat(ask: ShareGroupHeartbeatRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the group, and for each topic that is subscribed to."""
    if not context.allows(on_group(Operation.READ), ask.group_id):
        return refused_heartbeat(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    for name in ask.subscribed_topic_names or ():
        if not context.allows(on_topic(Operation.DESCRIBE), name):
            return refused_heartbeat(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return serve(ask)


@guards(ApiKey.ALTER_SHARE_GROUP_OFFSETS)
def alter_share_group_offsets(
    ask: AlterShareGroupOffsetsRequest, context: RequestContext, serve: Serve
) -> Any:
    """Ask for the group, and for each topic."""
    if not context.allows(on_group(Operation.READ), ask.group_id):
        return only_error(AlterShareGroupOffsetsResponse, ErrorCode.GROUP_AUTHORIZATION_FAILED)

    def refuse(topic: AlterShareGroupOffsetsRequestTopic) -> Any:
        if context.allows(_READ_TOPIC, topic.topic_name):
            return None
        found = context.node.image.topics.find(topic.topic_name)
        return AlterShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name,
            topic_id=ZERO_UUID if found is None else found.id,
            partitions=tuple(
                only_error(
                    AlterShareGroupOffsetsResponsePartition,
                    _TOPIC_DENIED,
                    partition_index=one.partition_index,
                )
                for one in topic.partitions
            ),
        )

    return sort_out(context, ask, serve, "topics", "responses", refuse, AlterShareGroupOffsetsResponse)


@guards(ApiKey.DELETE_SHARE_GROUP_OFFSETS)
def delete_share_group_offsets(
    ask: DeleteShareGroupOffsetsRequest, context: RequestContext, serve: Serve
) -> Any:
    """Ask for the group, and for each topic."""
    if not context.allows(on_group(Operation.DELETE), ask.group_id):
        return only_error(DeleteShareGroupOffsetsResponse, ErrorCode.GROUP_AUTHORIZATION_FAILED)

    denied = tuple(
        only_error(DeleteShareGroupOffsetsResponseTopic, _TOPIC_DENIED, topic_name=topic.topic_name)
        for topic in ask.topics
        if not context.allows(_READ_TOPIC, topic.topic_name)
    )
    allowed = tuple(topic for topic in ask.topics if context.may(_READ_TOPIC, topic.topic_name))

    def put_together(response: DeleteShareGroupOffsetsResponse) -> DeleteShareGroupOffsetsResponse:
        if response.error_code is not ErrorCode.NONE:
            # What is wrong with the group is said before anything about its topics.
            return response
        return replace(response, responses=(*denied, *response.responses))

    return then(serve(replace(ask, topics=allowed)), put_together)


_STATE_RESULTS: Final = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (
        initialize_share_group_state.InitializeStateResult,
        initialize_share_group_state.PartitionResult,
    ),
    ApiKey.READ_SHARE_GROUP_STATE: (
        read_share_group_state.ReadStateResult,
        read_share_group_state.PartitionResult,
    ),
    ApiKey.WRITE_SHARE_GROUP_STATE: (
        write_share_group_state.WriteStateResult,
        write_share_group_state.PartitionResult,
    ),
    ApiKey.DELETE_SHARE_GROUP_STATE: (
        delete_share_group_state.DeleteStateResult,
        delete_share_group_state.PartitionResult,
    ),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (
        read_share_group_state_summary.ReadStateSummaryResult,
        read_share_group_state_summary.PartitionResult,
    ),
}
"""What the answers of a share coordinator consist of."""


@guards(*_STATE_RESULTS)
def share_group_state(ask: Any, context: RequestContext, serve: Serve) -> Reply:
    """Only brokers ask share coordinators. A refusal is given for each partition."""
    if context.allows(on_cluster(Operation.CLUSTER_ACTION), CLUSTER):
        return serve(ask)
    key = spec_of(type(ask)).api_key
    assert key is not None, "only requests are guarded"
    api = api_of(key)
    topic_result, partition_result = _STATE_RESULTS[api.key]
    refusal: Message = api.response(
        results=tuple(
            topic_result(
                topic_id=topic.topic_id,
                partitions=tuple(
                    only_error(partition_result, _CLUSTER_DENIED, partition=one.partition)
                    for one in topic.partitions
                ),
            )
            for topic in ask.topics
        )
    )
    return refusal
