"""ReadShareGroupState: the leaders of partitions read states, and fence the leaders before them."""

from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import serves
from ottla.broker.share.state_requests import answer_partitions
from ottla.coordination.runtime.decision import Answer
from ottla.coordination.share.coordinator import Outcome
from ottla.coordination.share.state import ShareKey
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)


@serves(
    ReadShareGroupStateRequest,
    "0",
    on_cluster(Operation.CLUSTER_ACTION),
    cuts=(Cut("topics.partitions", "results.partitions"),),
)
def read_share_group_state(
    ask: ReadShareGroupStateRequest, context: BrokerContext
) -> Deferred[ReadShareGroupStateResponse]:
    """Answer every partition on its own."""
    coordinator, now_ms = context.broker.shares.coordinator, context.broker.clock.now_ms()

    def begin(key: ShareKey, one: PartitionData, answer: Answer[Outcome]) -> None:
        coordinator.read(key, one.leader_epoch, now_ms, answer)

    return answer_partitions(ask, begin, _result, ReadStateResult, ReadShareGroupStateResponse)


def _result(number: int, outcome: Outcome) -> PartitionResult:
    state = outcome.state
    return PartitionResult(
        partition=number,
        error_code=outcome.error_code,
        error_message=outcome.message,
        state_epoch=0 if state is None else state.state_epoch,
        start_offset=0 if state is None else state.start_offset,
        state_batches=tuple(
            StateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in (() if state is None else state.batches)
        ),
    )
