"""DeleteShareGroupState: the group coordinator deletes the states of partitions."""

from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import serves
from ottla.broker.share.state_requests import answer_partitions
from ottla.coordination.runtime.decision import Answer
from ottla.coordination.share.coordinator import Outcome
from ottla.coordination.share.state import ShareKey
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)


@serves(
    DeleteShareGroupStateRequest,
    "0",
    on_cluster(Operation.CLUSTER_ACTION),
    cuts=(Cut("topics.partitions", "results.partitions"),),
)
def delete_share_group_state(
    ask: DeleteShareGroupStateRequest, context: BrokerContext
) -> Deferred[DeleteShareGroupStateResponse]:
    """Answer every partition on its own."""
    coordinator = context.broker.shares.coordinator

    def begin(key: ShareKey, _one: PartitionData, answer: Answer[Outcome]) -> None:
        coordinator.delete(key, answer)

    return answer_partitions(ask, begin, _result, DeleteStateResult, DeleteShareGroupStateResponse)


def _result(number: int, outcome: Outcome) -> PartitionResult:
    return PartitionResult(partition=number, error_code=outcome.error_code, error_message=outcome.message)
