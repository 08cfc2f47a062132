"""A node of a simulated quorum: a disk that may lose power, the real log on it, and a replica.

It does what a real node has to do with the effects of a replica, and tells the checks what it sees.
"""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.raft.truth import CommittedBatch, Violation

from ottla.broker.lifecycle import damaged_metadata
from ottla.metadata.errors import MetadataError
from ottla.model.ids import Offset
from ottla.model.uuid import METADATA_TOPIC_ID, Uuid
from ottla.quorum.format import METADATA_DIRECTORY, make_lasting_directory
from ottla.quorum.raft.effects import (
    BecameLeader,
    Effect,
    HighWatermarkMoved,
    Inbound,
    LeadershipLost,
    LogTruncated,
    Refused,
    Reply,
    Send,
    SnapshotLoaded,
    SyncLog,
    VotesAgain,
)
from ottla.quorum.raft.metadata_log import MetadataLog, QuorumStateFile
from ottla.quorum.raft.replica import Replica
from ottla.quorum.raft.settings import Moment, RaftSettings
from ottla.quorum.raft.snapshot_files import SnapshotFiles
from ottla.quorum.raft.states import Leader
from ottla.quorum.raft.voter_sets import ReplicaKey
from ottla.quorum.snapshot_file import FORMAT_SNAPSHOT, SnapshotId, encode_snapshot
from ottla.quorum.snapshots import Snapshots
from ottla.quorum.voters import VoterHistory
from ottla.records.batch import iter_batches
from ottla.storage import retention
from ottla.storage.config import LogConfig
from ottla.storage.errors import DamagedLog
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log_dirs import partition_metadata
from ottla.storage.names import METADATA_PARTITION
from ottla.storage.read import ReadLimit
from ottla.storage.syncing import flush
from ottla.storage.syncing.flush import FlushTicket
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import PowerCut, SimulatedDisk
from ottla.wire.error_code import ErrorCode
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.world.disk import DiskError

if TYPE_CHECKING:
    from tests.simulation.raft.world import World

DIRECTORY = "/logs"
PATH = f"{DIRECTORY}/{METADATA_DIRECTORY}"
WALL_MS = 1_700_000_000_000
_METADATA_VERSION = 30
_READ_BYTES = 1 << 20


