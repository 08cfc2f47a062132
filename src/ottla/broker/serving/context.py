"""The sender of a request, and what a handler may use to answer.

There is one context for each connection, not for each request: a connection has one request at a time, so the
fields of the current request (`version`, `client_id`, `correlation_id`) stay right until it is answered, also
when the answer is deferred.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ottla.broker.deferred import Deferred
from ottla.broker.fetch.fetch_session import PartitionKey
from ottla.broker.limits.quotas import Quotas
from ottla.broker.logs.partition import Partition
from ottla.broker.quorum.controller_channel import ControllerChannel
from ottla.broker.quorum.features import Features
from ottla.broker.serving.served_apis import Listener
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.image import MetadataImage
from ottla.quorum.controller.decision import Caller
from ottla.quorum.metadata_quorum import MetadataQuorum
from ottla.runtime.turns import Turns
from ottla.security.authorizer import Authorizer
from ottla.security.hosts import java_address
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.rights import ResourceType, Right
from ottla.wire.apis import ApiKey
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchRequest
from ottla.world.clock import Clock


class Client(Protocol):
    """The connection of a client, as far as handlers are concerned."""

    listener_name: str
    local: tuple[str, int]
    peer_host: str
    peer_port: int

    def mute(self, milliseconds: int) -> None:
        """Read no further request for a while."""

    def has_hung_up(self) -> bool:
        """Say whether the client has closed the connection: it waits for no answer."""


class ClientAudit(Protocol):
    """Who notes what clients were refused, and what they have changed."""

    def denied(self, context: "RequestContext", right: Right, name: str) -> None: ...
    def changed(self, context: "RequestContext", ask: Any) -> None: ...


class ClientJournal(Protocol):
    """Who notes what happens to clients, so that it can be explained later."""

    is_on: bool

    def closed(self, context: "RequestContext") -> None: ...
    def refused(self, context: "RequestContext", errors: list[tuple[ApiKey, ErrorCode]]) -> None: ...
    def login_refused(self, context: "RequestContext", error: ErrorCode) -> None: ...
    def throttled(self, context: "RequestContext", milliseconds: int, quota: str) -> None: ...
    def join_refused(
        self, context: "RequestContext", group_id: str, error: ErrorCode, offers: tuple[str, ...]
    ) -> None: ...


class ServingNode(Protocol):
    """What the handlers of both roles use: a `Broker` has it, and so has a `ControllerServer`."""

    @property
    def node_id(self) -> int: ...
    @property
    def audit(self) -> ClientAudit: ...
    @property
    def authorizer(self) -> Authorizer: ...
    @property
    def cluster_id(self) -> str: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def configs(self) -> EffectiveConfigs: ...
    @property
    def controller(self) -> ControllerChannel: ...
    @property
    def image(self) -> MetadataImage: ...
    @property
    def journal(self) -> ClientJournal: ...
    @property
    def quorum(self) -> MetadataQuorum: ...
    @property
    def quotas(self) -> Quotas: ...
    @property
    def turns(self) -> Turns: ...
    def features(self) -> Features: ...


class RequestContext:
    """The connection a request came on, and its header.

    A handler that is served on the listeners of a controller uses `node`. On those of a broker it is given a
    `BrokerContext`, which knows all parts of the broker.
    """

    __slots__ = (
        "_mute",
        "abandon",
        "client_id",
        "correlation_id",
        "fetched",
        "has_hung_up",
        "host",
        "is_logged_in_by_token",
        "listener",
        "listener_name",
        "local_host",
        "local_port",
        "login",
        "looked_up",
        "node",
        "peer_host",
        "peer_port",
        "portion_of",
        "principal",
        "request_bytes",
        "software",
        "version",
        "when_closed",
        "wrote",
    )

    def __init__(self, node: ServingNode, client: Client, listener: Listener = Listener.BROKER) -> None:
        self.node = node
        self.listener_name = client.listener_name
        self.local_host, self.local_port = client.local
        self.peer_host = client.peer_host
        self.peer_port = client.peer_port
        # The same as access rules write it.
        self.host = java_address(client.peer_host)
        self._mute = client.mute
        self.has_hung_up = client.has_hung_up
        self.principal: Principal = ANONYMOUS
        self.listener = listener
        # By what the client has logged in: a SASL mechanism or "certificate"; None if it has not.
        self.login: str | None = None
        self.is_logged_in_by_token = False
        # What ends the wait for a deferred answer when the client is gone.
        self.abandon: Callable[[], None] | None = None
        # What has to know that the connection is closed.
        self.when_closed: Callable[[], None] | None = None
        self.version = 0
        self.client_id: str | None = None
        self.correlation_id = 0
        self.request_bytes = 0
        # The name and version of the client's software, as ApiVersions has told.
        self.software = ("unknown", "unknown")
        # How many elements the large request has of which the handler is given a part; 0 if it has all of it.
        self.portion_of = 0
        # For the journal: the last fetch with its partitions and its time, and the partitions written to.
        self.fetched: tuple[FetchRequest, Sequence[tuple[PartitionKey, FetchPartition]], int] | None = None
        self.wrote: dict[Partition, int] = {}
        # Also for it: of which partitions the first or the last offset was asked for, which, and the answer.
        self.looked_up: dict[str, tuple[int, int]] = {}

    @property
    def user(self) -> str:
        """The name of the principal, as quotas know it."""
        return self.principal.name

    def mute(self, milliseconds: int, quota: str) -> None:
        """Read no further request for a while: the client is over a quota."""
        self._mute(milliseconds)
        self.node.journal.throttled(self, milliseconds, quota)

    @property
    def may_use_tokens(self) -> bool:
        """Whether the client may ask for delegation tokens: it has logged in, and not by such a token."""
        return self.login is not None and not self.is_logged_in_by_token

    def allows(self, right: Right, name: str) -> bool:
        """Say whether the client may use a right on a resource that it named. A no is audited."""
        if self.node.authorizer.allows(self.principal, self.host, right, name):
            return True
        self.node.audit.denied(self, right, name)
        return False

    def may(self, right: Right, name: str) -> bool:
        """Say the same where a no only means that something is left out of an answer."""
        return self.node.authorizer.allows(self.principal, self.host, right, name)

    def may_some(self, right: Right) -> bool:
        """Say whether there may be a resource that the client may use a right on."""
        return self.node.authorizer.allows_some(self.principal, self.host, right)

    def operations(self, resource_type: ResourceType, name: str) -> int:
        """Return the bit set of what the client may do to a resource."""
        return self.node.authorizer.operations(self.principal, self.host, resource_type, name)

    def ask_controller(self, ask: Any) -> Deferred[Any]:
        """Ask the controller for the client. If the client is over a quota there, it has to wait.

        On a listener of the controller, that is the one of this node, which may not be the active one.
        """
        self.node.audit.changed(self, ask)
        return self.node.controller.ask(ask, self.caller()).then(self._heed_throttle)

    def caller(self, version: int | None = None) -> Caller:
        """Return who the client is. `version` is that of the API to ask in, if it is another one."""
        return Caller(
            self.principal,
            self.client_id or "",
            self.peer_host,
            self.version if version is None else version,
        )

    def closed(self) -> None:
        """Tell those who wait for the end of the connection."""
        if self.when_closed is not None:
            self.when_closed()

    def _heed_throttle(self, response: Any) -> Any:
        if response.throttle_time_ms > 0:
            self.mute(response.throttle_time_ms, "controller_mutation_rate")
        return response
