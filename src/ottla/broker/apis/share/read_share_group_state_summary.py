"""ReadShareGroupStateSummary: where the states of partitions begin, and how much of them is done."""

from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import serves
from ottla.broker.share.state_requests import answer_partitions
from ottla.coordination.runtime.decision import Answer
from ottla.coordination.share.coordinator import Outcome
from ottla.coordination.share.state import UNKNOWN, ShareKey
from ottla.security.rights import Operation, on_cluster
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)


@serves(
    ReadShareGroupStateSummaryRequest,
    "0-1",
    on_cluster(Operation.CLUSTER_ACTION),
    cuts=(Cut("topics.partitions", "results.partitions"),),
)
def read_share_group_state_summary(
    ask: ReadShareGroupStateSummaryRequest, context: BrokerContext
) -> Deferred[ReadShareGroupStateSummaryResponse]:
    """Answer every partition on its own."""
    coordinator = context.broker.shares.coordinator

    def begin(key: ShareKey, _one: PartitionData, answer: Answer[Outcome]) -> None:
        coordinator.summarize(key, answer)

    return answer_partitions(ask, begin, _result, ReadStateSummaryResult, ReadShareGroupStateSummaryResponse)


def _result(number: int, outcome: Outcome) -> PartitionResult:
    state, is_refused = outcome.state, outcome.error_code is not ErrorCode.NONE
    return PartitionResult(
        partition=number,
        error_code=outcome.error_code,
        error_message=outcome.message,
        state_epoch=0 if state is None else state.state_epoch,
        leader_epoch=0 if state is None else state.leader_epoch,
        start_offset=(0 if is_refused else UNKNOWN) if state is None else state.start_offset,
        delivery_complete_count=UNKNOWN if state is None else state.delivery_complete_count,
    )
