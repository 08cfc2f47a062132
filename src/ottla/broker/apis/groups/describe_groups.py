"""DescribeGroups: the state and the members of classic groups. Each stands for itself."""

from ottla.broker.coordinators.clients import client_of
from ottla.broker.deferred import Deferred, gather
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfEach
from ottla.broker.serving.handlers import serves
from ottla.security.rights import Operation, ResourceType, on_group
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse


@serves(
    DescribeGroupsRequest,
    "0-6",
    OfEach(on_group(Operation.DESCRIBE), "groups", "groups", says={"error_message": None}),
    cuts=(Cut("groups", "groups"),),
)
def describe_groups(ask: DescribeGroupsRequest, context: BrokerContext) -> Deferred[DescribeGroupsResponse]:
    """Describe every group that was asked for."""
    answers: list[Deferred[DescribedGroup]] = []
    for group_id in ask.groups:
        answer: Deferred[DescribedGroup] = Deferred()
        context.broker.groups.coordinator.describe_group(group_id, client_of(context), answer.resolve)
        if ask.include_authorized_operations:
            answer = answer.then(lambda group: _with_operations(group, context))
        answers.append(answer)
    return gather(answers).then(lambda groups: DescribeGroupsResponse(groups=tuple(groups)))


def _with_operations(group: DescribedGroup, context: BrokerContext) -> DescribedGroup:
    if group.error_code is not ErrorCode.NONE:
        return group
    return replace(group, authorized_operations=context.operations(ResourceType.GROUP, group.group_id))
