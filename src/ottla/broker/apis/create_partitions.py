"""CreatePartitions: topics get more partitions."""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse


@handles(CreatePartitionsRequest)
def create_partitions(
    ask: CreatePartitionsRequest, context: RequestContext
) -> Deferred[CreatePartitionsResponse]:
    """Answer when the partitions exist."""
    return context.ask_controller(ask)
