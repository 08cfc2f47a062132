"""Who asks, and what a handler may use to answer.

There is one context for each connection, not for each request: a connection has one request at a time, so the
fields of the current request (`version`, `client_id`, `correlation_id`) stay right until it is answered, also
when the answer is deferred.
"""

from typing import TYPE_CHECKING, Final, TypeVar

from ottla.broker.deferred import Deferred

if TYPE_CHECKING:
    from ottla.broker.node import Broker
    from ottla.quorum.controller.decision import Decide

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")

ANONYMOUS: Final = "User:ANONYMOUS"


class RequestContext:
    """The connection a request came on, and its header."""

    __slots__ = (
        "broker",
        "client_id",
        "correlation_id",
        "listener_name",
        "local_host",
        "local_port",
        "peer_host",
        "principal",
        "version",
    )

    def __init__(self, broker: "Broker", listener_name: str, local: tuple[str, int], peer_host: str) -> None:
        self.broker = broker
        self.listener_name = listener_name
        self.local_host, self.local_port = local
        self.peer_host = peer_host
        self.principal = ANONYMOUS
        self.version = 0
        self.client_id: str | None = None
        self.correlation_id = 0

    def decide(self, decide: "Decide[Ask, Reply]", ask: Ask) -> Deferred[Reply]:
        """Let the controller decide. The reply comes when the decision is committed and published."""
        reply: Deferred[Reply] = Deferred()
        self.broker.controller.handle(decide, ask, self.broker.clock.now_ms(), reply.resolve)
        return reply
