"""AlterPartitionReassignments: partitions begin to move to other brokers, or stop to."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import handles
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


@handles(AlterPartitionReassignmentsRequest, Cut("topics.partitions", "responses.partitions"))
def alter_partition_reassignments(
    ask: AlterPartitionReassignmentsRequest, context: RequestContext
) -> Deferred[AlterPartitionReassignmentsResponse]:
    """Answer when the moves have begun. They take as long as they take."""
    return context.ask_controller(ask)
