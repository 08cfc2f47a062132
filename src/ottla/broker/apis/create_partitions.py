"""CreatePartitions: topics get more partitions."""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.quorum.controller.new_topics import decide_create_partitions
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

_STRICT_FROM = 3


@handles(CreatePartitionsRequest)
def create_partitions(
    ask: CreatePartitionsRequest, context: RequestContext
) -> Deferred[CreatePartitionsResponse]:
    """Answer when the partitions exist."""
    return context.decide_within_quota(decide_create_partitions, ask, _STRICT_FROM)
