"""A partition that this node leads, as one share group sees it: what is in flight, written and read back.

The state is read from the share coordinator when the group first asks for records here. What members say is
written there. One write is under way at a time, and what comes meanwhile shares the next, so that a busy
partition costs few writes and none of them overtakes another.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol

from ottla.broker.logs.partition import Partition
from ottla.broker.share.acquiring import Acquired, Limits, Wanted
from ottla.broker.share.dead_letters import Done
from ottla.broker.share.in_flight import Acknowledgement, InFlight, InvalidAcknowledgement, Released
from ottla.broker.share.letters import REJECTED, USED_UP, DeadRun, Queue
from ottla.broker.share.reading import SharedRead, read_shared
from ottla.broker.share.runs import Run
from ottla.coordination.share.coordinator import Outcome, WrittenState
from ottla.coordination.share.state import UNKNOWN, PartitionUpdate, ShareKey
from ottla.coordination.share.state_batches import StateBatch
from ottla.model.ids import Offset
from ottla.storage.read import ReadLimit
from ottla.wire.error_code import ErrorCode
from ottla.world.clock import Clock
from ottla.world.scheduler import Scheduler, Timer

_READS_MAX: Final = 100
"""How often one fetch goes on behind records that nobody may see."""

_ERRORS_FOR_MEMBERS: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""The error of a member when the share coordinator refuses. Everything else is a bug or a misuse."""

_RETRY_MS: Final = 1_000

Acknowledged = Callable[[ErrorCode, str | None], None]


class Persister(Protocol):
    """The share coordinators of the cluster."""

    def read(self, key: ShareKey, leader_epoch: int, done: Callable[[Outcome], None]) -> None:
        """Read the state of a partition that this node leads."""

    def write(self, key: ShareKey, written: WrittenState, done: Callable[[Outcome], None]) -> None:
        """Write what became of records of a partition that this node leads."""


class Surroundings(Protocol):
    """What a share partition asks of the node."""

    clock: Clock
    scheduler: Scheduler

    @property
    def persister(self) -> Persister:
        """The share coordinators of the cluster."""

    def limits_of(self, group_id: str) -> Limits:
        """Return what the group allows."""

    def start_of(self, group_id: str, partition: Partition) -> int:
        """Return where a group starts that has never read the partition."""

    def write_letters(
        self, share_partition: "SharePartition", runs: Sequence[DeadRun], is_first: bool, done: Done
    ) -> None:
        """Copy records that are given up to the topic of dead letters of the group."""

    def changed(self, share_partition: "SharePartition") -> None:
        """There may be something to acquire, or the share partition is no longer usable."""


class Status(Enum):
    """Where a share partition is in its life."""

    LOADING = auto()
    ACTIVE = auto()
    FENCED = auto()
    """Another one has taken its place, or will. What is known here does not count."""


class _Write(NamedTuple):
    batches: list[StateBatch]
    runs: list[Run]
    done: Acknowledged


