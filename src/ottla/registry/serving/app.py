"""The registry's API, as the application asks it."""

from typing import Any

from ottla.registry.checking.fair_places import REQUESTER
from ottla.registry.service import Registry
from ottla.registry.serving import bodies
from ottla.registry.serving.call import Call, Change, NoContent, Text
from ottla.registry.serving.forwarding import forward
from ottla.registry.serving.paths import without_context
from ottla.registry.serving.routes import ROUTES
from ottla.satellite.app import Api, Query, Received, Reply, Route, encode_json


class RegistryApi(Api):
    """The API of one instance."""

    routes = ROUTES
    body_types = bodies.BODY_TYPES

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def answer_type(self, accept: str | None) -> str:
        """Return the content type of an answer: the first that the client takes."""
        return bodies.answer_type(accept)

    def rewritten(self, path: str, query: Query) -> tuple[str, Query]:
        """Return the path without the context that it may begin with."""
        return without_context(path, query)

    async def answer(self, route: Route, received: Received, content_type: str) -> Reply:
        """Answer, or have a change written by the instance that writes."""
        registry = self._registry
        REQUESTER.set(received.user or received.address)
        call = Call(registry, received.path, received.query, received.data)
        answer = await registry.answers.settle(lambda: route.handler(call))
        if isinstance(answer, Change):
            if not registry.is_leader:
                forwarded = await forward(registry, received)
                if forwarded is not None:
                    return forwarded
            show, written = answer.show, await registry.change(answer.decide)
            answer = await registry.answers.settle(lambda: show(written))
        return _reply(answer, content_type)


def _reply(answer: Any, content_type: str) -> Reply:
    if isinstance(answer, NoContent):
        return Reply(204)
    return Reply(200, answer.encode() if isinstance(answer, Text) else encode_json(answer), content_type)
