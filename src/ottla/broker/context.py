"""Who asks, and what a handler may use to answer.

There is one context for each connection, not for each request: a connection has one request at a time, so the
fields of the current request (`version`, `client_id`, `correlation_id`) stay right until it is answered, also
when the answer is deferred.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ottla.broker.deferred import Deferred
from ottla.wire.declare import replace

if TYPE_CHECKING:
    from ottla.broker.mutation_quota import MutationCharge
    from ottla.broker.node import Broker
    from ottla.quorum.controller.decision import Decide

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")

ANONYMOUS: Final = "User:ANONYMOUS"


class Client(Protocol):
    """The connection of a client, as far as handlers are concerned."""

    listener_name: str
    local: tuple[str, int]
    peer_host: str

    def mute(self, milliseconds: int) -> None:
        """Read no further request for a while."""


class RequestContext:
    """The connection a request came on, and its header."""

    __slots__ = (
        "abandon",
        "broker",
        "client_id",
        "correlation_id",
        "large_session_id",
        "listener_name",
        "local_host",
        "local_port",
        "mute",
        "peer_host",
        "portion_of",
        "principal",
        "request_bytes",
        "version",
    )

    def __init__(self, broker: "Broker", client: Client) -> None:
        self.broker = broker
        self.listener_name = client.listener_name
        self.local_host, self.local_port = client.local
        self.peer_host = client.peer_host
        self.mute = client.mute
        self.principal = ANONYMOUS
        # What ends the wait for a deferred answer when the client is gone.
        self.abandon: Callable[[], None] | None = None
        self.version = 0
        self.client_id: str | None = None
        self.correlation_id = 0
        self.request_bytes = 0
        # The fetch session that takes so much memory that it ends with the connection; 0 if there is none.
        self.large_session_id = 0
        # How many elements the large request has of which the handler is given a part; 0 if it has all of it.
        self.portion_of = 0

    @property
    def user(self) -> str:
        """The name of the principal, as quotas know it."""
        return self.principal.partition(":")[2]

    def decide_within_quota(
        self, decide: "Decide[Ask, Reply]", ask: Ask, strict_from: int
    ) -> Deferred[Reply]:
        """Let the controller decide on partitions that come and go, which there may be a quota on.

        From version `strict_from` on the API has an error for clients that are over it.
        """
        broker = self.broker
        charge = self.charge_mutations(is_strict=self.version >= strict_from)
        if charge is None:
            return self.decide(decide, ask)

        def throttled(response: Reply) -> Reply:
            throttle_ms = charge.throttle_ms(broker.clock.monotonic_ms())
            if throttle_ms > 0:
                self.mute(throttle_ms)
            return replace(response, throttle_time_ms=throttle_ms)

        return self.decide(decide, ask, charge).then(throttled)

    def charge_mutations(self, *, is_strict: bool) -> "MutationCharge | None":
        """Return what partitions that come and go are charged to; None if there is no quota on them."""
        broker = self.broker
        if not broker.quotas.limits_mutations:
            return None
        config = broker.config
        return broker.quotas.charge_mutations(
            self.user,
            self.client_id or "",
            is_strict,
            config.controller_quota_window_num * config.controller_quota_window_size_seconds,
            broker.clock.monotonic_ms(),
        )

    def decide(
        self, decide: "Decide[Ask, Reply]", ask: Ask, charge: "MutationCharge | None" = None
    ) -> Deferred[Reply]:
        """Let the controller decide. The reply comes when the decision is committed and published."""
        reply: Deferred[Reply] = Deferred()
        if charge is None:
            self.broker.decide(decide, ask, reply.resolve)
        else:
            self.broker.decide(decide, ask, reply.resolve, charge)
        return reply
