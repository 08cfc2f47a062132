"""ListPartitionReassignments: which partitions move just now."""

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import BOTH, serves
from ottla.quorum.controller.partitions.reassignments import list_reassignments
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


@serves(
    ListPartitionReassignmentsRequest,
    "0",
    on_cluster(Operation.DESCRIBE),
    listeners=BOTH,
    is_forwarded=True,
    cuts=(Cut("topics.partition_indexes", "topics.partitions"),),
)
def list_partition_reassignments(
    ask: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """Answer from the metadata that this node acts on."""
    return list_reassignments(context.node.image, ask)
