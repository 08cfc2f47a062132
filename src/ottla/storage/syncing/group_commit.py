"""Syncing for many who wait: appends that arrive while a sync is under way share the next one.

A sync takes about as long for a thousand batches as for one, so the busier a log is, the less each of its
appends costs. Each log has at most one sync under way; all logs together have a limit. When many logs wait
they are started all at once, for then one sync of the whole file system is cheaper than one of each file.

This is the state machine alone. The caller says when to start what is wanted, and learns which tickets to
run; it runs them where it likes and tells how each ended. A failed sync is never tried again: callers that
wait for it learn that it failed.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from ottla.model.ids import Offset
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.storage.syncing import flush
from ottla.storage.syncing.flush import FlushTicket
from ottla.world.disk import DiskError

T = TypeVar("T")


@dataclass(slots=True)
class Outcome(Generic[T]):
    """What is to be done now: tickets to run, after a `start`, and those to be notified."""

    starts: list[tuple[Log, FlushTicket]] = field(default_factory=list)
    done: list[T] = field(default_factory=list)
    failed: list[tuple[T, LogDirectoryOffline]] = field(default_factory=list)


# What most appends come to: they wait. Making an outcome each time takes 0.6 us.
NOTHING: Final[Outcome[Any]] = Outcome()


class GroupCommit(Generic[T]):
    """The syncs of a node. `T` is what the caller knows a waiting append by."""

    __slots__ = ("_again", "_let_go", "_queue", "_running", "_running_max", "_together_min", "_waiters")

    def __init__(self, running_max: int, together_min: int = 1 << 30) -> None:
        """At most `running_max` syncs run at once, but `together_min` logs or more are started together."""
        self._running_max = running_max
        self._together_min = together_min
        self._running: dict[Log, FlushTicket] = {}
        # Logs that want a sync and have none under way, in the order they asked.
        self._queue: dict[Log, None] = {}
        # Logs that want another one when theirs is over.
        self._again: set[Log] = set()
        # Logs that somebody let go of during their sync, and that nobody has asked for since.
        self._let_go: set[Log] = set()
        # By log, ascending by the offset below which all has to be safe.
        self._waiters: dict[Log, deque[tuple[Offset, T]]] = {}

    @property
    def is_idle(self) -> bool:
        return not self._running and not self._queue

    @property
    def may_start(self) -> bool:
        """Say whether a sync is wanted that is not under way, and need not wait for another to end."""
        return bool(self._queue) and len(self._running) < self._running_max

    def request(self, log: Log, offset: Offset | None = None, waiter: T | None = None) -> Outcome[T]:
        """Ask for a sync. `waiter` is notified when everything below `offset` is safe."""
        if waiter is not None and offset is not None:
            if log.recovery_point >= offset:
                return Outcome(done=[waiter])
            waiters = self._waiters.get(log)
            if waiters is None:
                waiters = self._waiters[log] = deque()
            waiters.append((offset, waiter))
        if log in self._running:
            self._again.add(log)
            self._let_go.discard(log)
        else:
            self._queue[log] = None
        return NOTHING

    def finished(self, *logs: Log) -> Outcome[T]:
        """Take notice that the running syncs of `logs` succeeded."""
        outcome: Outcome[T] = Outcome()
        for log in logs:
            ticket = self._running[log]
            error = flush.find_removed(ticket)
            if error is not None:
                self._fail(log, error, outcome)
                continue
            log.finish_flush(self._running.pop(log))
            if self._settle(log, outcome) or log in self._again:
                self._queue[log] = None
            self._again.discard(log)
            self._let_go.discard(log)
        # The waiters come after this.
        if len(logs) == 1:
            logs[0].volume.save_synced()
        else:
            # Each once, in the order of the logs, so that a simulation repeats.
            for volume in dict.fromkeys([log.volume for log in logs]):
                volume.save_synced()
        return outcome

    def failed(self, log: Log, error: DiskError) -> Outcome[T]:
        """Take notice that the running sync of `log` failed."""
        outcome: Outcome[T] = Outcome()
        self._fail(log, error, outcome)
        return outcome

    def _fail(self, log: Log, error: DiskError, outcome: Outcome[T]) -> None:
        self._again.discard(log)
        if log.fail_flush(self._running.pop(log), error):
            self._tell_failed(log, outcome)
        elif log not in self._let_go:
            self._queue[log] = None
        # Of one that was deleted nothing may be left, and a sync would take its whole directory offline.
        self._let_go.discard(log)

    def forget(self, log: Log) -> list[T]:
        """Let go of a log that was deleted or moved. Returns who waited for it."""
        self._queue.pop(log, None)
        self._again.discard(log)
        if log in self._running:
            self._let_go.add(log)
        return [waiter for _, waiter in self._waiters.pop(log, ())]

    def _settle(self, log: Log, outcome: Outcome[T]) -> bool:
        """Tell those whose offset is safe. Says whether others are waiting still."""
        waiters = self._waiters.get(log)
        if waiters is None:
            return False
        recovery_point = log.recovery_point
        while waiters and waiters[0][0] <= recovery_point:
            outcome.done.append(waiters.popleft()[1])
        if not waiters:
            del self._waiters[log]
        return bool(waiters)

    def start(self) -> Outcome[T]:
        """Start what is wanted, as far as there may be more at once."""
        outcome: Outcome[T] = Outcome()
        running_max = self._running_max
        if len(self._running) < running_max and len(self._queue) >= self._together_min:
            running_max = len(self._running) + len(self._queue)
        while self._queue and len(self._running) < running_max:
            log = next(iter(self._queue))
            del self._queue[log]
            try:
                ticket = log.start_flush()
            except LogDirectoryOffline:
                self._tell_failed(log, outcome)
                continue
            if ticket is None:
                # A caller that still waits then waits for records that a truncation took: `forget` is for
                # them.
                self._settle(log, outcome)
                continue
            self._running[log] = ticket
            outcome.starts.append((log, ticket))
        return outcome

    def _tell_failed(self, log: Log, outcome: Outcome[T]) -> None:
        error = log.volume.offline_error()
        outcome.failed.extend([(waiter, error) for _, waiter in self._waiters.pop(log, ())])
