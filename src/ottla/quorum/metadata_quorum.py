"""This node's part in the metadata quorum: log, follower, snapshots, and the controller while it leads.

    quorum = MetadataQuorum(...)
    quorum.start()                         loads the log, and takes part in the quorum
    quorum.when_caught_up(done)            when this node knows what the cluster knows
    quorum.ask(request, caller, answer)    lets the controller decide, if it is here
    quorum.receive(request, ...)           serves the other nodes of the quorum
    quorum.tick()                          now and then: snapshots, and a sign of life in the log
    quorum.close()                         completes the files

The parts know as little as possible of each other:

    RaftDriver        agrees on the log, and tells what is committed, who leads, and whether this node does
    MetadataFollower  replays what is committed, and publishes it
    ActiveController  decides and appends; exists only while this node leads
    SnapshotWriter    writes what is published into snapshots
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.errors import MetadataError
from ottla.metadata.image import MetadataImage
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import NO_OFFSET, Offset
from ottla.quorum.controller.activation import activation_records
from ottla.quorum.controller.active_controller import ActiveController, ControllerWorld
from ottla.quorum.controller.brokers.sessions import Incarnation
from ottla.quorum.controller.deciders import NOT_CONTROLLER, find_decider
from ottla.quorum.controller.decision import Caller
from ottla.quorum.controller.mutation_quota import MutationQuotas
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.format import METADATA_DIRECTORY, make_lasting_directory
from ottla.quorum.load import load_metadata, load_snapshot
from ottla.quorum.metadata_follower import MetadataFollower
from ottla.quorum.metadata_log import NOTHING_KNOWN, SyncedMetadata, open_metadata_log
from ottla.quorum.quorum_protocols import (
    CallLater,
    CommittedRecords,
    KnownLeader,
    Messenger,
    Nobody,
    NotLeader,
)
from ottla.quorum.raft.metadata_log import MetadataLog, QuorumStateFile
from ottla.quorum.raft.replica import Replica
from ottla.quorum.raft.servers import servers
from ottla.quorum.raft.snapshot_files import SnapshotFiles
from ottla.quorum.raft_driver import DriverWorld, RaftDriver
from ottla.quorum.raft_settings import raft_settings
from ottla.quorum.refusals import SERVED_BY_LEADER, refuse
from ottla.quorum.snapshot_file import SnapshotId
from ottla.quorum.snapshot_writer import SnapshotWriter
from ottla.quorum.snapshots import Snapshots
from ottla.quorum.voters import VoterIdentity
from ottla.storage.errors import LogDirectoryOffline, StorageError
from ottla.storage.volume import Volume
from ottla.wire.declare import spec_of
from ottla.world.clock import Clock
from ottla.world.disk import DiskError
from ottla.world.randomness import Randomness

_LOOK_AGAIN_MS: Final = 1000


class OtherVoters(MetadataError):
    """The directory belongs to a quorum in which this node cannot take part as it is configured."""


class QuorumSettings(NamedTuple):
    """What a node knows about its quorum."""

    controller: ControllerSettings
    voter: VoterIdentity
    config: NodeConfig


def _accept(_image: MetadataImage) -> None:
    pass


def _begin_anyway() -> None:
    pass


class QuorumWorld(NamedTuple):
    """What the quorum uses of the world around it."""

    volume: Volume
    clock: Clock
    call_later: CallLater
    random: Randomness
    give_up: Callable[[Exception], None]
    """Called when the metadata cannot be written any more: the node has to stop, and load the log again."""
    messenger: Messenger = Nobody()
    known: SyncedMetadata = NOTHING_KNOWN
    """What is known of the log before it is looked at."""
    begin: Callable[[], None] = _begin_anyway
    """Called when everything was read, and before anything new is written."""
    check: Callable[[MetadataImage], None] = _accept
    """Called before that with the rules and users that were loaded. It may refuse them, by an error."""


class _Parts(NamedTuple):
    """What there is once the log was loaded."""

    driver: RaftDriver
    follower: MetadataFollower
    snapshots: Snapshots
    snapshot_writer: SnapshotWriter


class MetadataQuorum:
    """A node among the nodes that agree on the metadata."""

    def __init__(self, settings: QuorumSettings, published: PublishedMetadata, world: QuorumWorld) -> None:
        self._settings = settings
        self._published = published
        self._world = world
        self._controller_world = ControllerWorld(world.clock, world.random, MutationQuotas())
        self._started: _Parts | None = None
        self.controller: ActiveController | None = None
        """The active controller, while this node leads."""
        self.leader = KnownLeader()
        """Who leads, as far as this node knows."""
        self._leader_listeners: list[Callable[[KnownLeader], None]] = []
        # What the cluster had when this node first heard of it. See `when_caught_up`.
        self._catch_up_to: Offset | None = None
        self._published_to = NO_OFFSET
        self._when_caught_up: list[Callable[[], None]] = []

    def start(self) -> None:
        """Load the log, and take part in the quorum. The only voter stands for election at once.

        It loads all of the log, also what may not be committed, because it commits that by its election. In a
        quorum of several, what comes after the newest snapshot is replayed when it is known to be committed.
        """
        world, settings = self._world, self._settings
        volume, config = world.volume, settings.config
        now_ms = world.clock.now_ms()
        path = f"{volume.path}/{METADATA_DIRECTORY}"
        snapshots = Snapshots(volume.disk, path)
        make_lasting_directory(volume.disk, path)
        log = open_metadata_log(volume, path, config, snapshots, now_ms, world.known)
        replica = Replica(
            raft_settings(config, settings.controller.cluster_id, settings.voter),
            MetadataLog(log, SnapshotFiles(volume.disk, path)),
            QuorumStateFile(volume.disk, path),
            world.random,
        )
        replica.load(now_ms)
        _check_voters(replica)
        loaded = load_metadata(log, snapshots, with_tail=replica.is_only_voter)
        driver_world = DriverWorld(world.clock, world.call_later, world.messenger)
        driver = RaftDriver(replica, settings.voter, loaded.end_offset, self, driver_world)
        world.check(loaded.loader.peek_security())
        world.begin()
        follower = MetadataFollower(loaded.loader, self._published, self._when_published)
        writer = SnapshotWriter(snapshots, driver, self._published, loaded, config, now_ms)
        self._started = _Parts(driver, follower, snapshots, writer)
        driver.start()

    @property
    def driver(self) -> RaftDriver:
        """The replica of this node."""
        assert self._started is not None, "the quorum was started"
        return self._started.driver

    @property
    def snapshot_writer(self) -> SnapshotWriter:
        """What keeps the snapshots."""
        return self._parts.snapshot_writer

    @property
    def _parts(self) -> _Parts:
        assert self._started is not None, "the quorum was started"
        return self._started

    # Who leads

    @property
    def is_active(self) -> bool:
        """Say whether the active controller is on this node."""
        return self.controller is not None

    def when_leader_changes(self, listener: Callable[[KnownLeader], None]) -> None:
        """Call `listener` whenever another leader is known, or where it is, or none, or another epoch."""
        self._leader_listeners.append(listener)

    def leader_changed(self, leader: KnownLeader) -> None:
        """Note the leader, and notify those that want to know."""
        self.leader = leader
        for listener in self._leader_listeners:
            listener(leader)

    def when_caught_up(self, done: Callable[[], None]) -> None:
        """Call `done` when this node has published what was committed when it found the quorum."""
        self._when_caught_up.append(done)
        self._look_whether_caught_up()

    def _look_whether_caught_up(self) -> None:
        if self._catch_up_to is not None and self._published_to >= self._catch_up_to:
            waiting, self._when_caught_up = self._when_caught_up, []
            for done in waiting:
                done()

    # What is asked of it

    def receive(self, request: Any, version: int, listener: str, answer: Callable[[Any], None]) -> None:
        """Serve a request of the quorum's own protocol, which came through a listener."""
        self.driver.receive(request, version, listener, answer)

    def ask(self, ask: Any, caller: Caller | None, answer: Callable[[Any], None]) -> None:
        """Let the controller decide about a request of a client, or of this node if `caller` is None.

        `answer` is called with the response when the decision is committed and published here, maybe at once.
        If this node is not the active controller, or is it no longer by then, that is what the response says.
        """
        if self.controller is None:
            answer(refuse(ask, NOT_CONTROLLER))
            return
        if isinstance(ask, SERVED_BY_LEADER):
            version = spec_of(type(ask)).versions.last if caller is None else caller.version
            self.driver.receive(ask, version, "", answer)
            return
        decider = find_decider(type(ask))
        try:
            self.controller.handle(decider, ask, caller, answer)
        except LogDirectoryOffline as error:
            self.failed(error)
            answer(decider.refuse(ask, NOT_CONTROLLER))
        except NotLeader:
            answer(decider.refuse(ask, NOT_CONTROLLER))

    def broker_is_gone(self, broker: Incarnation) -> None:
        """Fence a broker whose process is known to be gone, if the controller is here."""
        if self.controller is not None:
            try:
                self.controller.broker_is_gone(broker)
            except NotLeader:
                pass
            except LogDirectoryOffline as error:
                self.failed(error)

    def tick(self) -> int:
        """Do what is due. Returns after how many milliseconds to come again."""
        writer = self.snapshot_writer
        left_ms = _LOOK_AGAIN_MS
        try:
            writer.tick(self._world.clock.now_ms())
            if self.controller is not None:
                left_ms = min(left_ms, self.controller.tick())
        except NotLeader:
            pass
        except (StorageError, DiskError) as error:
            self.failed(error)
        return 0 if writer.is_writing else left_ms

    def flush(self) -> None:
        """Sync and commit everything in this thread, as the only voter does before it serves."""
        driver = self.driver
        assert driver.replica.is_only_voter, "others have to agree"
        driver.flush()
        while driver.high_watermark < driver.log_end_offset and self.controller is not None:
            # What was published made somebody append.
            driver.flush()
        synced = self._world.volume.synced
        if synced is not None:
            # What a power cut leaves of it says at least how far this log was synced at the last start.
            synced.save_for_good()

    def hand_over(self, timeout_ms: int, done: Callable[[], None]) -> None:
        """Let another node lead, if this one does. Calls `done` when it does, or when it takes too long."""
        is_over = False

        def finish() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                timer.cancel()
                done()

        def look(_leader: KnownLeader) -> None:
            if self.driver.has_handed_over:
                finish()

        timer = self._world.call_later(timeout_ms, finish)
        self.when_leader_changes(look)
        self.driver.stop(timeout_ms)
        look(self.leader)

    def close(self) -> None:
        """Complete the files of the log. Nothing is published after this."""
        self._parts.follower.stop()
        self._world.messenger.close()
        self.driver.close()

    # What the driver tells

    def committed(self, batches: Sequence[CommittedRecords]) -> None:
        """Replay and publish what is committed."""
        if self._catch_up_to is None:
            self._catch_up_to = Offset(self.driver.high_watermark - 1)
        self._parts.follower.committed(batches)

    def snapshot_loaded(self, snapshot_id: SnapshotId) -> None:
        """Go on from a snapshot of the leader's."""
        _, follower, snapshots, writer = self._parts
        _, _, loader = load_snapshot(snapshots)
        writer.restart_from(snapshot_id, self._world.clock.now_ms())
        follower.restart_from(loader)

    def became_leader(self) -> None:
        """Begin to decide, from everything that is committed."""
        driver, follower, _, _ = self._parts
        loader = follower.fork_loader()
        is_in_transaction = loader.is_in_transaction
        controller = ActiveController(driver, loader, self._settings.controller, self._controller_world)
        records = activation_records(
            controller.image,
            self._world.volume,
            self._settings.config,
            is_in_transaction=is_in_transaction,
        )
        if records:
            controller.append(records)
        self.controller = controller
        self.leader_changed(self.leader)

    def resigned(self) -> None:
        """Decide no longer, and refuse those who wait for a decision."""
        controller, self.controller = self.controller, None
        if controller is not None:
            controller.resign()

    def failed(self, error: Exception) -> None:
        """Give up: what was decided may be in no log, and there is no way on from here."""
        self.driver.give_up()
        self._world.give_up(error)

    def _when_published(self, offset: Offset) -> None:
        if self.controller is not None:
            self.controller.published(offset)
        self._published_to = offset
        if self._when_caught_up:
            self._look_whether_caught_up()


def _check_voters(replica: Replica) -> None:
    """Refuse a directory with which this node would wait for a leader for ever."""
    log, me, voters = replica.log.log, replica.settings.me, replica.voters
    if replica.is_voter or replica.settings.bootstrap_servers:
        return
    mine = voters.find(me.node_id)
    if mine is not None:
        raise OtherVoters(
            f"the voter {me.node_id} of {log.path} has directory id {mine.voter_directory_id}, but this "
            f"directory has {me.directory_id}"
        )
    if not servers(replica):
        raise OtherVoters(
            f"the metadata of {log.path} names no voters: set controller.quorum.voters or "
            "controller.quorum.bootstrap.servers to say who they are"
        )
