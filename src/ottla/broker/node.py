"""The broker of a node: everything that handlers reach through their context.

One thread, one event loop, no locks. What blocks (syncs, cold reads, compaction, removing files) is done by
workers, which hand their results back to the loop. All of these come from the broker's `World`: there is
nothing here, or in the parts, that knows whether it is the real one or a simulated one.
"""

import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.authorization.audit import Audit
from ottla.broker.authorization.authorizers import guarded, make_authorizer, use_rules
from ottla.broker.cluster.endpoints import Endpoints
from ottla.broker.cluster.metadata_answers import MetadataAnswers
from ottla.broker.coordinators.coordinators import Coordinators
from ottla.broker.coordinators.producer_ids import ProducerIds
from ottla.broker.fetch.fetch_session import FetchSessions
from ottla.broker.fetch.parked_fetches import ParkedFetches
from ottla.broker.journal.journal import Journal
from ottla.broker.limits.connection_limits import connection_limits
from ottla.broker.limits.connection_rates import ConnectionRates
from ottla.broker.limits.quotas import Quotas
from ottla.broker.login.bound_listeners import TakenAddress
from ottla.broker.logs.data_directories import cordoned_directories
from ottla.broker.logs.deletions import Deletions
from ottla.broker.logs.directory_reports import DirectoryReports
from ottla.broker.logs.leaving_logs import LeavingLogs
from ottla.broker.logs.log_moves import LogMoves
from ottla.broker.logs.partition import Partition
from ottla.broker.logs.partitions import Partitions
from ottla.broker.logs.scrubber import Scrubber
from ottla.broker.membership.membership import Membership
from ottla.broker.node_events import NodeEvents
from ottla.broker.produce.delayed_produce import DelayedProduces
from ottla.broker.produce.openings import Openings
from ottla.broker.quorum.controller_channel import ControllerChannel
from ottla.broker.quorum.features import Features, features_of
from ottla.broker.replication.healing import Healing
from ottla.broker.replication.replication import Replication
from ottla.broker.serving.context import Client, RequestContext
from ottla.broker.serving.dispatch import Session
from ottla.broker.serving.large_requests import LARGE_BYTES_MAX
from ottla.broker.serving.routes import Routes
from ottla.broker.serving.served_apis import Listener
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.in_force import ConfigsInForce
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import DEFAULT_BROKERS, ConfigResource, MetadataImage
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.quorum.metadata_quorum import MetadataQuorum
from ottla.quorum.random_id import random_id
from ottla.runtime.connections.connection import Connection
from ottla.runtime.connections.connection import Session as ConnectionSession
from ottla.runtime.connections.listener import Listeners
from ottla.runtime.connections.peer import PeerSecurity
from ottla.runtime.flusher import Flusher
from ottla.runtime.turns import Turns
from ottla.security.authorizer import Authorizer
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.storage.log_dirs.directories import LogDirectories
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.log_dirs.directory_checkpoints import CheckpointWrite
from ottla.storage.syncing import committed
from ottla.wire.config_kinds import ResourceType
from ottla.world.disk import DiskError
from ottla.world.world import World

if TYPE_CHECKING:
    from ottla.broker.coordinators.groups import Groups
    from ottla.broker.coordinators.shares import Shares
    from ottla.broker.coordinators.transactions import Transactions
    from ottla.broker.journal.writing import JournalWriter
    from ottla.broker.login.logins import Logins
    from ottla.broker.login.tls_listeners import TlsListeners
    from ottla.broker.produce.registered_schemas import RegisteredSchemas
    from ottla.broker.share.persister import SharePersister
    from ottla.broker.share.sharing import Sharing
    from ottla.broker.telemetry.telemetry import Telemetry

_logger: Final = logging.getLogger("ottla.broker")


class NodeParts(NamedTuple):
    """What a broker is given when it is made."""

    world: World
    flusher: Flusher
    directories: LogDirectories
    quorum: MetadataQuorum
    controller: ControllerChannel
    addresses: Sequence[TakenAddress]
    audit: Audit
    tls: "TlsListeners | None" = None
    logins: "Logins | None" = None
    peer_security: PeerSecurity | None = None
    """How this broker logs in to others."""