class SharePartition:
    """The records of a partition that are on their way through a group."""

    def __init__(self, key: ShareKey, partition: Partition, surroundings: Surroundings) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.status = Status.LOADING
        self.error_code = ErrorCode.NONE
        """Why it could not be loaded."""
        self.in_flight = InFlight(0)
        self._surroundings = surroundings
        self._state_epoch = 0
        self._waiting: list[_Write] = []
        self._is_writing = False
        self._timer: Timer | None = None
        self._timer_ms = 0
        self._is_writing_letters = False
        # Whether letters may have been written that nobody knows of: before a crash, or by a failed attempt.
        self._may_have_letters = False

    @property
    def limits(self) -> Limits:
        """What the group allows."""
        return self._surroundings.limits_of(self.key.group_id)

    @property
    def is_current(self) -> bool:
        """Whether this node still leads the partition, in the epoch that it was loaded in."""
        partition = self.partition
        return (
            self.status is not Status.FENCED
            and partition.is_leader
            and partition.leader_epoch == self.leader_epoch
        )

    @property
    def is_busy(self) -> bool:
        """Whether something waits to be written."""
        return self._is_writing or bool(self._waiting) or self._is_writing_letters

    @property
    def queue(self) -> Queue:
        """What dead letters are about."""
        return Queue(self.key, self.partition.topic, self._state_epoch)

    @property
    def owes_letters(self) -> bool:
        """Whether records wait for their dead letters."""
        return self.is_current and bool(self.in_flight.archiving_runs())

    # Loading

    def load(self) -> None:
        """Read the state. `Surroundings.changed` is called when it is there, or cannot be had."""
        self._surroundings.persister.read(self.key, self.leader_epoch, self._loaded)

    def _loaded(self, outcome: Outcome) -> None:
        if self.status is Status.FENCED:
            return
        state = outcome.state
        if outcome.error_code is not ErrorCode.NONE or state is None:
            self._fail(outcome)
            return
        self._state_epoch = state.state_epoch
        if state.start_offset != UNKNOWN:
            self._begin(InFlight(state.start_offset, state.batches))
            return
        # Deviation: Kafka writes down where a group starts with the first acknowledgement. If the leader
        # crashed before that, a group that starts at the end would miss what has come meanwhile.
        start = self._surroundings.start_of(self.key.group_id, self.partition)
        update = PartitionUpdate(self.leader_epoch, start, 0, ())
        self._is_writing = True
        self._surroundings.persister.write(
            self.key, WrittenState(self._state_epoch, update), lambda outcome: self._started(start, outcome)
        )

    def _started(self, start: int, outcome: Outcome) -> None:
        self._is_writing = False
        if outcome.error_code is ErrorCode.NONE:
            self._begin(InFlight(start))
        elif self.status is Status.LOADING:
            self._fail(outcome)

    def _begin(self, in_flight: InFlight) -> None:
        if self.status is Status.LOADING:
            self.in_flight = in_flight
            self._may_have_letters = bool(in_flight.archiving_runs())
            self.status = Status.ACTIVE
            self._surroundings.changed(self)
            self._archive_dead()

    def _fail(self, outcome: Outcome) -> None:
        self.error_code = _ERRORS_FOR_MEMBERS.get(outcome.error_code, ErrorCode.UNKNOWN_SERVER_ERROR)
        self.status = Status.FENCED
        self._surroundings.changed(self)

    # Fetching

    def readable_bytes(self, bytes_max: int, limit: ReadLimit) -> int:
        """Return about how many bytes a fetch would read."""
        in_flight, log = self.in_flight, self.partition.log
        offset = max(in_flight.next_fetch_offset(), log.log_start_offset)
        if not in_flight.can_acquire(self.limits.in_flight_max) or offset > log.log_end_offset:
            return 0
        return log.read(Offset(offset), bytes_max, limit, True).length

    def fetch(self, member: str, wanted: Wanted, bytes_max: int, limit: ReadLimit) -> SharedRead | None:
        """Acquire records for a member. None if there are none to acquire.

        Raises `LogDirectoryOffline`.
        """
        in_flight, log, limits = self.in_flight, self.partition.log, self.limits
        for _ in range(_READS_MAX):
            in_flight.log_starts_at(log.log_start_offset)
            offset = in_flight.next_fetch_offset()
            if not in_flight.can_acquire(limits.in_flight_max) or offset > log.log_end_offset:
                return None
            read = read_shared(
                log, offset, in_flight.last_wanted(offset, wanted.records_max), bytes_max, limit
            )
            if read is None:
                return None
            now_ms = self._surroundings.clock.monotonic_ms()
            acquired = in_flight.acquire(member, wanted, offset, read.batches, limits, now_ms)
            if not acquired and in_flight.next_fetch_offset() == offset:
                return None
            acquired = self._without_aborted(member, acquired, read)
            if acquired:
                self._arm(now_ms + limits.lock_ms)
                return read.cut_to(acquired)
        return None

    def _without_aborted(self, member: str, acquired: list[Acquired], read: SharedRead) -> list[Acquired]:
        for first, last in read.aborted_batches():
            self.in_flight.archive(first, last, member)
            acquired = [part for one in acquired for part in _outside(one, first, last)]
        return acquired

    # Acknowledging

    def acknowledge(self, member: str, acknowledgements: list[Acknowledgement], done: Acknowledged) -> None:
        """Take what a member says. `done` is called when that is written, or cannot be."""
        now_ms = self._surroundings.clock.monotonic_ms()
        try:
            runs = self.in_flight.acknowledge(member, acknowledgements, self.limits, now_ms)
        except InvalidAcknowledgement as error:
            done(error.error_code, error.message)
            return
        if not runs:
            done(ErrorCode.NONE, None)
            return
        self._write(_Write([run.state_batch() for run in runs], runs, done))

    def release(self, member: str) -> None:
        """Make what a member has available to others: it leaves."""
        if self.status is Status.ACTIVE:
            self._released(self.in_flight.release_member(member, self.limits))

    def _released(self, released: Released) -> None:
        if released.batches:
            self._write(_Write(released.batches, released.pending, _ignore))
            self._surroundings.changed(self)

    # Writing

    def _write(self, write: _Write) -> None:
        self._waiting.append(write)
        if not self._is_writing:
            self._write_waiting()

    def _write_waiting(self) -> None:
        writes, self._waiting = self._waiting, []
        self._is_writing = True
        update = PartitionUpdate(
            self.leader_epoch,
            self.in_flight.start_when_written(),
            self.in_flight.done_count_when_written(),
            tuple(batch for write in writes for batch in write.batches),
        )
        self._surroundings.persister.write(
            self.key, WrittenState(self._state_epoch, update), lambda outcome: self._written(writes, outcome)
        )

    def _written(self, writes: list[_Write], outcome: Outcome) -> None:
        self._is_writing = False
        runs = [run for write in writes for run in write.runs]
        error_code, message = outcome.error_code, outcome.message
        if error_code is ErrorCode.NONE:
            self.in_flight.written(runs)
        else:
            self.in_flight.not_written(runs, self.limits, self._surroundings.clock.monotonic_ms())
            error_code = _ERRORS_FOR_MEMBERS.get(error_code, ErrorCode.UNKNOWN_SERVER_ERROR)
            if error_code not in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR):
                self.fence()
        if self._waiting:
            self._write_waiting()
        for write in writes:
            write.done(error_code, message)
        self._surroundings.changed(self)
        if error_code is ErrorCode.NONE:
            self._archive_dead()
        elif self.status is Status.ACTIVE and runs:
            # What was about to be released is held until it can be written.
            self._arm(self._surroundings.clock.monotonic_ms() + _RETRY_MS)
            self._surroundings.scheduler.call_later(_RETRY_MS, self._archive_dead)

    # Records that are given up

    def _archive_dead(self) -> None:
        """Have letters written for records that are given up, and archive them."""
        runs = self.in_flight.archiving_runs()
        if not runs or self._is_writing_letters or not self.is_current or self.status is not Status.ACTIVE:
            return
        limits = self.limits
        dead = [
            DeadRun(run.first, run.last, run.count, REJECTED if _is_rejected(run, limits) else USED_UP)
            for run in runs
            if not run.has_letter
        ]
        if not dead or not limits.keeps_dead_letters:
            self._archive(runs)
            return
        self._is_writing_letters = True
        self._surroundings.write_letters(
            self, dead, self._may_have_letters, lambda is_written: self._letters_written(runs, is_written)
        )

    def _letters_written(self, runs: list[Run], is_written: bool) -> None:
        self._is_writing_letters = False
        if not self.is_current:
            # Another one finds the letters when it is loaded.
            self.fence()
            return
        self._may_have_letters = not is_written
        if is_written:
            for run in runs:
                run.has_letter = True
            self._archive(runs)
        else:
            self._surroundings.scheduler.call_later(_RETRY_MS, self._archive_dead)

    def _archive(self, runs: list[Run]) -> None:
        changed = self.in_flight.archive_dead(runs)
        if changed:
            self._write(_Write([run.state_batch() for run in changed], changed, _ignore))

    # Time

    def _arm(self, deadline_ms: int) -> None:
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_ms = max(deadline_ms - self._surroundings.clock.monotonic_ms(), 0)
        self._timer = self._surroundings.scheduler.call_later(delay_ms, self._time_is_over)

    def _time_is_over(self) -> None:
        self._timer = None
        if not self.is_current:
            self.fence()
            return
        now_ms = self._surroundings.clock.monotonic_ms()
        self._released(self.in_flight.release_expired(self.limits, now_ms))
        deadline_ms = self.in_flight.next_deadline_ms()
        if deadline_ms is not None:
            # A lock whose end is being written may be over already.
            self._arm(max(deadline_ms, now_ms + 1))

    def fence(self) -> None:
        """Have nothing to do with the partition any more."""
        self.status = Status.FENCED
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _is_rejected(run: Run, limits: Limits) -> bool:
    return run.is_rejected or run.count < limits.deliveries_max


def _outside(one: Acquired, first: int, last: int) -> list[Acquired]:
    """Return the parts of offsets in a row that are not from `first` to `last`."""
    if last < one.first or one.last < first:
        return [one]
    parts = []
    if one.first < first:
        parts.append(one._replace(last=first - 1))
    if last < one.last:
        parts.append(one._replace(first=last + 1))
    return parts


def _ignore(_error_code: ErrorCode, _message: str | None) -> None:
    """Nobody waits: if it is not written, the records are delivered once more."""
