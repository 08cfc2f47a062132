"""One shard of a coordinator: a partition of its internal topic, and the state that is the fold of it.

*Decide, then replay*: a handler looks at the state and returns a `Decision`; the records are appended as one
batch; only then `replay` changes the state, exactly as it does while loading; then the effects in memory
follow. Answers are parked until the batch is committed. Readers are parked too, behind everything written
before them, so that nobody ever learns of state that a crash could take back; that is why no second,
committed copy of the state is needed.

No answer is parked for good. While too few replicas are in sync nothing is committed, perhaps for hours, and
nobody can know for how long. So a client that has waited for some time gets an error, and comes again. What
it asked to be written may be committed all the same, as after any answer that gets lost.

States: LOADING -> ACTIVE -> RESIGNED, or LOADING -> FAILED when the log cannot be read. Only ACTIVE serves.

A record that cannot be replayed while loading is left out, with a line in the log. One bad record of
thousands must not keep everyone from their groups and transactions for good.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from ottla.coordination.runtime.decision import Answer, Decision, ProducerIdentity, Records, Refuse, ignore
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode

R = TypeVar("R")


class ShardStatus(Enum):
    """Where a shard is in its life."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    RESIGNED = "resigned"


class LoggedBatch(NamedTuple):
    """A batch as it is read back: its records, or the transaction marker that it is."""

    last_offset: int
    records: Iterable[CoordinatorRecord] = ()
    producer: ProducerIdentity | None = None
    """Whose transaction it is part of; None for a batch that counts at once."""
    committed: bool | None = None
    """For a transaction marker: True commits, False aborts. None for a batch of records."""


class State(Protocol):
    """The state machine of a shard."""

    def replay(self, records: Iterable[CoordinatorRecord], producer: ProducerIdentity | None) -> None:
        """Apply records: the one way state changes, while serving and while loading alike."""

    def replay_marker(self, producer: ProducerIdentity, committed: bool) -> None:
        """Apply the end of a transaction that wrote to this shard."""

    def activate(self, now_ms: int) -> None:
        """Start timers: everything there was to load has been replayed."""

    def deactivate(self) -> None:
        """Answer those who still wait, and stop timers: another node serves these keys from now on."""


S = TypeVar("S", bound=State)


class ShardLog(Protocol):
    """The partition of the internal topic, as the shard sees it."""

    def append(self, records: Records, producer: ProducerIdentity | None, is_atomic: bool) -> int:
        """Append the records; return the last offset. Raises `CannotAppend`.

        What is atomic is in one batch, perhaps with what others have appended. It may be held back for a
        moment. Once the records are committed `commit_up_to` notifies the shard.
        """

    def write_out(self) -> None:
        """Hold nothing back any more: somebody else is about to append."""

    def batches(self) -> Iterator[LoggedBatch]:
        """Read everything up to the log end. Their records raise nothing: what cannot be read is left out."""

    def leave_out(self, error: Exception) -> None:
        """Tell of the record that was read last: it cannot be replayed."""


class CannotAppend(Exception):
    """The log refused a batch; nothing was written."""

    def __init__(self, error_code: ErrorCode) -> None:
        super().__init__(error_code.name)
        self.error_code = error_code


# The error of a coordinator's client when the coordinator's own log refuses a write.
_ERROR_FOR_CLIENTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def _do_nothing() -> None:
    """Nobody lets time pass for the shard."""


READ_TICKS: Final = 4
WRITE_TICKS: Final = 10
"""For how many ticks the answers to those who read, and to those who write, are parked at most."""
_FOR_GOOD: Final = 1 << 62


class _Parked:
    """An answer that waits until an offset is committed, and who to tell if that takes too long."""

    __slots__ = ("answer", "offset", "refuse", "reply", "ticks_left")

    def __init__(self, offset: int, answer: Answer[Any], reply: Any, refuse: Refuse, ticks_left: int) -> None:
        self.offset = offset
        self.answer = answer
        self.reply = reply
        self.refuse = refuse
        self.ticks_left = ticks_left


