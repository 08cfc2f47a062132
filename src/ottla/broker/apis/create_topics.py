"""CreateTopics: topics are made, each on its own."""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.quorum.controller.new_topics import decide_create_topics
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

_STRICT_FROM = 6


@handles(CreateTopicsRequest)
def create_topics(ask: CreateTopicsRequest, context: RequestContext) -> Deferred[CreateTopicsResponse]:
    """Answer when the topics exist: their partitions can be written to at once."""
    return context.decide_within_quota(decide_create_topics, ask, _STRICT_FROM)
