"""Requests of the quorum's own protocol, as the listeners of a controller serve them."""

from typing import Any

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext


def serve_by_quorum(ask: Any, context: RequestContext) -> Deferred[Any]:
    """Let this node's replica of the quorum answer, maybe later."""
    response: Deferred[Any] = Deferred()
    is_gone = False

    def abandon() -> None:
        nonlocal is_gone
        is_gone = True

    def answer(value: Any) -> None:
        if not is_gone:
            response.resolve(value)

    context.abandon = abandon
    context.node.quorum.receive(ask, context.version, context.listener_name, answer)
    return response
