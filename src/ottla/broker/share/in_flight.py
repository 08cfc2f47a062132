"""The records of a partition that are on their way through a share group. Pure: time and records come in.

    start                                                                    end
      |  acknowledged  |  acquired by m1  |  available  |  acquired by m2  |   not fetched yet

Between `start` and `end` every offset is in exactly one run: offsets in a row that are in the same state.
What lies before `start` is done, and what lies after `end` nobody has seen. A run is split where only a part
of it changes, so the number of runs follows from what members do, not from how many records there are.

A member acquires records for some time. It accepts them (acknowledged), releases them (available again),
rejects them (archived), or keeps them for longer. A record that was delivered as often as the group allows is
archived instead of being available again.

What a member says counts when it is written, because it must survive a crash. Until then the run stays
acquired, with the state that it is about to get. If the write fails, the run is as it was, unless its time is
over. When the time of a run is over, or its member leaves, it is available at once: another delivery does no
harm.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ottla.broker.share.acquiring import Acquired, Acquiring, Limits, Wanted, divide
from ottla.broker.share.runs import NOBODY, TERMINAL, AcknowledgeType, RecordState, Run
from ottla.coordination.share.state_batches import StateBatch
from ottla.wire.error_code import ErrorCode


class Acknowledgement(NamedTuple):
    """What a member says of offsets in a row: one type for all, or one for each."""

    first: int
    last: int
    types: tuple[int, ...]


class Released(NamedTuple):
    """What is to be written about runs that their members have no more."""

    batches: list[StateBatch]
    pending: list[Run]
    """Those of them that change only when that is written."""


class InvalidAcknowledgement(Exception):
    """A member acknowledges what it may not."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message


