"""The controller's side of a node: what serves the listeners of the controller.

Other nodes of the quorum, brokers and admin clients (`--bootstrap-controller`) connect to them. It serves as
soon as the quorum is there, long before the node's broker does. A node without the controller role has none.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.authorization.audit import Audit
from ottla.broker.authorization.authorizers import guarded, make_authorizer, use_rules
from ottla.broker.controller.broker_watch import BrokerWatch
from ottla.broker.journal.journal import Journal
from ottla.broker.limits.connection_limits import connection_limits
from ottla.broker.limits.quotas import Quotas
from ottla.broker.login.bound_listeners import TakenAddress
from ottla.broker.quorum.controller_channel import LocalController
from ottla.broker.quorum.features import Features, features_of
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.dispatch import Session
from ottla.broker.serving.large_requests import LARGE_BYTES_MAX
from ottla.broker.serving.routes import Routes
from ottla.broker.serving.served_apis import Listener
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.in_force import ConfigsInForce
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.metadata.published import PublishedMetadata
from ottla.quorum.metadata_quorum import MetadataQuorum
from ottla.quorum.quorum_protocols import KnownLeader
from ottla.runtime.connections.connection import Connection
from ottla.runtime.connections.connection import Session as ConnectionSession
from ottla.runtime.connections.listener import Listeners
from ottla.runtime.turns import Turns
from ottla.world.world import World

if TYPE_CHECKING:
    from ottla.broker.login.logins import Logins


class ControllerParts(NamedTuple):
    """What a controller's side of a node is given when it is made."""

    world: World
    quorum: MetadataQuorum
    metadata: PublishedMetadata
    addresses: Sequence[TakenAddress]
    audit: Audit
    logins: "Logins | None" = None


class ControllerServer:
    """Serves the listeners of the controller. Handlers reach it as the `node` of their context."""

    def __init__(
        self, node_id: int, cluster_id: str, configs: EffectiveConfigs, parts: ControllerParts
    ) -> None:
        world = parts.world
        scheduler, clock = world.scheduler, world.clock
        self._world = world
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.clock = clock
        self.quorum = parts.quorum
        self.controller = LocalController(parts.quorum.ask)
        # The quotas of clients hold where they connect: at their broker.
        self.quotas = Quotas()
        # Never switched on: what a controller is asked, brokers ask.
        self.journal = Journal(clock)
        self.turns = Turns(scheduler, clock, LARGE_BYTES_MAX)
        self.authorizer = make_authorizer(configs.node)
        guard = guarded if self.authorizer.is_active else None
        self.routes = Routes(clock.monotonic_ns, Listener.CONTROLLER, guard)
        self._metadata = parts.metadata
        self._configs = ConfigsInForce(configs, node_id, lambda: parts.metadata.image)
        self.audit = parts.audit
        self.logins = parts.logins
        self.listeners = Listeners(
            scheduler,
            clock,
            connection_limits(self.configs.node, world.connections_max),
            self.new_session,
            world.workers.run,
        )
        for listener, listening in parts.addresses:
            self.listeners.add(listener.name, listening)
        self.broker_watch = BrokerWatch(
            node_id,
            world,
            lambda: self.image,
            lambda: self.quorum.controller is not None,
            parts.quorum.broker_is_gone,
        )
        parts.quorum.when_leader_changes(self._leader_changed)
        use_rules(self.authorizer, self.image.acls)
        parts.metadata.listen(self)

    def new_session(self, connection: Connection) -> ConnectionSession:
        """Begin the conversation with another node, or with an admin client. They may have to log in."""
        context = RequestContext(self, connection, Listener.CONTROLLER)
        session = Session(context, self.routes, connection.answer_later, connection.fail)
        return session if self.logins is None else self.logins.begin(connection, session)

    @property
    def image(self) -> MetadataImage:
        """The metadata that this node acts on: all of it is committed."""
        return self._metadata.image

    def _leader_changed(self, leader: KnownLeader) -> None:
        if leader.node_id == self.node_id:
            self.broker_watch.took_over()

    def prepare(self, _image: MetadataImage, _delta: MetadataDelta, _done: Callable[[], None]) -> bool:
        """Be ready for any metadata."""
        return True

    def metadata_changed(self, _image: MetadataImage, delta: MetadataDelta) -> None:
        """Let new access rules hold, and new limits for connections."""
        if delta.acls:
            use_rules(self.authorizer, delta.acls.changed)
        if delta.configs:
            self._limit_connections()

    def _limit_connections(self) -> None:
        self.listeners.limits = connection_limits(self.configs.node, self._world.connections_max)

    @property
    def configs(self) -> EffectiveConfigs:
        """What holds on this node."""
        return self._configs.now()

    def features(self) -> Features:
        """Return the features that ApiVersions lists."""
        return features_of(self.image, self.quorum)
