"""Lanes: short ways for clients that repeat themselves.

A lane remembers a request that came twice, and serves the next one like it without decoding it. It is a cache
of what the codec and the handler do, made by them, and changes no answer. The lanes of one API and connection
are a `Lanes`.

Whose lanes they are is looked at in one place: a session forgets them all when the client is another
principal or the access rules have changed (`Session.receive`). So a lane is asked only on behalf of the
principal and under the rules that it was learned under, and `learn` asks whether these allow the request.
"""

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from ottla.broker.serving.routes import Pieces, Route

NOT_MINE: Final = object()
"""The request has to go the long way."""


class Lanes(Protocol):
    """The lanes of one connection for one API."""

    def serve(self, frame: memoryview, started_ns: int) -> "Pieces | object | None":
        """Return the pieces of the answer, None if they come later, or `NOT_MINE`: then nothing was done."""

    def learn(self, ask: Any, frame: memoryview, body_at: int, route: "Route") -> None:
        """Take note of a request that goes the long way, before its handler changes it."""
