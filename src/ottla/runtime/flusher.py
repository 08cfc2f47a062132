"""The driver of the group commit: it has tickets synced beside the event loop, which never waits.

A sync takes about a millisecond on a good disk. Several are under way at once, because those of different
files overlap: the file system commits them together. When many logs wait, one sync of the whole file system
serves all of them. `docs/decisions/group-commit.md` has the figures.

Syncs begin when the loop has nothing else to do, so that all requests that have come together share them. A
loop that is never idle begins them every few milliseconds.

This works on the world's protocols alone. `sync_workers.py` has those who sync in a process.
"""

from collections.abc import Callable, Sequence
from typing import Final

from ottla.model.ids import Offset
from ottla.runtime.durations import Durations
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.storage.syncing import flush
from ottla.storage.syncing.flush import FlushTicket
from ottla.storage.syncing.group_commit import NOTHING, GroupCommit, Outcome
from ottla.storage.syncing.syncs import Waiter
from ottla.world.clock import Clock
from ottla.world.disk import File
from ottla.world.scheduler import Scheduler
from ottla.world.workers import MakeSyncs, SyncResult

RUNNING_MAX: Final = 4
PAUSE_NS: Final = 10_000_000
TOGETHER_MIN: Final = 4


class LogSync:
    """The sync of one log, or of many logs of one directory. A `SyncJob`."""

    __slots__ = ("is_together", "logs", "only_file", "tickets")

    def __init__(self, starts: Sequence[tuple[Log, FlushTicket]], is_together: bool) -> None:
        """`is_together` has one sync of the file system serve all of them."""
        self.logs = [log for log, _ in starts]
        self.tickets = [ticket for _, ticket in starts]
        self.is_together = is_together
        first = self.tickets[0]
        self.only_file: File | None = first.files[0] if len(starts) == 1 and first.is_of_one_file else None

    def run(self) -> None:
        """Sync, blocking."""
        volume = self.logs[0].volume
        if self.is_together:
            flush.run_together(self.tickets, volume.disk, volume.path)
        else:
            for ticket in self.tickets:
                flush.run(ticket, volume.disk)

    def __repr__(self) -> str:
        return f"<sync of {', '.join([log.path for log in self.logs])}>"


class Flusher:
    """Runs the syncs of one node. Implements `Syncs`. All methods are called on its loop."""

    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        make_syncs: MakeSyncs,
        running_max: int = RUNNING_MAX,
        together_min: int = TOGETHER_MIN,
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._together_min = together_min
        self._commit: GroupCommit[Waiter] = GroupCommit(running_max, together_min)
        self._when_idle: list[Callable[[], None]] = []
        self._is_gathering = False
        self._begun_ns = 0
        self.sync_times = Durations()
        self._syncs = make_syncs(self._take_results)

    def request(self, log: Log, offset: Offset | None = None, waiter: Waiter | None = None) -> None:
        """Have a log synced. `waiter` is called once everything below `offset` is safe, or never will be."""
        outcome = self._commit.request(log, offset, waiter)
        if outcome is not NOTHING:
            self._apply(outcome)
        elif not self._is_gathering:
            self._gather()

    def forget(self, log: Log) -> list[Waiter]:
        """Let go of a log that was truncated, deleted or moved. Returns who waited for it."""
        return self._commit.forget(log)

    def drain(self, done: Callable[[], None]) -> None:
        """Call `done` when no sync is under way or asked for."""
        if self._commit.is_idle:
            done()
        else:
            self._when_idle.append(done)

    def close(self) -> None:
        """Stop, after what has begun."""
        self._syncs.close()

    def _gather(self) -> None:
        """Have what is wanted begun soon."""
        if self._commit.may_start:
            self._is_gathering = True
            self._scheduler.when_idle(self._begin, self._begun_ns + PAUSE_NS)

    def _begin(self) -> None:
        self._is_gathering = False
        self._begun_ns = self._clock.monotonic_ns()
        self._apply(self._commit.start())

    def _apply(self, outcome: Outcome[Waiter]) -> None:
        for job in self._deal(outcome.starts):
            self._syncs.begin(job)
        for waiter in outcome.done:
            self._tell(waiter, None)
        for waiter, error in outcome.failed:
            self._tell(waiter, error)
        if not self._is_gathering:
            self._gather()
        if self._when_idle and self._commit.is_idle:
            waiting, self._when_idle = self._when_idle, []
            for done in waiting:
                done()

    def _tell(self, waiter: Waiter, error: LogDirectoryOffline | None) -> None:
        try:
            waiter(error)
        except Exception as caught:
            # A bug of ours. The others wait for this sync as well.
            self._scheduler.report(f"{waiter} failed", caught)

    def _deal(self, starts: list[tuple[Log, FlushTicket]]) -> list[LogSync]:
        """Put those together that one sync of their file system can do."""
        if len(starts) < self._together_min:
            return [LogSync((start,), False) for start in starts]
        by_directory: dict[str, list[tuple[Log, FlushTicket]]] = {}
        for start in starts:
            by_directory.setdefault(start[0].volume.path, []).append(start)
        return [LogSync(together, len(together) >= self._together_min) for together in by_directory.values()]

    def _take_results(self, results: Sequence[SyncResult]) -> None:
        succeeded: list[Log] = []
        for job, error, took_ns in results:
            assert isinstance(job, LogSync), "there are no others"
            self.sync_times.add(took_ns)
            if error is None:
                succeeded += job.logs
            else:
                for log in job.logs:
                    self._apply(self._commit.failed(log, error))
        if succeeded:
            self._apply(self._commit.finished(*succeeded))
