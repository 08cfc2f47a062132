"""DeleteTopics: topics are deleted, by name or by id."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import BOTH, CheckedBy, serves
from ottla.security.rights import Operation, on_topic
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_topics import DISABLED_FROM, DeleteTopicsRequest, DeleteTopicsResponse


@serves(
    DeleteTopicsRequest,
    "1-6",
    on_topic(Operation.DELETE),
    on_topic(Operation.DESCRIBE),
    checked_by=CheckedBy.GUARD,
    listeners=BOTH,
    is_forwarded=True,
    cuts=(
        Cut("topics", "responses", key=tuple),
        Cut("topic_names", "responses", key=str),
    ),
)
def delete_topics(ask: DeleteTopicsRequest, context: RequestContext) -> Deferred[DeleteTopicsResponse]:
    """Answer when the topics are gone. Their files go later."""
    reply = context.ask_controller(ask)
    return reply if context.version >= DISABLED_FROM else reply.then(_without_disabled)


def _without_disabled(response: DeleteTopicsResponse) -> DeleteTopicsResponse:
    """Clients of the first versions do not know the error that says that topics cannot be deleted here."""
    return replace(
        response,
        responses=tuple(
            replace(one, error_code=ErrorCode.INVALID_REQUEST)
            if one.error_code is ErrorCode.TOPIC_DELETION_DISABLED
            else one
            for one in response.responses
        ),
    )
