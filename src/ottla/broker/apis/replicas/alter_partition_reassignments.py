"""AlterPartitionReassignments: partitions begin to move to other brokers, or stop to."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import BOTH, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


@serves(
    AlterPartitionReassignmentsRequest,
    "0-1",
    on_cluster(Operation.ALTER),
    listeners=BOTH,
    is_forwarded=True,
    cuts=(Cut("topics.partitions", "responses.partitions"),),
)
def alter_partition_reassignments(
    ask: AlterPartitionReassignmentsRequest, context: RequestContext
) -> Deferred[AlterPartitionReassignmentsResponse]:
    """Answer when the moves have begun. They take as long as they take."""
    return context.ask_controller(ask)
