"""Drives the replica of this node: carries out what it wants done, and tells it what happens.

    events     timers, syncs, requests and answers of other nodes, appends of the controller
    effects    carried out in their order; see `raft.effects`

The replica is a state machine without I/O (`raft.replica`). Here it meets the clock, the syncs of the log and
the other nodes (`Messenger`). The listener learns what is committed, who leads, and whether this node does.

What the listener does may lead to the next event, such as an append, before all effects of the last one are
carried out. They keep their order, in a queue.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ottla.metadata.errors import MetadataError
from ottla.metadata.image import Position
from ottla.model.ids import Offset
from ottla.quorum.batches import BATCH_BYTES_MAX, encode_batch
from ottla.quorum.load import read_batches
from ottla.quorum.quorum_protocols import (
    BatchTooLarge,
    CallLater,
    CommittedRecords,
    KnownLeader,
    Messenger,
    NotLeader,
    PreparedAppend,
    QuorumListener,
)
from ottla.quorum.raft.effects import (
    BecameLeader,
    Effect,
    HighWatermarkMoved,
    Inbound,
    LeaderChanged,
    LeadershipLost,
    LogTruncated,
    Refused,
    Reply,
    Send,
    SnapshotLoaded,
    SyncLog,
    VotesAgain,
)
from ottla.quorum.raft.replica import Replica
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.states import NEVER
from ottla.quorum.voters import Endpoint, VoterIdentity
from ottla.storage.errors import LogDirectoryOffline, StorageError
from ottla.storage.log import Log
from ottla.wire.error_code import ErrorCode
from ottla.world.clock import Clock
from ottla.world.disk import DiskError
from ottla.world.scheduler import Timer

_logger: Final = logging.getLogger("ottla.quorum")
_FATAL: Final = (StorageError, DiskError, MetadataError)


class DriverWorld(NamedTuple):
    """What the replica is driven with."""

    clock: Clock
    call_later: CallLater
    messenger: Messenger


class RaftDriver:
    """The replica of this node, and the log as its leader writes it (`RecordWriter`)."""

    def __init__(
        self,
        replica: Replica,
        me: VoterIdentity,
        next_offset: Offset,
        listener: QuorumListener,
        world: DriverWorld,
    ) -> None:
        """`listener` has everything below `next_offset`, and learns what is committed from there on."""
        self.replica = replica
        self.me = me
        self.log: Log = replica.log.log
        # How many bytes of committed records the listener got.
        self.committed_bytes = 0
        self._listener = listener
        self._clock, self._call_later, self._messenger = world
        self._effects: deque[Effect] = deque()
        self._is_carrying_out = False
        self._is_closed = False
        self._timer: Timer | None = None
        self._timer_ms = NEVER
        self._next_offset = next_offset
        # What was appended by this leader since its election: that needs no reading.
        self._leads: BecameLeader | None = None
        self._has_taken_over = False
        self._appended: deque[tuple[CommittedRecords, int]] = deque()

    # What is asked about it.

    @property
    def epoch(self) -> int:
        """The epoch that is known, or that new records of this leader belong to."""
        return self.replica.epoch if self._leads is None else self._leads.epoch

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version."""
        return self.replica.history.kraft_version

    @property
    def log_end_offset(self) -> Offset:
        """Where the next record will lie."""
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> Offset:
        """Everything below is committed."""
        return self.log.high_watermark

    @property
    def now(self) -> Moment:
        """The time, as the replica takes it."""
        return Moment(self._clock.monotonic_ms(), self._clock.now_ms())

    # Events.

    def start(self) -> None:
        """Go on where the last start left off. The only voter stands for election at once."""
        self._effects += self.replica.start(self.now)
        self._carry_out()

    def receive(self, request: Any, version: int, listener: str, answer: Callable[[Any], None]) -> None:
        """Take a request of the quorum, which came through a listener. `answer` gets the response, once."""
        inbound = Inbound(answer, request, version, listener)
        self._step(lambda: self.replica.receive(inbound, self.now))

    def resign(self) -> None:
        """Lead no more, if this node leads."""
        if self._leads is not None:
            epoch = self._leads.epoch
            self._step(lambda: self.replica.resign(epoch, self.now))

    def stop(self, timeout_ms: int) -> None:
        """Hand the leadership over, if there is somebody to take it. See `has_handed_over`."""
        self._step(lambda: self.replica.stop(self.now, timeout_ms))

    @property
    def has_handed_over(self) -> bool:
        """Say whether nothing is left to do before the node stops."""
        return self.replica.is_stopped

    def flush(self) -> None:
        """Sync the log in this thread. The only voter commits everything by that."""
        self.log.flush()
        self._step(lambda: self.replica.synced(self.now))

    def snapshots_changed(self) -> None:
        """Take note that snapshots were written or deleted."""
        self.replica.snapshots_changed()

    def close(self) -> None:
        """Lead no more without telling anybody, and complete the files of the log."""
        if self._timer is not None:
            self._timer.cancel()
        self._is_closed = True
        self._lose_leadership()
        self._effects.clear()
        self.log.flush()
        self.log.close()

    def give_up(self) -> None:
        """Do nothing any more: the log cannot be written."""
        self._is_closed = True
        self._lose_leadership()

    # What the leader appends.

    def prepare(
        self, records: Sequence[Any], metadata_version: int, batch_records_max: int, now_ms: int
    ) -> PreparedAppend:
        """Encode records for the end of the log."""
        base, epoch = self.log_end_offset, self.epoch
        batches = [
            encode_batch(
                records[start : start + batch_records_max],
                metadata_version,
                Offset(base + start),
                epoch,
                now_ms,
            )
            for start in range(0, len(records), batch_records_max)
        ]
        bytes_max = min(BATCH_BYTES_MAX, self.log.config.segment_bytes)
        largest = max(map(len, batches))
        if largest > bytes_max:
            raise BatchTooLarge(f"{len(records)} records take {largest} bytes, a batch has {bytes_max}")
        return PreparedAppend(records, batches, Position(Offset(base + len(records) - 1), epoch, now_ms))

    def append(self, prepared: PreparedAppend, now_ms: int) -> None:
        """Append what was prepared last. Raises `NotLeader`, and then nothing was appended."""
        if self._leads is None:
            raise NotLeader("only the leader appends")
        records, batches, position, replay = prepared
        now = Moment(self._clock.monotonic_ms(), now_ms)
        for batch in batches:
            last_offset, effects = self.replica.append(batch, self._leads.epoch, now)
            self._effects += effects
        assert last_offset == position.offset, "each record has one offset"
        size_bytes = sum(map(len, batches))
        self._appended.append((CommittedRecords(records, position, replay=replay), size_bytes))
        self._carry_out()

    def find_upgrade_error(self, level: int) -> tuple[ErrorCode, str | None]:
        """Say why kraft.version cannot be raised to a level, if it cannot."""
        return self._upgrade(level, validates_only=True)

    def upgrade_kraft_version(self, level: int) -> tuple[ErrorCode, str | None]:
        """Raise kraft.version: from then on records name the voters. Returns why not, if it cannot be."""
        return self._upgrade(level, validates_only=False)

    def _upgrade(self, level: int, *, validates_only: bool) -> tuple[ErrorCode, str | None]:
        error, message, effects = self.replica.upgrade_kraft_version(
            self.epoch, level, self.now, validates_only=validates_only
        )
        self._effects += effects
        self._carry_out()
        return error, message

    # Effects.

    def _step(self, event: Callable[[], list[Effect]]) -> None:
        if self._is_closed:
            return
        try:
            self._effects += event()
        except _FATAL as error:
            self._listener.failed(error)
        self._carry_out()

    def _carry_out(self) -> None:
        if self._is_carrying_out:
            return
        self._is_carrying_out = True
        try:
            while self._effects and not self._is_closed:
                self._do(self._effects.popleft())
        except _FATAL as error:
            self._listener.failed(error)
        finally:
            self._is_carrying_out = False
        self._arm_timer()

    def _do(self, effect: Effect) -> None:
        match effect:
            case Send():
                self._send(effect)
            case Reply(token, response):
                token(response)
            case SyncLog():
                self.log.volume.syncs.request(self.log, self.log_end_offset, self._synced)
            case HighWatermarkMoved(offset):
                self._commit(offset)
            case LeaderChanged():
                self._listener.leader_changed(self._known_leader())
            case BecameLeader():
                self._leads, self._has_taken_over = effect, False
            case LeadershipLost():
                self._lose_leadership()
            case LogTruncated():
                # Nobody may wait for records that are gone.
                self.log.volume.syncs.forget(self.log)
            case SnapshotLoaded(snapshot_id):
                self.log.volume.syncs.forget(self.log)
                self._next_offset = snapshot_id.end_offset
                self._listener.snapshot_loaded(snapshot_id)
            case VotesAgain():
                _logger.info("the metadata is complete again, and this controller votes again")
            case Refused(what):
                _logger.warning("%s", what)

    def _send(self, effect: Send) -> None:
        correlation_id, destination, request = effect

        def answered(response: Any) -> None:
            self._step(lambda: self.replica.receive_response(correlation_id, response, self.now))

        def failed(error: ErrorCode) -> None:
            self._step(lambda: self.replica.fail(correlation_id, request, self.now, error))

        self._messenger.send(destination, request, answered, failed)

    def _synced(self, error: LogDirectoryOffline | None) -> None:
        if self._is_closed:
            return
        if error is not None:
            self._listener.failed(error)
        else:
            self._step(lambda: self.replica.synced(self.now))

    def _arm_timer(self) -> None:
        """Wake the replica when it wants that. A timer that comes too early does no harm."""
        wake_ms = self.replica.wake_ms
        if self._is_closed or wake_ms >= self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = wake_ms
        delay_ms = max(0, wake_ms - self._clock.monotonic_ms())
        self._timer = self._call_later(delay_ms, self._wake)

    def _wake(self) -> None:
        self._timer, self._timer_ms = None, NEVER
        if not self._is_closed and self._clock.monotonic_ms() < self.replica.wake_ms:
            self._arm_timer()
        else:
            self._step(lambda: self.replica.poll(self.now))

    # Committing.

    def _commit(self, end: Offset) -> None:
        while batches := self._take_committed(end):
            self._next_offset = Offset(batches[-1].position.offset + 1)
            self._listener.committed(batches)
        leads = self._leads
        if leads is not None and not self._has_taken_over and end > leads.start_offset:
            self._has_taken_over = True
            self._listener.became_leader()

    def _take_committed(self, end: Offset) -> Sequence[CommittedRecords]:
        """Return what is committed and was not passed on yet, or nothing. What others appended is read.

        So are the control records, which the replica appends by itself.
        """
        offset = self._next_offset
        own_from = end
        if self._appended:
            appended, size_bytes = self._appended[0]
            own_from = Offset(appended.position.offset + 1 - len(appended.records))
            if own_from == offset and appended.position.offset < end:
                self._appended.popleft()
                self.committed_bytes += size_bytes
                return (appended,)
        return self._read(offset, min(own_from, end))

    def _read(self, offset: Offset, end: Offset) -> list[CommittedRecords]:
        read: list[CommittedRecords] = []
        for batch in read_batches(self.log, offset, end):
            self.committed_bytes += batch.size_bytes
            records = () if batch.is_control else batch.records
            read.append(CommittedRecords(records, batch.position, batch.is_control))
        return read

    # Leadership.

    def _lose_leadership(self) -> None:
        if self._leads is not None:
            self._leads = None
            self._appended.clear()
            self._listener.resigned()

    def _known_leader(self) -> KnownLeader:
        replica = self.replica
        info = replica.leader_info()
        endpoint: Endpoint | None = info.endpoints[0] if info.endpoints else None
        return KnownLeader(info.leader_id, info.epoch, endpoint)
