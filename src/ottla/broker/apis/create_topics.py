"""CreateTopics: topics are made, each on its own."""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse


@handles(CreateTopicsRequest)
def create_topics(ask: CreateTopicsRequest, context: RequestContext) -> Deferred[CreateTopicsResponse]:
    """Answer when the topics exist: their partitions can be written to at once."""
    return context.ask_controller(ask)
