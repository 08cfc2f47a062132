"""This node's part in the metadata quorum: log, follower, snapshots, and the controller while it leads.

    quorum = MetadataQuorum(...)
    quorum.start()                         loads the log, and stands for election
    quorum.ask(request, caller, answer)    lets the controller decide, if it is here
    quorum.tick()                          now and then: snapshots, and a sign of life in the log
    quorum.close()                         resigns, and completes the files

The parts know as little as possible of each other:

    Voter             agrees on the log, and tells what is committed and whether this node leads
    MetadataFollower  replays what is committed, and publishes it
    ActiveController  decides and appends; exists only while this node leads
    SnapshotWriter    writes what is published into snapshots
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import Offset
from ottla.quorum.controller.activation import activation_records
from ottla.quorum.controller.active_controller import ActiveController, ControllerWorld
from ottla.quorum.controller.deciders import NOT_CONTROLLER, find_decider
from ottla.quorum.controller.decision import Caller, Randomness
from ottla.quorum.controller.mutation_quota import MutationQuotas
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.format import METADATA_DIRECTORY, make_lasting_directory
from ottla.quorum.load import load_metadata
from ottla.quorum.metadata_follower import MetadataFollower
from ottla.quorum.metadata_log import NOTHING_KNOWN, SyncedMetadata, open_metadata_log
from ottla.quorum.quorum_protocols import CommittedRecords, KnownLeader, RequestSync
from ottla.quorum.snapshot_writer import SnapshotWriter
from ottla.quorum.snapshots import Snapshots
from ottla.quorum.voter import Voter
from ottla.quorum.voters import VoterIdentity
from ottla.storage.errors import LogDirectoryOffline, StorageError
from ottla.storage.volume import Volume
from ottla.world.clock import Clock
from ottla.world.disk import DiskError

_LOOK_AGAIN_MS: Final = 1000


class QuorumSettings(NamedTuple):
    """What a node is told about its quorum. `static_voters` count for directories of a static quorum only."""

    controller: ControllerSettings
    voter: VoterIdentity
    config: NodeConfig
    static_voters: Sequence[int] = ()


def _begin_anyway() -> None:
    pass


class QuorumWorld(NamedTuple):
    """What the quorum uses of the world around it."""

    volume: Volume
    clock: Clock
    random: Randomness
    request_sync: RequestSync
    give_up: Callable[[Exception], None]
    """Called when the metadata cannot be written any more: the node has to stop, and load the log again."""
    known: SyncedMetadata = NOTHING_KNOWN
    """What is known of the log before it is looked at."""
    begin: Callable[[], None] = _begin_anyway
    """Called when everything was read, and before anything new is written."""


class _Parts(NamedTuple):
    """What there is once the log was loaded."""

    voter: Voter
    follower: MetadataFollower
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

    @property
    def is_active(self) -> bool:
        """Say whether the active controller is on this node."""
        return self.controller is not None

    def when_leader_changes(self, listener: Callable[[KnownLeader], None]) -> None:
        """Call `listener` whenever another leader is known, or none, or another epoch has begun."""
        self._leader_listeners.append(listener)

    def _leader_changed(self, leader: KnownLeader) -> None:
        self.leader = leader
        for listener in self._leader_listeners:
            listener(leader)

    def start(self) -> None:
        """Load the log, and stand for election. What the log holds is published when that is won.

        All of the log is loaded, also what may not be committed: the only voter commits it by its election.
        """
        world, settings = self._world, self._settings
        volume, request_sync = world.volume, world.request_sync
        now_ms = world.clock.now_ms()
        path = f"{volume.path}/{METADATA_DIRECTORY}"
        snapshots = Snapshots(volume.disk, path)
        make_lasting_directory(volume.disk, path)
        snapshots.delete_left_overs()
        log = open_metadata_log(volume, path, settings.config, snapshots, now_ms, world.known)
        loaded = load_metadata(log, snapshots)
        voter = Voter(volume.disk, log, loaded, settings.voter, self, request_sync, settings.static_voters)
        world.begin()
        follower = MetadataFollower(loaded.loader, self._published, self._when_published)
        writer = SnapshotWriter(snapshots, voter, self._published, loaded, settings.config, now_ms)
        self._started = _Parts(voter, follower, writer)
        voter.campaign(now_ms)

    @property
    def voter(self) -> Voter:
        """This node as a voter."""
        return self._parts.voter

    @property
    def snapshot_writer(self) -> SnapshotWriter:
        """What keeps the snapshots."""
        return self._parts.snapshot_writer

    @property
    def _parts(self) -> _Parts:
        assert self._started is not None, "the quorum was started"
        return self._started

    def ask(self, ask: Any, caller: Caller | None, answer: Callable[[Any], None]) -> None:
        """Let the controller decide about a request of a client, or of this node if `caller` is None.

        `answer` is called with the response when the decision is committed and published here, maybe at once.
        If this node is not the active controller, or is it no longer by then, that is what the response says.
        """
        decider = find_decider(type(ask))
        if self.controller is None:
            answer(decider.refuse(ask, NOT_CONTROLLER))
            return
        try:
            self.controller.handle(decider, ask, caller, answer)
        except LogDirectoryOffline as error:
            self.failed(error)
            answer(decider.refuse(ask, NOT_CONTROLLER))

    def tick(self) -> int:
        """Do what is due. Returns after how many milliseconds to come again."""
        writer = self.snapshot_writer
        idle_ms = self._settings.config.metadata_max_idle_interval_ms
        left_ms = _LOOK_AGAIN_MS
        try:
            writer.tick(self._world.clock.now_ms())
            if self.controller is not None and idle_ms > 0:
                left_ms = self.controller.maybe_append_no_op(idle_ms)
        except (StorageError, DiskError) as error:
            self.failed(error)
        return 0 if writer.is_writing else left_ms

    def flush(self) -> None:
        """Sync and commit everything in this thread, as a node does that is not serving yet."""
        voter = self.voter
        voter.flush()
        while voter.high_watermark < voter.log_end_offset:
            # What was published made somebody append.
            voter.flush()
        synced = self._world.volume.synced
        if synced is not None:
            # What a power cut leaves of it says at least how far this log was synced at the last start.
            synced.save_for_good()

    def close(self) -> None:
        """Resign, and complete the files of the log. Nothing is published after this."""
        self._parts.follower.stop()
        self.voter.close()

    # What the voter tells

    def committed(self, batch: CommittedRecords) -> None:
        """Replay and publish what is committed."""
        self._parts.follower.committed(batch)

    def became_leader(self) -> None:
        """Begin to decide, from everything that is committed."""
        voter, follower, _ = self._parts
        loader = follower.fork_loader()
        is_in_transaction = loader.is_in_transaction
        controller = ActiveController(voter, loader, self._settings.controller, self._controller_world)
        records = activation_records(
            controller.image,
            self._world.volume,
            self._settings.config,
            is_in_transaction=is_in_transaction,
        )
        if records:
            controller.append(records)
        self.controller = controller
        me = self._settings.voter
        self._leader_changed(KnownLeader(me.node_id, voter.epoch, me.endpoint))

    def resigned(self) -> None:
        """Decide no longer, and refuse who waits for a decision."""
        controller, self.controller = self.controller, None
        if controller is not None:
            controller.resign()
        self._leader_changed(KnownLeader(epoch=self.voter.epoch))

    def failed(self, error: Exception) -> None:
        """Give up: what was decided may be in no log, and there is no way on from here."""
        self.voter.resign()
        self._world.give_up(error)

    def _when_published(self, offset: Offset) -> None:
        if self.controller is not None:
            self.controller.published(offset)
