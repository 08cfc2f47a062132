"""ShareGroupDescribe: the state and the members of share groups. Each stands for itself."""

from ottla.broker.deferred import Deferred, gather
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.coordination.group.share.describe import refused_share_description
from ottla.security.rights import Operation, ResourceType, on_group, on_topic
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


@serves(
    ShareGroupDescribeRequest,
    "1",
    on_group(Operation.DESCRIBE),
    on_topic(Operation.DESCRIBE),
    checked_by=CheckedBy.HANDLER,
    cuts=(Cut("group_ids", "groups"),),
)
def share_group_describe(
    ask: ShareGroupDescribeRequest, context: BrokerContext
) -> Deferred[ShareGroupDescribeResponse]:
    """Describe every group that was asked for."""
    answers = [_describe(group_id, ask, context) for group_id in ask.group_ids]
    return gather(answers).then(lambda groups: ShareGroupDescribeResponse(groups=tuple(groups)))


def _describe(
    group_id: str, ask: ShareGroupDescribeRequest, context: BrokerContext
) -> Deferred[DescribedGroup]:
    groups = context.broker.groups
    if not groups.serves_share_protocol:
        return Deferred.of(refused_share_description(group_id, ErrorCode.UNSUPPORTED_VERSION))
    if not context.allows(on_group(Operation.DESCRIBE), group_id):
        return Deferred.of(refused_share_description(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    answer: Deferred[DescribedGroup] = Deferred()
    groups.coordinator.describe_share_group(group_id, answer.resolve)
    if ask.include_authorized_operations:
        answer = answer.then(lambda group: _with_operations(group, context))
    return answer.then(lambda group: _without_hidden(group, context))


def _without_hidden(group: DescribedGroup, context: BrokerContext) -> DescribedGroup:
    """Say nothing of a group that reads topics which the client may not describe."""
    names = {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
    if all(context.may(on_topic(Operation.DESCRIBE), name) for name in names):
        return group
    return refused_share_description(
        group.group_id,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "The group has described topic(s) that the client is not authorized to describe.",
    )


def _with_operations(group: DescribedGroup, context: BrokerContext) -> DescribedGroup:
    if group.error_code is not ErrorCode.NONE:
        return group
    return replace(group, authorized_operations=context.operations(ResourceType.GROUP, group.group_id))
