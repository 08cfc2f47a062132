"""ListGroups: the groups that this node coordinates, of all kinds."""

from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.demands import OfAnswer
from ottla.broker.serving.handlers import serves
from ottla.security.rights import Operation, on_cluster, on_group
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


@serves(
    ListGroupsRequest,
    "0-5",
    OfAnswer(on_group(Operation.DESCRIBE), "groups.group_id", unless=on_cluster(Operation.DESCRIBE)),
)
def list_groups(ask: ListGroupsRequest, context: BrokerContext) -> Deferred[ListGroupsResponse]:
    """List the groups of all shards."""
    answer: Deferred[list[ListedGroup] | ErrorCode] = Deferred()
    context.broker.groups.coordinator.list_groups(ask.states_filter, ask.types_filter, answer.resolve)
    return answer.then(_as_response)


def _as_response(groups: list[ListedGroup] | ErrorCode) -> ListGroupsResponse:
    if isinstance(groups, ErrorCode):
        return ListGroupsResponse(error_code=groups, groups=())
    return ListGroupsResponse(groups=tuple(groups))