class BrokerContext(RequestContext):
    """A client of the broker: the context of handlers that use parts of the broker which controllers lack."""

    __slots__ = ("broker", "large_session_id")

    def __init__(self, broker: "Broker", client: Client) -> None:
        super().__init__(broker, client)
        self.broker = broker
        # The fetch session that takes so much memory that it ends with the connection; 0 if there is none.
        self.large_session_id = 0

    def closed(self) -> None:
        """Tell those who wait for the end of the connection."""
        if self.large_session_id:
            self.broker.fetch_sessions.end(self.large_session_id)
        super().closed()


class Broker:
    """One node's broker. The parts are public: a handler uses those that its API is about."""

    def __init__(
        self,
        node_id: int,
        cluster_id: str,
        configs: EffectiveConfigs,
        metadata: PublishedMetadata,
        parts: NodeParts,
    ) -> None:
        world = parts.world
        scheduler, clock = world.scheduler, world.clock
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.metadata = metadata
        self.events = NodeEvents(metadata, scheduler.report)
        self._configs = ConfigsInForce(configs, node_id, lambda: metadata.image)
        self.world = world
        self.quorum = parts.quorum
        self.clock = clock
        self.workers = world.workers
        self.random = world.random
        self.flusher = parts.flusher
        self.directories = parts.directories
        self.controller = parts.controller
        self.tls = parts.tls
        self.deletions = Deletions(scheduler, clock, world.disk, world.workers.run)
        self.leaving_logs = LeavingLogs(scheduler, self.deletions.add, self.names_changed)
        self.partitions: Partitions = Partitions(
            node_id,
            self.directories,
            self._configs.now,
            self,
            clock,
            self.leaving_logs,
            self.metadata.act,
        )
        self.parked_fetches = ParkedFetches(scheduler)
        self.fetch_sessions = FetchSessions(
            self.config.max_incremental_fetch_session_cache_slots, lambda: self.random.randrange(1, 2**31)
        )
        self.delayed_produces = DelayedProduces(clock)
        self.quotas = Quotas(self.config.quota_window_num, self.config.quota_window_size_seconds * 1000)
        self.endpoints = Endpoints(node_id, self.config.advertised_listeners is not None)
        self.broker_epoch = -1
        self.replication: Replication = Replication(self, scheduler)
        self.replicating = self.replication
        self.healing = Healing(self, scheduler)
        self.scrubber = Scrubber(self, scheduler, self.healing.found)
        self.metadata_answers = MetadataAnswers()
        self.producer_ids = ProducerIds(self)
        self.coordinators = Coordinators(self, scheduler)
        self.log_moves = LogMoves(self, scheduler)
        self.directory_reports = DirectoryReports(self, scheduler)
        self.journal = Journal(clock)
        self.authorizer: Authorizer = make_authorizer(self.config)
        self.routes = self._make_routes()
        self.audit = parts.audit
        self.logins = parts.logins
        self.peer_security = parts.peer_security
        self.turns = Turns(scheduler, clock, LARGE_BYTES_MAX)
        self.openings = Openings(world.openers.run, self.turns, clock, lambda: self.registered_schemas)
        self.membership = Membership(self, scheduler, self.new_id())
        self.connection_rates = ConnectionRates(
            self.config.quota_window_num, self.config.quota_window_size_seconds * 1000
        )
        self.listeners = self._make_listeners(parts.addresses)
        self._listen()
        self._use_configs()

    def _make_routes(self) -> Routes:
        return Routes(
            self.clock.monotonic_ns,
            Listener.BROKER,
            guarded if self.authorizer.is_active else None,
            with_unstable=self.config.unstable_api_versions_enable,
        )

    def _make_listeners(self, addresses: Sequence[TakenAddress]) -> Listeners:
        listeners = Listeners(
            self.world.scheduler,
            self.clock,
            connection_limits(self.config, self.world.connections_max),
            self.new_session,
            self.workers.run,
            self.connection_rates.admit,
        )
        for listener, listening in addresses:
            listeners.add(listener.name, listening)
        return listeners

    def _use_configs(self) -> None:
        """Let the configs of the start hold. A start with some that cannot be used fails."""
        for use in self.events.of_configs:
            use()

    def new_session(self, connection: Connection) -> ConnectionSession:
        """Begin the conversation with a client, which may have to log in first."""
        context = BrokerContext(self, connection)
        self.journal.opened(context)
        session = Session(context, self.routes, connection.answer_later, connection.fail)
        return session if self.logins is None else self.logins.begin(connection, session)

    @cached_property
    def groups(self) -> "Groups":
        """The group coordinator of this node."""
        return self.coordinators.groups

    @cached_property
    def transactions(self) -> "Transactions":
        """The transaction coordinator of this node."""
        return self.coordinators.transactions

    @cached_property
    def shares(self) -> "Shares":
        """The share coordinator of this node."""
        return self.coordinators.shares

    @cached_property
    def share_persister(self) -> "SharePersister":
        """The way to the share coordinators of the cluster."""
        # Imported only here: a node without share groups does without it.
        from ottla.broker.share.persister import SharePersister

        persister = SharePersister(self, self.world.scheduler)
        self.events.of_stop.append(persister.close)
        return persister

    @cached_property
    def sharing(self) -> "Sharing":
        """What this node does for share groups as the leader of partitions."""
        # Imported only here: a node without share groups does without it.
        from ottla.broker.share.sharing import Sharing

        sharing = Sharing(self, self.world.scheduler, self.share_persister)
        self.events.of_metadata.append(sharing.metadata_changed)
        return sharing

    @cached_property
    def journal_writer(self) -> "JournalWriter":
        """What writes the journal, while there is one."""
        # Imported only here: a node that starts has nothing to write yet.
        from ottla.broker.journal.writing import JournalWriter

        return JournalWriter(self)

    @cached_property
    def registered_schemas(self) -> "RegisteredSchemas":
        """What the schema registry knows, for topics that check schemas."""
        from ottla.broker.produce.registered_schemas import RegisteredSchemas

        return RegisteredSchemas(self)

    @property
    def image(self) -> MetadataImage:
        """The metadata that this node acts on: all of it is committed."""
        return self.metadata.image

    @property
    def configs(self) -> EffectiveConfigs:
        """The configs in force: those of the file, and what the metadata sets above them."""
        return self._configs.now()

    @property
    def config(self) -> NodeConfig:
        """The node's own configs in force."""
        return self._configs.now().node

    def features(self) -> Features:
        """Return the features that ApiVersions lists."""
        return features_of(self.image, self.quorum)

    # What the metadata tells

    def begin_to_follow(self) -> None:
        """Take over what the metadata says now, and follow it from here on. The logs are loaded."""
        image = self.image
        self._use_configs()
        use_rules(self.authorizer, image.acls)
        self.partitions.load(image)
        self.metadata.listen(self)

    def prepare(self, image: MetadataImage, delta: MetadataDelta, done: Callable[[], None]) -> bool:
        """Make what new metadata needs and takes long, while others are served. See `MetadataListener`."""
        created = frozenset(change.topic for change in delta.topics)

        def run(work: Callable[[], None], take: Callable[[Exception | None], None]) -> None:
            def import_and_work() -> None:
                self.coordinators.import_for(created)
                work()

            self.workers.run(import_and_work, take)

        return self.partitions.prepare(image, delta, run, done)

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Act on new metadata. When this returns, everything it says holds."""
        own = ConfigResource(ResourceType.BROKER, str(self.node_id))
        if DEFAULT_BROKERS in delta.configs.changed or own in delta.configs.changed:
            self.events.configs_changed()
        self.events.metadata_changed(image, delta)

    def _listen(self) -> None:
        """Name the parts that follow the metadata and the configs, in the order of the calls."""
        events = self.events
        events.of_configs += (
            self._use_settings,
            self.replication.use_dynamic_configs,
            self._use_certificates,
            self._use_quotas,
        )
        events.of_metadata += (
            self.partitions.metadata_changed,
            self.replication.metadata_changed,
            *(place.follow for place in self.coordinators),
            self._quotas_changed,
            self._rules_changed,
            self._topics_changed,
        )

    def _use_settings(self) -> None:
        self.directories.cordoned = cordoned_directories(self.config)
        self.fetch_sessions.sessions_max = self.config.max_incremental_fetch_session_cache_slots
        self.listeners.limits = connection_limits(self.config, self.world.connections_max)
        self.journal.is_on = self.config.ottla_journal_enable

    def _use_certificates(self) -> None:
        if self.tls is not None:
            self.tls.reload(self.configs)

    def _use_quotas(self) -> None:
        self.quotas.use(self.image.quotas)
        self.connection_rates.use(
            self.config.max_connection_creation_rate,
            self.configs.listener_connection_rates,
            self.image.quotas,
        )

    def _quotas_changed(self, _image: MetadataImage, delta: MetadataDelta) -> None:
        if delta.quotas:
            self._use_quotas()

    def _rules_changed(self, _image: MetadataImage, delta: MetadataDelta) -> None:
        if delta.acls:
            use_rules(self.authorizer, delta.acls.changed)

    def _topics_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        if delta.topics and self.journal.is_on:
            self.journal_writer.metadata_changed(image, delta)

    # What the partitions tell

    def appended(self, partition: Partition, size_bytes: int) -> None:
        """Tell the fetches that wait for a partition."""
        self.parked_fetches.appended(partition, size_bytes)

    def appended_for_replicas(self, partition: Partition, size_bytes: int) -> None:
        """Tell the followers that wait for a partition."""
        self.parked_fetches.appended_for_replicas(partition, size_bytes)

    def changed(self, partition: Partition) -> None:
        """Let the fetches that wait for a partition look again."""
        self.parked_fetches.changed(partition)

    def flush_is_due(self, partition: Partition) -> None:
        """Have a log synced that nobody waits for."""
        self.flusher.request(partition.log)

    def damaged(self, partition: Partition, offset: Offset) -> None:
        """Have a log checked where somebody has met something strange, and healed if need be."""
        self.scrubber.check(partition, offset)

    def log_is_gone(self, log: Log) -> None:
        """Let go of a log that is to be deleted."""
        committed.wait_no_more(log, LogDirectoryOffline(log.path, "it was deleted"))

    @cached_property
    def telemetry(self) -> "Telemetry":
        """The metrics of clients. Made when a client asks: most nodes have none."""
        from ottla.broker.telemetry.telemetry import Telemetry

        config = self.config
        return Telemetry(
            self.clock, config.telemetry_max_bytes, config.ottla_telemetry_enable, self.workers.run
        )

    def new_id(self) -> Uuid:
        """Return a random id."""
        return random_id(self.random)

    def names_changed(self, directory: LogDirectory) -> None:
        """Have a directory synced."""
        volume = directory.volume

        def done(error: Exception | None) -> None:
            if isinstance(error, DiskError):
                _logger.critical("%s", volume.fail(error))
            elif error is not None:
                raise error

        self.workers.run(lambda: volume.disk.sync_directory(volume.path), done)

    def directory_changed(self, partition: Partition) -> None:
        """Tell the controller in which directory a replica lies."""
        self.directory_reports.add(partition)

    def is_missing(self, topic_id: Uuid, index: int) -> None:
        """Tell the controller that a replica cannot be reached."""
        self.directory_reports.add_lost(topic_id, index)

    def partition_is_gone(self, partition: Partition) -> None:
        """Let go of everything that follows a partition."""
        self.log_moves.cancel(partition)
        self.replication.forget(partition)
        self.healing.forget(partition)
        self.parked_fetches.changed(partition)

    def write_checkpoint(self, directory: LogDirectory, write: CheckpointWrite) -> None:
        """Have a worker write a checkpoint, and put it in its place."""

        def done(error: Exception | None) -> None:
            try:
                if isinstance(error, DiskError):
                    raise directory.volume.fail(error)
                directory.finish_checkpoint(write)
            except LogDirectoryOffline as offline:
                _logger.critical("%s", offline)

        self.workers.run(lambda: write.run(directory.volume.disk), done)
