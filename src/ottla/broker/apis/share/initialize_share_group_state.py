"""InitializeShareGroupState: the group coordinator begins the states of partitions."""

from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import serves
from ottla.broker.share.state_requests import answer_partitions
from ottla.coordination.runtime.decision import Answer
from ottla.coordination.share.coordinator import Outcome
from ottla.coordination.share.state import ShareKey
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)


@serves(
    InitializeShareGroupStateRequest,
    "0",
    on_cluster(Operation.CLUSTER_ACTION),
    cuts=(Cut("topics.partitions", "results.partitions"),),
)
def initialize_share_group_state(
    ask: InitializeShareGroupStateRequest, context: BrokerContext
) -> Deferred[InitializeShareGroupStateResponse]:
    """Answer every partition on its own."""
    coordinator, now_ms = context.broker.shares.coordinator, context.broker.clock.now_ms()

    def begin(key: ShareKey, one: PartitionData, answer: Answer[Outcome]) -> None:
        coordinator.initialize(key, one.state_epoch, one.start_offset, now_ms, answer)

    return answer_partitions(ask, begin, _result, InitializeStateResult, InitializeShareGroupStateResponse)


def _result(number: int, outcome: Outcome) -> PartitionResult:
    return PartitionResult(partition=number, error_code=outcome.error_code, error_message=outcome.message)
