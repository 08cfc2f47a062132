"""ListPartitionReassignments: which partitions move just now."""

from ottla.broker.authorization.refusals import only_error, refused_part
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import BOTH, serves
from ottla.quorum.controller.partitions.reassignments import list_reassignments
from ottla.security.rights import Operation, on_cluster
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingTopicReassignment,
)


def _refused(
    ask: ListPartitionReassignmentsRequest, error_code: ErrorCode, _context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """Name the partitions that were asked about."""
    topics = [refused_part(topic, OngoingTopicReassignment, error_code, {}) for topic in ask.topics or ()]
    return only_error(ListPartitionReassignmentsResponse, error_code, topics=tuple(topics))


@serves(
    ListPartitionReassignmentsRequest,
    "0",
    OfRequest(on_cluster(Operation.DESCRIBE), refuse=_refused),
    listeners=BOTH,
    is_forwarded=True,
    cuts=(Cut("topics.partition_indexes", "topics.partitions"),),
)
def list_partition_reassignments(
    ask: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """Answer from the metadata that this node acts on."""
    return list_reassignments(context.node.image, ask)