class Node:
    """One node, up or down."""

    def __init__(self, world: "World", settings: RaftSettings, config: LogConfig, rng: Random) -> None:
        self.world = world
        self.settings = settings
        self.config = config
        self.rng = rng
        self.disk = SimulatedDisk()
        self.replica: Replica | None = None
        self.starts = 0
        # Timers of this node go by its own clock, which is ahead of the world's.
        self.ahead_ms = rng.randrange(10_000)
        self.wall_ahead_ms = rng.randrange(-5000, 5000)
        self.paused_until_ms = 0
        self.sync_ms = (1, 4)
        self.applied = 0
        # What survives a power cut.
        self.durable_end = 0
        # Bits of its log have changed, which its next start finds.
        self.is_damaged = False
        # What it had when it lost its log: what it had said before was true.
        self.lost_end = 0
        self._was_interrupted = False
        self._ticket: FlushTicket | None = None
        self._syncs_again = False
        self._poll_at_ms: int | None = None

    def __str__(self) -> str:
        return f"node {self.settings.me.node_id}"

    @property
    def node_id(self) -> int:
        return self.settings.me.node_id

    @property
    def is_up(self) -> bool:
        return self.replica is not None

    @property
    def now(self) -> Moment:
        now_ms = self.world.now_ms
        return Moment(now_ms + self.ahead_ms, WALL_MS + now_ms + self.wall_ahead_ms)

    # Life and death.

    def format(self, quorum: VoterHistory | None) -> None:
        """Make the directory of a new node. An initial voter of a dynamic quorum is told who they are."""
        make_lasting_directory(self.disk, PATH)
        path = f"{PATH}/{partition_metadata.FILE}"
        self.disk.write_file_atomically(path, partition_metadata.encode_partition_metadata(METADATA_TOPIC_ID))
        if quorum is not None:
            content = b"".join(encode_snapshot((), 0, FORMAT_SNAPSHOT.epoch, 0, quorum, 0))
            self.disk.write_file_atomically(f"{PATH}/{FORMAT_SNAPSHOT.file_name}", content)

    def wipe(self, directory_id: Uuid) -> None:
        """Put an empty disk in."""
        assert not self.is_up
        self.disk = SimulatedDisk()
        self.settings = self.settings._replace(me=ReplicaKey(self.node_id, directory_id))
        self.durable_end = 0
        self.format(None)

    def start(self) -> None:
        """Start on what the disk has."""
        self.starts += 1
        self._ticket, self._syncs_again, self._poll_at_ms = None, False, None
        self.disk.now_ms = self.now.wall_ms
        is_damaged, self.is_damaged = self.is_damaged, False

        def load() -> list[Effect]:
            if is_damaged:
                damaged_metadata.set_aside(self.disk, DIRECTORY, as_controller=True)
            try:
                return load_what_is_there()
            except (MetadataError, DamagedLog):
                # Power went while the files were set aside.
                if not QuorumStateFile(self.disk, PATH).abstains():
                    raise
                damaged_metadata.set_aside(self.disk, DIRECTORY, as_controller=True)
                return load_what_is_there()

        def load_what_is_there() -> list[Effect]:
            snapshots = SnapshotFiles(self.disk, PATH)
            earliest = snapshots.earliest
            request = LoadRequest(
                path=PATH,
                topic_partition=METADATA_PARTITION,
                config=self.config,
                log_start_offset=earliest.end_offset if earliest else Offset(0),
                now_ms=self.now.wall_ms,
            )
            log = MetadataLog(load_log(Volume(self.disk, DIRECTORY), request), snapshots)
            store = QuorumStateFile(self.disk, PATH)
            self.replica = Replica(self.settings, log, store, self.rng)
            self.world.checks.started(self, self.replica, store.read())
            self.replica.load(self.now.wall_ms)
            effects = self.replica.start(self.now)
            self.applied = 0
            self._take_snapshot_for_state()
            if self._was_interrupted:
                # It may have been cutting its log.
                self.durable_end = min(self.durable_end, log.end_offset)
                self._was_interrupted = False
            if log.end_offset < self.durable_end:
                raise Violation(f"{self} lost what it had synced: its log ends at {log.end_offset}")
            return effects

        self._step(load)

    def crash(self, *, loses_power: bool) -> None:
        """Stop without warning."""
        self.replica = None
        if loses_power:
            self.disk.cut_power(self.rng)
        else:
            self.disk.kill()
        self.world.node_crashed(self)

    @property
    def abstains(self) -> bool:
        """Say whether it does not vote, or will not when it starts."""
        return self.is_damaged or QuorumStateFile(self.disk, PATH).abstains()

    @property
    def has_promised(self) -> bool:
        """Say whether it has the file with its epoch and its vote, without which it would not start."""
        return QuorumStateFile(self.disk, PATH).read() is not None

    def damage(self) -> None:
        """Damage the log of a node that is down."""
        assert not self.is_up
        self.is_damaged = True
        self.lost_end = max(self.lost_end, self.durable_end)
        self.durable_end = 0

    # Events.

    def receive(self, inbound: Inbound) -> None:
        replica = self.replica
        if replica is not None:
            self._step(lambda: replica.receive(inbound, self.now))

    def receive_response(self, correlation_id: int, response: Any) -> None:
        replica = self.replica
        if replica is not None:
            self._step(lambda: replica.receive_response(correlation_id, response, self.now))

    def fail(self, send: Send, error: ErrorCode) -> None:
        replica = self.replica
        if replica is not None:
            self._step(lambda: replica.fail(send.correlation_id, send.request, self.now, error))

    def append(self, batch: bytearray, epoch: int) -> int | None:
        """Append as the leader of an epoch. Returns the last offset, or None if power went."""
        replica = self.replica
        assert replica is not None
        offsets: list[int] = []

        def run() -> list[Effect]:
            offset, effects = replica.append(batch, epoch, self.now)
            offsets.append(offset)
            return effects

        return offsets[0] if self._step(run) else None

    def ask(self, what: Callable[[Replica, Moment], list[Effect]]) -> None:
        """Do something with the replica that has effects."""
        replica = self.replica
        if replica is not None:
            self._step(lambda: what(replica, self.now))

    def _poll(self, starts: int) -> None:
        replica = self.replica
        if replica is None or starts != self.starts:
            return
        self._poll_at_ms = None
        if replica.wake_ms > self.now.ms:
            self._schedule_poll()
        else:
            self._step(lambda: replica.poll(self.now))

    def _step(self, run: Callable[[], list[Effect]]) -> bool:
        """Let the replica do a step, and carry out what comes of it. Returns False if power went."""
        try:
            effects = run()
            assert self.replica is not None
            self._note_durable(self.replica, effects)
            self.world.checks.stepped(self, self.replica, effects)
            self._carry_out(effects)
        except PowerCut:
            self._was_interrupted = True
            self.crash(loses_power=True)
            return False
        self._schedule_poll()
        return True

    def _note_durable(self, replica: Replica, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case LogTruncated(end_offset):
                    self.durable_end = min(self.durable_end, end_offset)
                case SnapshotLoaded(snapshot_id):
                    self.durable_end = snapshot_id.end_offset
        self.durable_end = max(self.durable_end, replica.log.synced_offset)

    def _schedule_poll(self) -> None:
        replica = self.replica
        if replica is None:
            return
        at_ms = max(replica.wake_ms - self.ahead_ms, self.world.now_ms)
        if at_ms - self.world.now_ms < 1_000_000 and (self._poll_at_ms is None or at_ms < self._poll_at_ms):
            self._poll_at_ms = at_ms
            starts = self.starts
            self.world.at_node(self, at_ms, lambda: self._poll(starts))

    # Effects.

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self.world.send(self, effect)
                case Reply(token, response):
                    token(response)
                case SyncLog():
                    self._sync()
                case HighWatermarkMoved():
                    self._apply()
                case SnapshotLoaded():
                    self._take_snapshot_for_state()
                case LogTruncated(end_offset):
                    if end_offset < self.applied:
                        raise Violation(f"CommittedNeverLostOrChanged: {self} cut off what it had applied")
                case BecameLeader() | LeadershipLost():
                    self.world.leadership_changed(self, effect)
                case VotesAgain():
                    self.lost_end = 0
                case Refused(what):
                    self.world.refused(self, what)

    def _sync(self) -> None:
        """Sync as a thread would: it takes a while, and more may be appended meanwhile."""
        replica = self.replica
        assert replica is not None
        if self._ticket is not None:
            self._syncs_again = True
            return
        self._ticket = replica.log.log.start_flush()
        starts = self.starts
        self.world.at_node(
            self, self.world.now_ms + self.rng.randint(*self.sync_ms), lambda: self._synced(starts)
        )

    def _synced(self, starts: int) -> None:
        replica = self.replica
        if replica is None or starts != self.starts:
            return
        ticket, self._ticket = self._ticket, None
        log = replica.log.log
        if ticket is not None:
            try:
                flush.run(ticket, self.disk)
                log.finish_flush(ticket)
            except DiskError as error:
                # A truncation or retention took a file away meanwhile. What is left is synced again.
                if log.fail_flush(ticket, error):
                    raise
                self._syncs_again = True
            except PowerCut:
                self.crash(loses_power=True)
                return
        if self._syncs_again:
            self._syncs_again = False
            self._sync()
        self._step(lambda: replica.synced(self.now))

    # The state machine on top: it replays what is committed.

    def _apply(self) -> None:
        replica = self.replica
        assert replica is not None
        log = replica.log.log
        while self.applied < log.high_watermark:
            chunk = log.read(Offset(self.applied), _READ_BYTES, ReadLimit.HIGH_WATERMARK).read()
            before = self.applied
            for batch in iter_batches(memoryview(chunk)):
                header = batch.header
                next_offset = header.last_offset + 1
                if header.base_offset < self.applied or next_offset > log.high_watermark:
                    continue
                self.world.truth.commit(
                    str(self),
                    CommittedBatch(header.base_offset, next_offset, header.leader_epoch, bytes(batch.view)),
                )
                self.applied = next_offset
            if self.applied == before:
                raise Violation(f"{self} cannot read what is committed from {before} on")
        self.world.applied(self)

    def _take_snapshot_for_state(self) -> None:
        """Load the newest snapshot, and see that it is one of what was committed."""
        replica = self.replica
        assert replica is not None
        latest = Snapshots(self.disk, PATH).read_newest()
        if latest is None or latest[0] == FORMAT_SNAPSHOT:
            return
        snapshot_id, snapshot = latest
        record = snapshot.records[0]
        if record.value != self.world.truth.digest_at(snapshot_id.end_offset):
            raise Violation(f"SnapshotsAreOfTheCommitted: {self} loaded a wrong {snapshot_id}")
        if snapshot_id.end_offset < self.applied:
            raise Violation(f"HighWatermarkMonotonic: {self} went back to snapshot {snapshot_id}")
        self.applied = snapshot_id.end_offset

    def write_snapshot(self) -> None:
        """Write a snapshot of the state, and let go what is before it."""
        replica = self.replica
        if replica is None or self.applied == 0 or self.applied < replica.log.start_offset:
            return
        try:
            self._write_snapshot(replica)
        except PowerCut:
            self.crash(loses_power=True)

    def _write_snapshot(self, replica: Replica) -> None:
        truth = self.world.truth
        snapshot_id = SnapshotId(Offset(self.applied), truth.epoch_at(self.applied))
        if snapshot_id in replica.log.snapshots.ids:
            return
        quorum = replica.history.before(Offset(self.applied))
        record = ConfigRecord(
            resource_type=4, resource_name="", name="digest", value=truth.digest_at(self.applied)
        )
        padding = ConfigRecord(
            resource_type=4, resource_name="", name="padding", value="x" * self.rng.randrange(400)
        )
        content = b"".join(
            encode_snapshot(
                (record, padding), _METADATA_VERSION, snapshot_id.epoch, 0, quorum, self.now.wall_ms
            )
        )
        self.disk.write_file_atomically(f"{PATH}/{snapshot_id.file_name}", content)
        if self.rng.random() < 0.7:
            log = replica.log.log
            log.increment_log_start_offset(snapshot_id.end_offset)
            snapshots = Snapshots(self.disk, PATH)
            for stored in snapshots.list()[:-1]:
                snapshots.delete(stored.id)
            deletions = retention.delete_old_segments(
                log, self.now.wall_ms, lambda: self.disk.sync_directory(log.path)
            )
            for deletion in deletions:
                deletion.run(self.disk)
        replica.snapshots_changed()

    @property
    def leads(self) -> Leader | None:
        """The state of a leader, if it is one."""
        state = None if self.replica is None else self.replica.state
        return state if isinstance(state, Leader) and not state.is_resigning else None

    def check_start(self) -> None:
        """Start, and say which node cannot."""
        try:
            self.start()
        except MetadataError as error:
            raise Violation(f"{self} cannot start again: {error}") from error
