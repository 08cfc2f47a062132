"""Starting a node, step by step, up to the moment when it serves.

    lock the directories -> take the addresses -> read the metadata -> remove the marks of a clean stop
    -> agree on the metadata -> load the logs -> register the broker -> unfence it -> accept clients

The steps run on the node's loop. A step may be done later, by a call back, and what takes long lets the loop
go in between, so that a node can talk to others before it serves. A step that cannot be done gives a
`NodeFailure` with a sentence for the user. Up to the marks nothing was changed that matters: a start that is
refused leaves a directory that was stopped cleanly.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.broker.authorization.audit import Audit
from ottla.broker.controller.controller_server import ControllerParts, ControllerServer
from ottla.broker.lifecycle import damaged_metadata
from ottla.broker.lifecycle.controller_registration import ControllerRegistration
from ottla.broker.lifecycle.format_options import (
    NO_OPTIONS,
    FormatFailure,
    FormatOptions,
    controller_endpoint,
)
from ottla.broker.lifecycle.formatting import check_empty_directories, format_missing
from ottla.broker.lifecycle.housekeeping import Housekeeping
from ottla.broker.lifecycle.log_loading import LogLoading
from ottla.broker.lifecycle.lost_security import check_security
from ottla.broker.lifecycle.quorum_start import (
    begin_to_write,
    check_metadata,
    make_controller_link,
    make_quorum_link,
    start_quorum,
)
from ottla.broker.lifecycle.refused_configs import ConfigRefused, check_configs
from ottla.broker.limits.connection_limits import connection_limits
from ottla.broker.login.bound_listeners import (
    BoundListener,
    ListenerRefused,
    TakenAddress,
    advertised,
    bind,
    check_endpoints,
    with_address,
)
from ottla.broker.login.making import make_logins, make_peer_security, make_tls
from ottla.broker.logs.data_directories import data_directories
from ottla.broker.membership.membership import NotRegistered
from ottla.broker.node import Broker, NodeParts
from ottla.broker.quorum.controller_channel import ChannelWorld, ClusterController, LocalController
from ottla.broker.quorum.quorum_messenger import QuorumMessenger
from ottla.broker.quorum.quorum_ticks import QuorumTicks
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.errors import MetadataError
from ottla.metadata.image import MetadataImage
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import NodeId
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.metadata_log import SyncedMetadata
from ottla.quorum.metadata_quorum import MetadataQuorum, QuorumSettings, QuorumWorld
from ottla.quorum.random_id import random_id
from ottla.quorum.voters import VoterIdentity
from ottla.runtime.connections.link import new_peer_memory
from ottla.runtime.connections.peer import PeerSecurity
from ottla.runtime.flusher import Flusher
from ottla.runtime.recovery import tell
from ottla.security.refused import SecurityRefused
from ottla.storage.errors import StorageError, UnusableDirectory
from ottla.storage.log_dirs.directories import LogDirectories, open_directories
from ottla.storage.log_dirs.meta_properties import FILE as META_FILE
from ottla.storage.names import METADATA_PARTITION
from ottla.storage.volume import Volume
from ottla.world.disk import DiskError
from ottla.world.scheduler import Timer
from ottla.world.world import World

if TYPE_CHECKING:
    from ottla.broker.login.logins import Logins
    from ottla.broker.login.tls_listeners import TlsListeners

_logger: Final = logging.getLogger("ottla.startup")


class NoQuorum(Exception):
    """The controllers of the cluster cannot be reached, or too few of them run."""


_REASONS: Final = (
    ConfigRefused,
    DiskError,
    FormatFailure,
    InvalidConfig,
    ListenerRefused,
    MetadataError,
    NoQuorum,
    NotRegistered,
    SecurityRefused,
    StorageError,
)


class NodeFailure(Exception):
    """The node cannot start, or cannot go on. The message is for its user."""


class QuorumParts(NamedTuple):
    """What every node has, whatever its roles."""

    world: World
    flusher: Flusher
    directories: LogDirectories
    metadata: PublishedMetadata
    quorum: MetadataQuorum
    ticks: QuorumTicks
    channel: ClusterController
    controller: ControllerServer
    registration: ControllerRegistration | None
    messenger: QuorumMessenger


class NodeOptions(NamedTuple):
    """What the command line says beside the configuration."""

    host: str | None = None
    port: int | None = None
    is_insecure: bool = False
    formats_empty: bool = False
    format: FormatOptions = NO_OPTIONS


class Node:
    """A node that was started: what there is to keep going, and to stop."""

    def __init__(self, parts: QuorumParts, bound: list[BoundListener], broker: Broker | None) -> None:
        """`bound` are the listeners of the broker, or those of the controller if there is no broker."""
        self.parts = parts
        self.bound = bound
        self.has_broker = broker is not None
        self._broker = broker
        self._housekeeping = None if broker is None else Housekeeping(broker, broker.world.scheduler)

    @property
    def broker(self) -> Broker:
        """The broker of a node that has one."""
        assert self._broker is not None, "this node is a controller and no broker"
        return self._broker

    @property
    def housekeeping(self) -> Housekeeping:
        """What a node with a broker does by itself."""
        assert self._housekeeping is not None, "this node is a controller and no broker"
        return self._housekeeping


class NodeStart:
    """The steps of one start. Each begins in a turn of the loop when the one before it is done.

    `started` is called when the node serves. `failed` is called instead when it cannot, and later if a node
    that serves cannot go on: with a `NodeFailure`, or with another error if there is a bug of ours.
    """

    def __init__(
        self,
        configs: EffectiveConfigs,
        options: NodeOptions,
        world: World,
        started: Callable[[Node], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._configs = configs
        self._options = options
        self._world = world
        self._started = started
        self._failed = failed
        self._is_over = False
        # What was taken, to be given back if a later step fails.
        self._directories: LogDirectories | None = None
        self._addresses: list[TakenAddress] = []
        self._flusher: Flusher | None = None
        self._metadata = PublishedMetadata(world.scheduler.report)
        self._audit = Audit(world.clock, configs.node.node_id, world.scheduler.call_later)
        self._tls: TlsListeners | None = None
        self._logins: Logins | None = None
        self._messenger: QuorumMessenger | None = None
        self._parts: QuorumParts | None = None
        self._deadline: Timer | None = None
        world.scheduler.call_soon(self._run, self._open_directories)

    def _run(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            self._fail(error)

    def _then(self, step: Callable[..., None], *args: Any) -> None:
        self._world.scheduler.call_soon(self._run, partial(step, *args))

    def _fail(self, error: Exception) -> None:
        """Give back what was taken, and say why."""
        if self._is_over:
            return
        self._is_over = True
        if self._flusher is not None:
            self._flusher.close()
        for address in self._addresses:
            address.listening.close()
        if self._deadline is not None:
            self._deadline.cancel()
        if self._parts is not None:
            stop_quorum_parts(self._parts)
        elif self._messenger is not None:
            self._messenger.close()
        if self._directories is not None:
            self._directories.release()
        if isinstance(error, _REASONS):
            failure = NodeFailure(_words(error, self._configs.node))
            failure.__cause__ = error
            self._failed(failure)
        else:
            self._failed(error)

    def _give_up(self, error: Exception) -> None:
        """What was decided is in memory and not on disk: there is no way on from here."""
        if self._parts is not None:
            self._parts.channel.close()
        if not self._is_over:
            self._is_over = True
            self._failed(NodeFailure(f"cannot write the metadata: {error}"))

    # The steps

    def _open_directories(self) -> None:
        check_configs(self._configs.node)
        self._configs = with_address(self._configs, self._options.host, self._options.port)
        config, world = self._configs.node, self._world
        check_endpoints(config.listener_endpoints, self._configs, self._options.is_insecure)
        self._tls = make_tls(self._configs)
        self._logins = make_logins(self._configs, world, self._metadata, self._audit)
        paths = data_directories(config)
        if not self._options.formats_empty:
            check_empty_directories(world.disk, config, paths)
        if not all(world.disk.exists(f"{path}/{META_FILE}") for path in paths):
            # An address that is taken leaves no directory behind.
            self._bind()
        formatted = format_missing(
            world.disk, config, paths, world.random, world.clock.now_ms(), self._options.format
        )
        for path in formatted.directories:
            _logger.info("formatted %s for cluster %s", path, formatted.cluster_id)
        chance = world.random
        self._flusher = flusher = Flusher(world.scheduler, world.clock, world.make_syncs)
        volumes = [
            Volume(world.disk, path, lambda bound: chance.randrange(bound) if bound else 0, syncs=flusher)
            for path in paths
        ]
        self._directories = open_directories(volumes, NodeId(config.node_id))
        self._then(self._take_addresses, self._directories)

    def _bind(self) -> None:
        config, world = self._configs.node, self._world
        limits = connection_limits(config, world.connections_max)
        self._addresses = bind(world.network, config.listener_endpoints, limits.send_buffer_bytes)

    def _take_addresses(self, directories: LogDirectories) -> None:
        world = self._world
        if not self._addresses:
            self._bind()
        if self._tls is not None:
            self._addresses = [
                address._replace(
                    listening=self._tls.wrap(address.listener.name, address.listening, world.scheduler)
                )
                for address in self._addresses
            ]
        self._then(self._open_quorum, directories)

    def _open_quorum(self, directories: LogDirectories) -> None:
        """Open the metadata log, and take part in the quorum until this node knows what the cluster knows."""
        config, world, metadata = self._configs.node, self._world, self._metadata
        assert self._flusher is not None, "the directories were opened with it"
        directory = directories.directories[0]
        memory = new_peer_memory()
        security = self._security_to_controllers()
        messenger = QuorumMessenger(partial(make_quorum_link, world, config, memory, security))
        self._messenger = messenger
        quorum = self._start_quorum(directories, messenger)
        make_link = partial(make_controller_link, world, config, memory, security)
        channel = ClusterController(
            quorum, LocalController(quorum.ask), ChannelWorld(world.clock, world.scheduler, make_link)
        )
        controller = self._serve_as_controller(quorum, directory.meta.cluster_id or "")
        if quorum.driver.replica.is_only_voter:
            # It commits what it has synced.
            quorum.flush()
        registration = None
        if config.is_controller:
            incarnation_id = random_id(world.random)
            registration = ControllerRegistration(config, channel, world.scheduler, incarnation_id)
            registration.start()
        ticks = QuorumTicks(quorum, world.scheduler)
        ticks.start()
        self._parts = QuorumParts(
            world,
            self._flusher,
            directories,
            metadata,
            quorum,
            ticks,
            channel,
            controller,
            registration,
            messenger,
        )
        quorum.when_caught_up(
            partial(self._run, lambda: self._check_security(directory.path, metadata.image))
        )
        if config.is_broker:
            self._deadline = world.scheduler.call_later(
                config.initial_broker_registration_timeout_ms, self._no_quorum
            )
            quorum.when_caught_up(partial(self._then, self._make_broker, self._parts))
        else:
            self._then(self._serve_controller, self._parts)

    def _start_quorum(self, directories: LogDirectories, messenger: QuorumMessenger) -> MetadataQuorum:
        """Read the metadata log, and begin to take part in the quorum."""
        config, world = self._configs.node, self._world
        directory = directories.directories[0]
        if damaged_metadata.is_alone(config):
            check_metadata(directories)
        if directory.meta.directory_id is None:
            raise UnusableDirectory(
                directory.path, "its meta.properties has no directory.id: restore the original one"
            )
        cluster_id = directory.meta.cluster_id or ""
        settings = QuorumSettings(
            controller=ControllerSettings(config.node_id, cluster_id, self._configs.layers.static),
            voter=VoterIdentity(config.node_id, directory.meta.directory_id, controller_endpoint(config)),
            config=config,
        )
        quorum_world = QuorumWorld(
            directory.volume,
            world.clock,
            world.scheduler.call_later,
            world.random,
            self._give_up,
            messenger,
            SyncedMetadata(
                directory.was_clean,
                directory.find_synced(METADATA_PARTITION),
                directory.find_stopped(METADATA_PARTITION),
            ),
            partial(begin_to_write, directories),
            partial(self._check_security, directory.path),
        )
        quorum = start_quorum(settings, self._metadata, quorum_world)
        directory.metadata_log = quorum.driver.log
        for damage in quorum.driver.log.damages:
            tell(directory.volume, damage)
        return quorum

    def _serve_as_controller(self, quorum: MetadataQuorum, cluster_id: str) -> ControllerServer:
        """Serve the listeners of the controller, of which a node without that role has none."""
        config = self._configs.node
        own = [address for address in self._addresses if address.listener.name in config.controller_listeners]
        parts = ControllerParts(self._world, quorum, self._metadata, own, self._audit, self._logins)
        controller = ControllerServer(config.node_id, cluster_id, self._configs, parts)
        controller.listeners.start()
        return controller

    def _check_security(self, directory: str, image: MetadataImage) -> None:
        """Refuse rules and users that would mean nothing. Others may bring them after this node has begun."""
        if not self._options.is_insecure:
            check_security(image, self._configs, directory)

    def _security_to_controllers(self) -> PeerSecurity | None:
        config = self._configs.node
        if not config.controller_listeners:
            return None
        return self._peer_security(config.controller_listeners[0], config.sasl_mechanism_controller_protocol)

    def _peer_security(self, listener: str, mechanism: str) -> PeerSecurity | None:
        """Return how to log in to other nodes. A node that has none about it needs no credentials."""
        try:
            security = make_peer_security(self._configs, listener, mechanism, self._world)
        except SecurityRefused:
            config = self._configs.node
            if config.is_controller and not config.controller_quorum_bootstrap_servers:
                others = [
                    one for one in config.controller_quorum_voters if _id_of(one) != str(config.node_id)
                ]
                if not others:
                    return None
            raise
        if security is not None and security.tls is not None and self._tls is not None:
            self._tls.renews(self._configs, listener, security.tls)
        return security

    def _no_quorum(self) -> None:
        self._deadline = None
        config = self._configs.node
        asked = config.controller_quorum_voters or config.controller_quorum_bootstrap_servers
        self._fail(
            NoQuorum(
                f"no leader of the controllers was found in {config.initial_broker_registration_timeout_ms} "
                f"ms: start a majority of them, and check that {', '.join(asked)} can be reached"
            )
        )

    def _serve_controller(self, parts: QuorumParts) -> None:
        """Serve as a controller that is no broker."""
        self._started(Node(parts, [address.listener for address in self._addresses], None))

    def _make_broker(self, parts: QuorumParts) -> None:
        """Make the broker from what the metadata holds."""
        if self._is_over:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        config, directories = self._configs.node, parts.directories
        names = config.controller_listeners
        node_parts = NodeParts(
            world=parts.world,
            flusher=parts.flusher,
            directories=directories,
            quorum=parts.quorum,
            controller=parts.channel,
            addresses=[address for address in self._addresses if address.listener.name not in names],
            audit=self._audit,
            tls=self._tls,
            logins=self._logins,
            peer_security=self._peer_security(
                config.inter_broker_listener, config.sasl_mechanism_inter_broker_protocol
            ),
        )
        cluster_id = directories.directories[0].meta.cluster_id or ""
        broker = Broker(config.node_id, cluster_id, self._configs, parts.metadata, node_parts)
        LogLoading(broker, self._then, self._loaded, self._fail).begin()

    def _loaded(self, broker: Broker) -> None:
        broker.begin_to_follow()
        self._then(self._join, broker)

    def _join(self, broker: Broker) -> None:
        """Make the broker a member of the cluster."""
        names = self._configs.node.controller_listeners
        bound = [address.listener for address in self._addresses if address.listener.name not in names]
        listeners = advertised(self._configs.node, bound, self._world.network.host_name())
        joined = broker.membership.join(listeners)
        joined.when_done(lambda _: self._then(self._serve, broker, bound), self._fail)

    def _serve(self, broker: Broker, bound: list[BoundListener]) -> None:
        # What a coordinator loads must not be damaged, so that comes first.
        broker.replication.start()
        broker.coordinators.start(broker.image)
        broker.log_moves.resume()
        assert self._parts is not None, "it was made with the quorum"
        node = Node(self._parts, bound, broker)
        node.housekeeping.start()
        broker.listeners.start()
        self._started(node)


def _id_of(voter: str) -> str:
    return voter.partition("@")[0]


def stop_quorum_parts(parts: QuorumParts) -> None:
    """Stop what goes on by itself, and close all connections of the controller."""
    parts.ticks.stop()
    if parts.registration is not None:
        parts.registration.stop()
    parts.controller.listeners.close()
    parts.channel.close()
    parts.messenger.close()


def _words(error: Exception, config: NodeConfig) -> str:
    """Say what keeps a node from starting, and what to do about damaged metadata."""
    if damaged_metadata.is_damage(error):
        return f"{error}. {damaged_metadata.next_step(config, data_directories(config)[0])}"
    return str(error)
