"""ConsumerGroupDescribe: the state and the members of consumer groups. Each stands for itself."""

from ottla.broker.deferred import Deferred, gather
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.coordination.group.consumer.describe import refused_consumer_description
from ottla.security.rights import Operation, ResourceType, on_group, on_topic
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


@serves(
    ConsumerGroupDescribeRequest,
    "0-1",
    on_group(Operation.DESCRIBE),
    on_topic(Operation.DESCRIBE),
    checked_by=CheckedBy.HANDLER,
    cuts=(Cut("group_ids", "groups"),),
)
def consumer_group_describe(
    ask: ConsumerGroupDescribeRequest, context: BrokerContext
) -> Deferred[ConsumerGroupDescribeResponse]:
    """Describe every group that was asked for."""
    if not context.broker.groups.serves_consumer_protocol:
        refused = (
            refused_consumer_description(group_id, ErrorCode.UNSUPPORTED_VERSION)
            for group_id in ask.group_ids
        )
        return Deferred.of(ConsumerGroupDescribeResponse(groups=tuple(refused)))
    answers: list[Deferred[DescribedGroup]] = []
    for group_id in ask.group_ids:
        if not context.allows(on_group(Operation.DESCRIBE), group_id):
            refusal = refused_consumer_description(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
            answers.append(Deferred.of(refusal))
            continue
        answer: Deferred[DescribedGroup] = Deferred()
        context.broker.groups.coordinator.describe_consumer_group(group_id, answer.resolve)
        answer = answer.then(lambda group: _without_hidden(group, context))
        if ask.include_authorized_operations:
            answer = answer.then(lambda group: _with_operations(group, context))
        answers.append(answer)
    return gather(answers).then(lambda groups: ConsumerGroupDescribeResponse(groups=tuple(groups)))


def _without_hidden(group: DescribedGroup, context: BrokerContext) -> DescribedGroup:
    """Hide the members of a group that reads topics which the client may not describe."""
    names = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if all(context.may(on_topic(Operation.DESCRIBE), name) for name in names):
        return group
    return replace(
        group,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="The group has described topic(s) that the client is not authorized to describe.",
        members=(),
    )


def _with_operations(group: DescribedGroup, context: BrokerContext) -> DescribedGroup:
    if group.error_code is not ErrorCode.NONE:
        return group
    return replace(group, authorized_operations=context.operations(ResourceType.GROUP, group.group_id))