class Shard(Generic[S]):
    """A partition's coordinator state together with its log and its parked answers."""

    def __init__(self, partition: int, epoch: int, state: S, log: ShardLog) -> None:
        self.partition = partition
        self.epoch = epoch
        self.status = ShardStatus.LOADING
        self.state = state
        self.written_offset = -1
        self.committed_offset = -1
        self._log = log
        # In the order of their offsets.
        self._parked: deque[_Parked] = deque()
        self.when_parked: Callable[[], None] = _do_nothing
        """Called when an answer is parked: from now on there is something to `tick`."""

    def load(self) -> Iterator[int]:
        """Replay the log batch by batch, yielding offsets. A driver may do other work between two steps."""
        assert self.status is ShardStatus.LOADING
        for batch in self._log.batches():
            self._replay_batch(batch)
            self.written_offset = self.committed_offset = batch.last_offset
            yield batch.last_offset

    def activate(self, now_ms: int) -> None:
        """Serve from now on."""
        assert self.status is ShardStatus.LOADING
        self.status = ShardStatus.ACTIVE
        self.state.activate(now_ms)

    def fail(self) -> None:
        """Stop serving, but stay: a record could not be read, or what was appended cannot be committed."""
        self._stop(ShardStatus.FAILED)

    def resign(self) -> None:
        """Stop serving. Clients that wait get an error that sends them to the new coordinator."""
        self._stop(ShardStatus.RESIGNED)

    def _stop(self, status: ShardStatus) -> None:
        was_active = self.status is ShardStatus.ACTIVE
        self.status = status
        while self._parked:
            self._parked.popleft().refuse(ErrorCode.NOT_COORDINATOR)
        if was_active:
            self.state.deactivate()

    @property
    def refusal(self) -> ErrorCode:
        """The error of a client while the shard does not serve; NONE when it does."""
        if self.status is ShardStatus.ACTIVE:
            return ErrorCode.NONE
        if self.status is ShardStatus.LOADING:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def write(
        self,
        decide: Callable[[S], Decision[R]],
        answer: Answer[R],
        refuse: Refuse,
        producer: ProducerIdentity | None = None,
    ) -> None:
        """Decide, append, replay; answer when committed. `refuse` is called when nothing was written."""
        assert self.status is ShardStatus.ACTIVE, "the runtime checks before it asks a shard"
        self.carry_out(decide(self.state), answer, refuse, producer)

    def carry_out(
        self,
        decision: Decision[R],
        answer: Answer[R],
        refuse: Refuse,
        producer: ProducerIdentity | None = None,
    ) -> None:
        """Append, replay, and answer when committed what was decided on the state as it is now."""
        if decision.records:
            try:
                self.written_offset = self._log.append(decision.records, producer, decision.is_atomic)
            except CannotAppend as error:
                refuse(_ERROR_FOR_CLIENTS.get(error.error_code, error.error_code))
                return
            self.state.replay(decision.records, producer)
        if decision.after_append is not None:
            decision.after_append()
        reply = decision.reply
        if reply is None:
            return
        if self.status is ShardStatus.ACTIVE:
            self._when_committed(answer, reply, refuse, WRITE_TICKS)
        else:
            # The log failed when an effect wrote to it: nothing will be committed any more.
            refuse(self.refusal)

    def read(self, query: Callable[[S], R], answer: Answer[R], refuse: Refuse) -> None:
        """Answer from the state as it is now, once everything in it is committed."""
        self._when_committed(answer, query(self.state), refuse, READ_TICKS)

    def after_commit(self, effect: Callable[[], None]) -> None:
        """Call once all that is written now is committed, however long that takes; never if it is not."""
        self._when_committed(lambda _: effect(), None, ignore, _FOR_GOOD)

    def tick(self) -> bool:
        """Let some time pass for those who wait. Says whether there are any left."""
        late = []
        for one in self._parked:
            one.ticks_left -= 1
            if one.ticks_left <= 0:
                late.append(one)
        if late:
            self._parked = deque(one for one in self._parked if one.ticks_left > 0)
        for one in late:
            one.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return bool(self._parked)

    def write_out(self) -> None:
        """Write what the log holds back. A marker is appended by others: it must come after."""
        self._log.write_out()

    def end_transaction(self, producer: ProducerIdentity, committed: bool, marker_offset: int) -> None:
        """Take note of a transaction marker that was appended to this shard's partition."""
        assert marker_offset > self.written_offset, "what was held back is written out before a marker"
        self.written_offset = marker_offset
        self.state.replay_marker(producer, committed)

    def commit_up_to(self, offset: int) -> None:
        """Everything up to and including `offset` is committed: let the answers go."""
        self.committed_offset = max(self.committed_offset, offset)
        while self._parked and self._parked[0].offset <= self.committed_offset:
            one = self._parked.popleft()
            one.answer(one.reply)

    def _when_committed(self, answer: Answer[R], reply: R, refuse: Refuse, ticks: int) -> None:
        if self.written_offset <= self.committed_offset:
            answer(reply)
        else:
            self._parked.append(_Parked(self.written_offset, answer, reply, refuse, ticks))
            self.when_parked()

    def _replay_batch(self, batch: LoggedBatch) -> None:
        if batch.committed is not None:
            assert batch.producer is not None, "a marker ends somebody's transaction"
            self.state.replay_marker(batch.producer, batch.committed)
            return
        records = iter(batch.records)
        try:
            self.state.replay(records, batch.producer)
        except Exception as error:
            # Whatever a stranger's record breaks, the rest of the log still counts.
            self._log.leave_out(error)
            self._replay_one_by_one(records, batch.producer)

    def _replay_one_by_one(
        self, records: Iterator[CoordinatorRecord], producer: ProducerIdentity | None
    ) -> None:
        for record in records:
            try:
                self.state.replay((record,), producer)
            except Exception as error:
                self._log.leave_out(error)


AnyShard = Shard[Any]