class InFlight:
    """The runs of one partition in one group."""

    def __init__(self, start: int, batches: Iterable[StateBatch] = ()) -> None:
        """`batches` is what was written. Offsets between them were never done, so they are available."""
        self.start = start
        self.end = start
        self.runs: list[Run] = []
        for batch in batches:
            if batch.last_offset < self.end:
                continue
            first = max(batch.first_offset, self.end)
            if first > self.end:
                self._append(Run(self.end, first - 1, RecordState.AVAILABLE, 0))
            self._append(
                Run(first, batch.last_offset, RecordState(batch.delivery_state), batch.delivery_count)
            )
        # Whether some run may be free.
        self._may_be_free = bool(self.runs)
        self._drop_done()

    # What there is

    @property
    def record_count(self) -> int:
        """How many records are between start and end."""
        return self.end - self.start

    def done_count_when_written(self) -> int:
        """Return how many of them will be done when all that is pending is written, behind the new start."""
        start = self.start_when_written()
        return sum(len(run) for run in self.runs if run.first >= start and _will_be_terminal(run))

    def start_when_written(self) -> int:
        """Return where the partition starts when all that is pending is written."""
        for run in self.runs:
            if not _will_be_terminal(run):
                return run.first
        return self.end

    def next_fetch_offset(self) -> int:
        """Return from where on there may be something to acquire."""
        if self._may_be_free:
            for run in self.runs:
                if run.is_free:
                    return run.first
            self._may_be_free = False
        return self.end

    def can_acquire(self, in_flight_max: int) -> bool:
        """Say whether it makes sense to read records."""
        return self.next_fetch_offset() < self.end or self.record_count < in_flight_max

    def last_wanted(self, offset: int, records_max: int) -> int:
        """Return how far to read from `offset` on so that `records_max` records can be acquired."""
        for run in self.runs[self._index_of(offset) :]:
            if run.is_free:
                first = max(run.first, offset)
                if run.last - first + 1 >= records_max:
                    return first + records_max - 1
                records_max -= run.last - first + 1
        return max(self.end, offset) + records_max - 1

    def next_deadline_ms(self) -> int | None:
        """Return when the first lock is over, if there is one."""
        return min((run.deadline_ms for run in self.runs if run.state is RecordState.ACQUIRED), default=None)

    def archiving_runs(self) -> list[Run]:
        """Return the runs whose records are given up, but are not archived yet."""
        return [run for run in self.runs if run.state is RecordState.ARCHIVING and run.pending is None]

    # Acquiring

    def acquire(
        self,
        member: str,
        wanted: Wanted,
        fetch_offset: int,
        batches: Sequence[tuple[int, int]],
        limits: Limits,
        now_ms: int,
    ) -> list[Acquired]:
        """Give records to a member: those of the log's `batches` (first and last offsets) that are free."""
        if not batches or batches[-1][1] < self.start:
            return []
        last = batches[-1][1]
        records_max = min(wanted.records_max, limits.in_flight_max - self.record_count)
        if records_max <= 0:
            if fetch_offset >= self.end:
                return []
            # There is no room for more, but something in between is free.
            records_max = min(wanted.records_max, self.end - fetch_offset)
            last = min(last, self.end - 1)
        self._archive_missing(fetch_offset, batches[0][0])
        acquiring = Acquiring(member, wanted, records_max, limits, now_ms + limits.lock_ms)
        self._acquire_free(acquiring, max(fetch_offset, batches[0][0]), last)
        if acquiring.left > 0 and last >= self.end:
            self._acquire_new(acquiring, batches, last)
        return acquiring.acquired

    def _acquire_free(self, acquiring: Acquiring, first: int, last: int) -> None:
        index = self._index_of(first)
        while index < len(self.runs) and acquiring.left > 0:
            run = self.runs[index]
            if run.first > last:
                return
            if run.is_free:
                if run.first < first:
                    self.runs.insert(index + 1, run.split_before(first))
                    index += 1
                    continue
                part_last = min(run.last, last, run.first + acquiring.records_of(run) - 1)
                if part_last < run.first:
                    return
                if part_last < run.last:
                    self.runs.insert(index + 1, run.split_before(part_last + 1))
                acquiring.take(run)
            index += 1

    def _acquire_new(self, acquiring: Acquiring, batches: Sequence[tuple[int, int]], last: int) -> None:
        base = batches[0][0]
        if base > self.end:
            # Compaction has removed what was there.
            self._append(Run(self.end, base - 1, RecordState.ARCHIVED, 0))
        first = self.end
        if acquiring.left < last - first + 1:
            last = first + acquiring.left - 1
            if not acquiring.wanted.is_record_limit:
                last = next((end for base, end in batches if base <= last <= end), last)
        for part_first, part_last in divide(first, last, batches, acquiring.wanted):
            run = Run(part_first, part_last, RecordState.AVAILABLE, 0)
            self._append(run)
            acquiring.take(run)
        self._drop_done()

    def archive(self, first: int, last: int, member: str) -> None:
        """Archive what a member has just acquired and must not see: records of aborted transactions."""
        for run in self._runs_between(first, last, lambda run: run.is_held and run.member == member):
            self._become(run, RecordState.ARCHIVED)
        self._drop_done()

    def _archive_missing(self, fetch_offset: int, base: int) -> None:
        """Archive what is free but not in the log any more."""
        if fetch_offset < min(base, self.end):
            for run in self._runs_between(fetch_offset, min(base, self.end) - 1, lambda run: run.is_free):
                run.state = RecordState.ARCHIVED
            self._drop_done()

    # Acknowledging

    def acknowledge(
        self, member: str, acknowledgements: Iterable[Acknowledgement], limits: Limits, now_ms: int
    ) -> list[Run]:
        """Take what a member says. Return the runs that change when that is written.

        Raises `InvalidAcknowledgement`; then nothing has changed.
        """
        acknowledgements = [one for one in acknowledgements if one.last >= self.start]
        previous_last = -1
        for one in acknowledgements:
            if one.first <= previous_last:
                raise _not_acquired()
            previous_last = one.last
            self._check(member, one, limits)
        changed: list[Run] = []
        for one in acknowledgements:
            for first, last, kind in _same_types(one):
                first = max(first, self.start)
                if first <= last:
                    changed += self._apply(first, last, kind, limits, now_ms)
        return changed

    def _check(self, member: str, one: Acknowledgement, limits: Limits) -> None:
        first = max(one.first, self.start)
        if first >= self.end or one.last >= self.end:
            which = "first" if first >= self.end else "last"
            raise InvalidAcknowledgement(
                ErrorCode.INVALID_REQUEST,
                f"Batch record not found. The {which} offset in request is past acquired records.",
            )
        if AcknowledgeType.RENEW in one.types and not limits.may_renew:
            raise InvalidAcknowledgement(
                ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group."
            )
        index = self._index_of(first)
        while index < len(self.runs) and self.runs[index].first <= one.last:
            run = self.runs[index]
            if not run.is_held:
                raise _not_acquired()
            if run.member != member:
                raise InvalidAcknowledgement(
                    ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of batch record"
                )
            index += 1

    def _apply(self, first: int, last: int, kind: int, limits: Limits, now_ms: int) -> list[Run]:
        changed = self._runs_between(first, last, lambda run: run.is_held)
        if kind == AcknowledgeType.RENEW:
            for run in changed:
                run.deadline_ms = now_ms + limits.lock_ms
            return []
        for run in changed:
            if kind == AcknowledgeType.ACCEPT:
                run.pending = RecordState.ACKNOWLEDGED
            elif kind == AcknowledgeType.RELEASE:
                run.pending = _state_after_release(run, limits)
            elif kind == AcknowledgeType.REJECT and limits.keeps_dead_letters:
                run.pending, run.is_rejected = RecordState.ARCHIVING, True
            else:
                run.pending = RecordState.ARCHIVED
        return changed

    def archive_dead(self, runs: Iterable[Run]) -> list[Run]:
        """Have runs archived that were given up. Return those that change when that is written."""
        changed = [run for run in runs if run.state is RecordState.ARCHIVING and run.pending is None]
        for run in changed:
            run.pending = RecordState.ARCHIVED
        return changed

    def written(self, runs: Iterable[Run]) -> None:
        """What was pending of these runs is written."""
        for run in runs:
            if run.pending is not None:
                self._become(run, run.pending)
        self._drop_done()

    def not_written(self, runs: Iterable[Run], limits: Limits, now_ms: int) -> None:
        """What was pending of these runs cannot be written: they are as they were."""
        for run in runs:
            if run.pending is None:
                continue
            run.pending = None
            if run.state is not RecordState.ACQUIRED or run.deadline_ms > now_ms:
                continue
            state = _state_after_release(run, limits)
            if state is not RecordState.ARCHIVING:
                self._become(run, state)
            # Otherwise it stays until that can be written: its letter must not come before.
        self._drop_done()

    # Releasing

    def release_expired(self, limits: Limits, now_ms: int) -> Released:
        """Release what was acquired for too long. Return what is to be written."""
        return self._release([run for run in self.runs if run.deadline_ms <= now_ms], limits)

    def release_member(self, member: str, limits: Limits) -> Released:
        """Release what a member has that leaves. Return what is to be written."""
        return self._release([run for run in self.runs if run.member == member], limits)

    def _release(self, runs: Iterable[Run], limits: Limits) -> Released:
        released = Released([], [])
        for run in runs:
            if not run.is_held:
                continue
            state = _state_after_release(run, limits)
            if state is RecordState.ARCHIVING:
                run.pending = state
                released.pending.append(run)
            else:
                self._become(run, state)
            released.batches.append(run.state_batch())
        if released.batches:
            self._drop_done()
        return released

    def _become(self, run: Run, state: RecordState) -> None:
        run.state, run.pending, run.member, run.deadline_ms = state, None, NOBODY, 0
        self._may_be_free |= state is RecordState.AVAILABLE

    # The ends

    def log_starts_at(self, offset: int) -> None:
        """Forget what is not in the log any more. Records that are owed a letter stay until it is written."""
        if offset <= self.start:
            return
        if any(_is_owed_letter(run) for run in self.runs[: self._index_of(offset - 1) + 1]):
            if offset > self.end:
                self._append(Run(self.end, offset - 1, RecordState.ARCHIVED, 0))
            self._archive_missing(self.start, offset)
            return
        if offset >= self.end:
            self.runs.clear()
            self.start = self.end = offset
            return
        index = self._index_of(offset)
        self.runs[index].first = offset
        del self.runs[:index]
        self.start = offset
        self._drop_done()

    def _drop_done(self) -> None:
        done = 0
        for run in self.runs:
            if not run.is_terminal:
                break
            done += 1
        if done:
            del self.runs[:done]
            self.start = self.runs[0].first if self.runs else self.end

    def _append(self, run: Run) -> None:
        assert run.first == self.end, "runs follow each other"
        self.runs.append(run)
        self.end = run.last + 1

    def _index_of(self, offset: int) -> int:
        """Return the index of the run that has an offset; that of the first for one before all."""
        return max(bisect_right(self.runs, offset, key=_first) - 1, 0)

    def _runs_between(self, first: int, last: int, is_meant: Callable[[Run], bool]) -> list[Run]:
        """Return the runs that are meant, split so that they have no offsets but those from first to last."""
        first = max(first, self.start)
        index = self._index_of(first)
        found: list[Run] = []
        while index < len(self.runs) and self.runs[index].first <= last:
            run = self.runs[index]
            index += 1
            if run.last < first or not is_meant(run):
                continue
            if run.first < first:
                run = run.split_before(first)
                self.runs.insert(index, run)
                index += 1
            if run.last > last:
                self.runs.insert(index, run.split_before(last + 1))
            found.append(run)
        return found


def _first(run: Run) -> int:
    return run.first


def _is_owed_letter(run: Run) -> bool:
    return RecordState.ARCHIVING in (run.state, run.pending)


def _will_be_terminal(run: Run) -> bool:
    return (run.state if run.pending is None else run.pending) in TERMINAL


def _state_after_release(run: Run, limits: Limits) -> RecordState:
    if run.count < limits.deliveries_max:
        return RecordState.AVAILABLE
    return RecordState.ARCHIVING if limits.keeps_dead_letters else RecordState.ARCHIVED


def _same_types(one: Acknowledgement) -> Iterable[tuple[int, int, int]]:
    """Divide what a member says into offsets in a row of which it says the same."""
    types = one.types
    if len(types) == 1:
        yield one.first, one.last, types[0]
        return
    begin = 0
    for index in range(1, len(types) + 1):
        if index == len(types) or types[index] != types[begin]:
            yield one.first + begin, one.first + index - 1, types[begin]
            begin = index


def _not_acquired() -> InvalidAcknowledgement:
    return InvalidAcknowledgement(
        ErrorCode.INVALID_RECORD_STATE,
        "The batch cannot be acknowledged. The batch is not in the acquired state.",
    )
