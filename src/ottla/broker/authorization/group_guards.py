"""The guards of APIs about groups."""

from collections.abc import Callable
from typing import Any, Final

from ottla.broker.authorization.guards import Serve, guards
from ottla.broker.authorization.refusals import only_error
from ottla.broker.authorization.sorting import change_each, only, sort_out
from ottla.broker.coordinators.internal_topics import find_topology_fault
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.replies import Reply
from ottla.coordination.group.consumer.heartbeat import refused_heartbeat
from ottla.coordination.group.streams.answers import refused_heartbeat as refused_streams_heartbeat
from ottla.coordination.group.streams.topology import all_topic_names
from ottla.security.rights import (
    CLUSTER,
    Operation,
    ResourceType,
    on_cluster,
    on_group,
    on_topic,
    on_transactional_id,
)
from ottla.wire.apis import ApiKey
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.wire.messages.find_coordinator import (
    SEVERAL_FROM,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import NO_PROTOCOL_FROM, JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_READ, _DESCRIBE, _DELETE = (
    on_group(Operation.READ),
    on_group(Operation.DESCRIBE),
    on_group(Operation.DELETE),
)
_TRANSACTION_KEY: Final = 1
_SHARE_KEY: Final = 2


@guards(ApiKey.JOIN_GROUP)
def join_group(ask: JoinGroupRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the group."""
    if context.allows(_READ, ask.group_id):
        return serve(ask)
    return JoinGroupResponse(
        error_code=_DENIED,
        protocol_name=None if context.version >= NO_PROTOCOL_FROM else "",
        leader="",
        member_id="",
        members=(),
    )


@guards(ApiKey.SYNC_GROUP)
def sync_group(ask: SyncGroupRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the group."""
    if context.allows(_READ, ask.group_id):
        return serve(ask)
    return SyncGroupResponse(error_code=_DENIED, assignment=b"")


@guards(ApiKey.HEARTBEAT)
def heartbeat(ask: HeartbeatRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the group."""
    return serve(ask) if context.allows(_READ, ask.group_id) else HeartbeatResponse(error_code=_DENIED)


@guards(ApiKey.LEAVE_GROUP)
def leave_group(ask: LeaveGroupRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for the group."""
    return serve(ask) if context.allows(_READ, ask.group_id) else LeaveGroupResponse(error_code=_DENIED)


@guards(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def consumer_group_heartbeat(
    ask: ConsumerGroupHeartbeatRequest, context: RequestContext, serve: Serve
) -> Any:
    """Ask for the group, and for each topic that is subscribed to by name."""
    if not context.allows(_READ, ask.group_id):
        return refused_heartbeat(_DENIED)
    for name in ask.subscribed_topic_names or ():
        if not context.allows(on_topic(Operation.DESCRIBE), name):
            return refused_heartbeat(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return serve(ask)


@guards(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_group_heartbeat(
    ask: StreamsGroupHeartbeatRequest, context: RequestContext, serve: Serve
) -> Reply:
    """Ask for the group, and for each topic of the topology. Whether topics may be created is seen later."""
    if not context.allows(_READ, ask.group_id):
        return refused_streams_heartbeat(_DENIED).response
    # Names that no topic can have are refused by the handler.
    if ask.topology is not None and find_topology_fault(ask.topology) is None:
        for name in all_topic_names(ask.topology):
            if not context.allows(on_topic(Operation.DESCRIBE), name):
                return refused_streams_heartbeat(ErrorCode.TOPIC_AUTHORIZATION_FAILED).response
    return serve(ask)


@guards(ApiKey.DESCRIBE_GROUPS)
def describe_groups(ask: DescribeGroupsRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for each group, and say what the client may do to it."""

    def refuse(group_id: str) -> DescribedGroup | None:
        if context.allows(_DESCRIBE, group_id):
            return None
        # Kafka gives no sentence here.
        return only_error(DescribedGroup, _DENIED, group_id=group_id, error_message=None)

    answer = sort_out(context, ask, serve, "groups", "groups", refuse, DescribeGroupsResponse)
    if not ask.include_authorized_operations:
        return answer
    return change_each(context, answer, "groups", lambda group: _with_operations(group, context))


def _with_operations(group: DescribedGroup, context: RequestContext) -> DescribedGroup:
    if group.error_code is not ErrorCode.NONE:
        return group
    return replace(group, authorized_operations=context.operations(ResourceType.GROUP, group.group_id))


@guards(ApiKey.LIST_GROUPS)
def list_groups(ask: ListGroupsRequest, context: RequestContext, serve: Serve) -> Reply:
    """Leave out groups that the client may not describe."""
    if context.may(on_cluster(Operation.DESCRIBE), CLUSTER):
        return serve(ask)

    may_see = only(lambda group: context.may(_DESCRIBE, group.group_id))
    return change_each(context, serve(ask), "groups", may_see)


@guards(ApiKey.DELETE_GROUPS)
def delete_groups(ask: DeleteGroupsRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for each group."""
    names = tuple(dict.fromkeys(ask.group_names))

    def refuse(group_id: str) -> DeletableGroupResult | None:
        if context.allows(_DELETE, group_id):
            return None
        return DeletableGroupResult(group_id=group_id, error_code=_DENIED)

    return sort_out(
        context,
        replace(ask, group_names=names),
        serve,
        "group_names",
        "results",
        refuse,
        DeleteGroupsResponse,
    )


@guards(ApiKey.FIND_COORDINATOR)
def find_coordinator(ask: FindCoordinatorRequest, context: RequestContext, serve: Serve) -> Reply:
    """Ask for each group or transactional id. Only brokers look for coordinators of share groups."""
    find_denial = _key_check(ask.key_type, context)
    if context.version < SEVERAL_FROM:
        denial = find_denial(ask.key)
        if denial is None:
            return serve(ask)
        return FindCoordinatorResponse(
            error_code=denial, error_message=denial.name, node_id=-1, host="", port=-1
        )

    def refuse(key: str) -> FoundCoordinator | None:
        denial = find_denial(key)
        if denial is None:
            return None
        return FoundCoordinator(key=key, node_id=-1, host="", port=-1, error_code=denial, error_message="")

    return sort_out(
        context,
        ask,
        serve,
        "coordinator_keys",
        "coordinators",
        refuse,
        FindCoordinatorResponse,
    )


def _key_check(key_type: int, context: RequestContext) -> Callable[[str], ErrorCode | None]:
    if key_type == _TRANSACTION_KEY:
        right, denied = (
            on_transactional_id(Operation.DESCRIBE),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        )
    else:
        right, denied = _DESCRIBE, _DENIED
    if key_type == _SHARE_KEY:
        is_broker = context.allows(on_cluster(Operation.CLUSTER_ACTION), CLUSTER)
        return lambda _: None if is_broker else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return lambda key: None if context.allows(right, key) else denied
