"""ConsumerGroupDescribe: the state and the members of consumer groups. Each stands for itself."""

from ottla.broker.deferred import Deferred, gather
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import handles
from ottla.coordination.group.consumer.describe import refused_consumer_description
from ottla.security.rights import ALL_ON_GROUP
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


@handles(ConsumerGroupDescribeRequest, Cut("group_ids", "groups"))
def consumer_group_describe(
    ask: ConsumerGroupDescribeRequest, context: RequestContext
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
        answer: Deferred[DescribedGroup] = Deferred()
        context.broker.groups.coordinator.describe_consumer_group(group_id, answer.resolve)
        answers.append(answer.then(_with_operations) if ask.include_authorized_operations else answer)
    return gather(answers).then(lambda groups: ConsumerGroupDescribeResponse(groups=tuple(groups)))


def _with_operations(group: DescribedGroup) -> DescribedGroup:
    if group.error_code is not ErrorCode.NONE:
        return group
    return replace(group, authorized_operations=ALL_ON_GROUP)
