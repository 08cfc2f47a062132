"""DeleteGroups: groups go, with their offsets. Each stands for itself."""

from ottla.broker.deferred import Deferred, gather
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfEach
from ottla.broker.serving.handlers import serves
from ottla.security.rights import Operation, on_group
from ottla.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


@serves(
    DeleteGroupsRequest,
    "0-2",
    OfEach(on_group(Operation.DELETE), "group_names", "results", drops_repeated=True),
    cuts=(Cut("group_names", "results", key=str, drops_repeated=True),),
)
def delete_groups(ask: DeleteGroupsRequest, context: BrokerContext) -> Deferred[DeleteGroupsResponse]:
    """Delete one group after the other. A group that is named twice is deleted once."""
    broker = context.broker
    answers: list[Deferred[DeletableGroupResult]] = []
    for group_id in dict.fromkeys(ask.group_names):
        answer: Deferred[DeletableGroupResult] = Deferred()
        broker.groups.coordinator.delete_group(group_id, answer.resolve)
        answers.append(answer)
    return gather(answers).then(lambda results: DeleteGroupsResponse(results=tuple(results)))
