"""Lanes: short ways for clients that repeat themselves.

A lane remembers a request that came twice, and serves the next one like it without decoding it. It is a cache
of what the codec and the handler do, made by them, and changes no answer. The lanes of one API and connection
are a `Lanes`.

Whose lanes they are is looked at in one place: a session forgets them all when the client is another
principal or the access rules have changed (`Session.receive`). So a lane is asked only on behalf of the
principal and under the rules that it was learned under, and `learn` asks whether these allow the request.
"""

from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.wire.apis import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.serving.context import RequestContext
    from ottla.broker.serving.routes import Pieces, Route

NOT_MINE: Final = object()
"""The request has to go the long way."""


class Lanes(Protocol):
    """The lanes of one connection for one API."""

    def serve(self, frame: memoryview, started_ns: int) -> "Pieces | object | None":
        """Return the pieces of the answer, None if they come later, or `NOT_MINE`: then nothing was done."""

    def learn(self, ask: Any, frame: memoryview, body_at: int, route: "Route") -> None:
        """Take note of a request that goes the long way, before its handler changes it."""


WITH_LANES: Final = frozenset((ApiKey.PRODUCE, ApiKey.OFFSET_COMMIT))


def new_lanes(
    api_key: ApiKey,
    context: "RequestContext",
    answer_later: "Callable[[Pieces], None]",
    fail: "Callable[[Exception], None]",
) -> Lanes:
    """Return the lanes of an API for a connection. `answer_later` takes an answer that was not ready."""
    # Imported only here: most connections use one of them.
    if api_key is ApiKey.PRODUCE:
        from ottla.broker.produce.produce_lane import ProduceLanes

        return ProduceLanes(context, answer_later, fail)
    from ottla.broker.coordinators.commit_lane import CommitLanes

    return CommitLanes(context, answer_later)
