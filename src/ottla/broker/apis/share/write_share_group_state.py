"""WriteShareGroupState: the leaders of partitions write what became of records."""

from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import serves
from ottla.broker.share.state_requests import answer_partitions
from ottla.coordination.runtime.decision import Answer
from ottla.coordination.share.coordinator import Outcome, WrittenState
from ottla.coordination.share.state import PartitionUpdate, ShareKey
from ottla.coordination.share.state_batches import StateBatch
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)


@serves(
    WriteShareGroupStateRequest,
    "0-1",
    on_cluster(Operation.CLUSTER_ACTION),
    cuts=(Cut("topics.partitions", "results.partitions"),),
)
def write_share_group_state(
    ask: WriteShareGroupStateRequest, context: BrokerContext
) -> Deferred[WriteShareGroupStateResponse]:
    """Answer every partition on its own."""
    coordinator, now_ms = context.broker.shares.coordinator, context.broker.clock.now_ms()

    def begin(key: ShareKey, one: PartitionData, answer: Answer[Outcome]) -> None:
        batches = tuple(
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in one.state_batches
        )
        update = PartitionUpdate(one.leader_epoch, one.start_offset, one.delivery_complete_count, batches)
        coordinator.write(key, WrittenState(one.state_epoch, update), now_ms, answer)

    return answer_partitions(ask, begin, _result, WriteStateResult, WriteShareGroupStateResponse)


def _result(number: int, outcome: Outcome) -> PartitionResult:
    return PartitionResult(partition=number, error_code=outcome.error_code, error_message=outcome.message)
