"""Starting a node, step by step, up to the moment when it serves.

    lock the directories -> take the addresses -> read the metadata -> take away the marks of a clean stop
    -> agree on the metadata -> load the logs -> register the broker -> unfence it -> accept clients

The steps run on the node's loop. A step may be done later, by a call back, and what takes long lets the loop
go in between, so that a node can talk to others before it serves. A step that cannot be done gives a
`NodeFailure` with a sentence for the user. Up to the marks nothing was changed that matters: a start that is
refused leaves a directory that was stopped cleanly.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.broker.controller_channel import ChannelWorld, ClusterController, LocalController
from ottla.broker.controller_server import ControllerParts, ControllerServer
from ottla.broker.lifecycle.bound_listeners import (
    BoundListener,
    ListenerRefused,
    TakenAddress,
    advertised,
    bind,
    check_endpoints,
    with_address,
)
from ottla.broker.lifecycle.format_options import (
    NO_OPTIONS,
    FormatFailure,
    FormatOptions,
    controller_endpoint,
)
from ottla.broker.lifecycle.formatting import check_empty_directories, data_directories, format_missing
from ottla.broker.lifecycle.housekeeping import Housekeeping
from ottla.broker.lifecycle.membership import NotRegistered, join_cluster
from ottla.broker.lifecycle.refused_configs import ConfigRefused, check_configs
from ottla.broker.limits.connection_limits import connection_limits
from ottla.broker.node import Broker, NodeParts
from ottla.broker.quorum_messenger import QuorumMessenger
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.errors import MetadataError, UnknownRecord
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import NodeId, TopicPartition
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.format import METADATA_DIRECTORY
from ottla.quorum.load import UNFINISHED_REPAIR_FILE, is_blank
from ottla.quorum.metadata_log import SyncedMetadata
from ottla.quorum.metadata_quorum import MetadataQuorum, OtherVoters, QuorumSettings, QuorumWorld
from ottla.quorum.voters import Endpoint, VoterIdentity
from ottla.runtime.connections.link import BACK_OFF_MS_MIN, Link, new_peer_memory
from ottla.runtime.connections.peer import PeerMemory, PeerSettings
from ottla.runtime.flusher import Flusher
from ottla.runtime.recovery import LoadingLogs, tell
from ottla.storage.errors import DamagedLog, LogDirectoryOffline, StorageError, UnusableDirectory
from ottla.storage.log import Log
from ottla.storage.log_dirs.directories import LogDirectories, open_directories
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.names import METADATA_PARTITION
from ottla.storage.volume import Volume
from ottla.world.disk import DiskError
from ottla.world.world import World

_logger: Final = logging.getLogger("ottla.startup")
_REASONS: Final = (
    ConfigRefused,
    DiskError,
    FormatFailure,
    InvalidConfig,
    ListenerRefused,
    MetadataError,
    NotRegistered,
    StorageError,
)


class NodeFailure(Exception):
    """The node cannot start, or cannot go on. The message is for its user."""


class NodeOptions(NamedTuple):
    """What the command line says beside the configuration."""

    host: str | None = None
    port: int | None = None
    is_insecure: bool = False
    formats_empty: bool = False
    format: FormatOptions = NO_OPTIONS


class Node:
    """A node that was started: what there is to keep going, and to stop."""

    def __init__(self, broker: Broker, controller: ControllerServer, bound: list[BoundListener]) -> None:
        self.broker = broker
        self.controller = controller
        self.world = broker.world
        self.bound = bound
        self.housekeeping = Housekeeping(broker, broker.world.scheduler)


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
        self._controller: ControllerServer | None = None
        self._channel: ClusterController | None = None
        self._messenger: QuorumMessenger | None = None
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
        if self._controller is not None:
            self._controller.listeners.close()
        if self._channel is not None:
            self._channel.close()
        if self._messenger is not None:
            self._messenger.close()
        if self._directories is not None:
            self._directories.release()
        if isinstance(error, _REASONS):
            failure = NodeFailure(_words(error))
            failure.__cause__ = error
            self._failed(failure)
        else:
            self._failed(error)

    def _give_up(self, error: Exception) -> None:
        """What was decided is in memory and not on disk: there is no way on from here."""
        if self._channel is not None:
            self._channel.close()
        if not self._is_over:
            self._is_over = True
            self._failed(NodeFailure(f"cannot write the metadata: {error}"))

    # The steps

    def _open_directories(self) -> None:
        check_configs(self._configs.node)
        self._configs = with_address(self._configs, self._options.host, self._options.port)
        config, world = self._configs.node, self._world
        check_endpoints(config.listener_endpoints, self._options.is_insecure)
        paths = data_directories(config)
        if not self._options.formats_empty:
            check_empty_directories(world.disk, config, paths)
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

    def _take_addresses(self, directories: LogDirectories) -> None:
        config, world = self._configs.node, self._world
        limits = connection_limits(config, world.connections_max)
        self._addresses = bind(world.network, config.listener_endpoints, limits.send_buffer_bytes)
        self._then(self._open_quorum, directories)

    def _open_quorum(self, directories: LogDirectories) -> None:
        """Open the metadata log, and take part in the quorum until this node knows what the cluster knows."""
        config, world = self._configs.node, self._world
        assert self._flusher is not None, "the directories were opened with it"
        directory = directories.directories[0]
        _check_metadata(directories)
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
        metadata = PublishedMetadata()
        memory = new_peer_memory()
        self._messenger = QuorumMessenger(partial(_make_quorum_link, world, config, memory))
        quorum_world = QuorumWorld(
            directory.volume,
            world.clock,
            world.scheduler.call_later,
            world.random,
            self._give_up,
            self._messenger,
            SyncedMetadata(
                directory.was_clean,
                directory.find_synced(METADATA_PARTITION),
                directory.find_stopped(METADATA_PARTITION),
            ),
            partial(_begin, directories),
        )
        quorum = MetadataQuorum(settings, metadata, quorum_world)
        quorum.start()
        directory.metadata_log = quorum.driver.log
        for damage in quorum.driver.log.damages:
            tell(directory.volume, damage)
        self._channel = ClusterController(
            quorum,
            LocalController(quorum.ask),
            ChannelWorld(world.clock, world.scheduler, partial(_make_link, world, config, memory)),
        )
        names = config.controller_listeners
        own = [address for address in self._addresses if address.listener.name in names]
        controller_parts = ControllerParts(world, quorum, metadata, own)
        self._controller = ControllerServer(config.node_id, cluster_id, self._configs, controller_parts)
        self._controller.listeners.start()
        if quorum.driver.replica.is_only_voter:
            # It commits what it has synced.
            quorum.flush()
        quorum.when_caught_up(partial(self._then, self._make_broker, directories, quorum, metadata))

    def _make_broker(
        self, directories: LogDirectories, quorum: MetadataQuorum, metadata: PublishedMetadata
    ) -> None:
        """Make the broker from what the metadata holds."""
        config, world = self._configs.node, self._world
        assert self._flusher is not None, "the directories were opened with it"
        assert self._channel is not None, "it was made with the quorum"
        names = config.controller_listeners
        parts = NodeParts(
            world=world,
            flusher=self._flusher,
            directories=directories,
            quorum=quorum,
            controller=self._channel,
            addresses=[address for address in self._addresses if address.listener.name not in names],
        )
        cluster_id = directories.directories[0].meta.cluster_id or ""
        broker = Broker(config.node_id, cluster_id, self._configs, metadata, parts)
        _restore_missing(broker)
        self._then(self._load_next, broker, iter(directories.online))

    def _load_next(self, broker: Broker, left: Iterator[LogDirectory]) -> None:
        """Load the logs of one directory, and come again for the others."""
        directory = next(left, None)
        if directory is None:
            broker.partitions.load(broker.image)
            self._then(self._join, broker)
            return
        clock = broker.clock
        started_ms = clock.monotonic_ms()

        def loaded(logs: list[Log]) -> None:
            for log in logs:
                broker.directories.add(directory, log)
            broker.deletions.add_all(plan.deletions)
            _logger.info(
                "loaded %d logs of %s in %d ms, %s",
                len(logs),
                directory.path,
                clock.monotonic_ms() - started_ms,
                "after a clean shutdown" if directory.was_clean else "after an unclean shutdown",
            )
            self._then(self._load_next, broker, left)

        def failed(error: Exception) -> None:
            if not isinstance(error, LogDirectoryOffline):
                self._fail(error)
                return
            _logger.critical("%s", error)
            self._then(self._load_next, broker, left)

        try:
            plan = directory.plan_load(
                lambda topic: broker.partitions.settings_of(broker.image, topic).log, clock.now_ms()
            )
        except LogDirectoryOffline as error:
            failed(error)
            return
        LoadingLogs(self._world, directory.volume, plan.loads, loaded, failed).begin()

    def _join(self, broker: Broker) -> None:
        """Make the broker a member of the cluster."""
        broker.metadata.listen(broker)
        names = self._configs.node.controller_listeners
        bound = [address.listener for address in self._addresses if address.listener.name not in names]
        listeners = advertised(self._configs.node, bound, self._world.network.host_name())
        joined = join_cluster(broker, listeners)
        joined.when_done(lambda _: self._then(self._serve, broker, bound), self._fail)

    def _serve(self, broker: Broker, bound: list[BoundListener]) -> None:
        broker.coordinators.start(broker.image)
        broker.replication.start()
        broker.log_moves.resume()
        assert self._controller is not None, "it was made with the quorum"
        node = Node(broker, self._controller, bound)
        node.housekeeping.start()
        broker.listeners.start()
        self._started(node)


def _words(error: Exception) -> str:
    """Say what keeps a node from starting, and what to do about damaged metadata."""
    if isinstance(error, DamagedLog | MetadataError) and not isinstance(error, OtherVoters | UnknownRecord):
        return (
            f"{error}. Nothing was changed. Run `ottla storage repair` with the same --data or --config: it "
            "shows the damage, keeps a copy of what it changes, and repairs the metadata"
        )
    return str(error)


def _make_link(world: World, config: NodeConfig, memory: PeerMemory, endpoint: Endpoint) -> Link:
    """Return the way to a controller."""
    settings = PeerSettings(
        client_id=f"node-{config.node_id}-to-controller",
        request_timeout_ms=config.controller_socket_timeout_ms,
    )
    return Link(world, memory, endpoint.host, endpoint.port, settings, BACK_OFF_MS_MIN)


def _make_quorum_link(world: World, config: NodeConfig, memory: PeerMemory, host: str, port: int) -> Link:
    """Return the way to another replica of the quorum."""
    settings = PeerSettings(
        client_id=f"raft-client-{config.node_id}",
        connect_timeout_ms=config.controller_quorum_request_timeout_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
    )
    return Link(world, memory, host, port, settings, BACK_OFF_MS_MIN)


def _begin(directories: LogDirectories) -> None:
    """Let the directories be written to."""
    for directory in directories.directories:
        try:
            directory.begin()
        except LogDirectoryOffline as error:
            _logger.critical("%s", error)


def _check_metadata(directories: LogDirectories) -> None:
    """Refuse data that new metadata would know nothing of: all of it would be set aside."""
    first = directories.directories[0]
    if first.volume.disk.exists(f"{first.path}/{UNFINISHED_REPAIR_FILE}"):
        raise DamagedLog(f"a repair of {METADATA_PARTITION} in {first.path} was interrupted")
    if not is_blank(first.volume.disk, f"{first.path}/{METADATA_DIRECTORY}"):
        return
    for directory in directories.directories:
        path = directory.find_data()
        if path is not None:
            raise DamagedLog(f"{METADATA_PARTITION} is empty, but {path} has records: the metadata is lost")


def _restore_missing(broker: Broker) -> None:
    """Make the directories of logs that somebody has removed, so that their loss is noticed.

    And let those say again of which topic they are that have lost it, or they would be set aside.
    """
    directories = broker.directories.online
    for directory in directories:
        for topic_id, number in directory.noted_logs():
            topic = broker.image.topics.find_by_id(topic_id)
            record = None if topic is None else topic.partitions.get(number)
            if topic is None or record is None or broker.node_id not in record.replicas:
                continue
            partition = TopicPartition(topic.name, number)
            if not any(one.has_log(partition) for one in directories):
                directory.restore(partition, topic_id)
            elif directory.has_log(partition) and directory.find_topic_id(partition) is None:
                _logger.warning("%s in %s has no topic id; restoring it", partition, directory.path)
                directory.restore(partition, topic_id)
