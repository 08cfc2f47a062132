"""Who syncs: the tickets of the group commit are run beside the event loop, which never waits.

A sync takes about a millisecond on a good disk. Several are under way at once, because those of different
files overlap: the file system commits them together. Most are of one file, and the kernel does them by itself
(`kernel_syncs.py`). Where it does not, and for tickets with more in them, there are threads. When many logs
wait, one thread syncs the whole file system for them. `docs/decisions/group-commit.md` has the figures.

Syncs begin when the loop has nothing else to do, so that all who have come together share them. A loop that
is never idle begins them every few milliseconds.
"""

import logging
import os
from asyncio import Event
from collections import deque
from queue import SimpleQueue
from threading import Thread
from time import monotonic, perf_counter_ns
from typing import Final

from ottla.model.ids import Offset
from ottla.runtime.disk import RealFile, disk_error
from ottla.runtime.durations import Durations
from ottla.runtime.kernel_syncs import KernelSyncs
from ottla.runtime.poller import ServingLoop
from ottla.storage import flush
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.flush import FlushTicket
from ottla.storage.group_commit import NOTHING, GroupCommit, Outcome
from ottla.storage.log import Log
from ottla.storage.syncs import Waiter
from ottla.world.disk import DiskError, Reason

THREADS: Final = 4
PAUSE_SECONDS: Final = 0.01
TOGETHER_MIN: Final = 4

_logger: Final = logging.getLogger("ottla.flusher")

_Start = tuple[Log, FlushTicket]
_Starts = list[_Start]


class Flusher:
    """Runs syncs for one event loop. Implements `Syncs`. All methods are called in the loop's thread."""

    def __init__(self, loop: ServingLoop, threads: int = THREADS, together_min: int = TOGETHER_MIN) -> None:
        self._loop = loop
        self._together_min = together_min
        self._commit: GroupCommit[Waiter] = GroupCommit(threads, together_min)
        # One log each, or many of one directory.
        self._tickets: SimpleQueue[_Starts | None] = SimpleQueue()
        # Filled by the threads, emptied by the loop. It is woken once for all that has come together.
        self._results: deque[tuple[_Starts, DiskError | None, int]] = deque()
        self._idle = Event()
        self._idle.set()
        self._is_gathering = False
        self._begun_at = 0.0
        self._threads_max = threads
        self.sync_times = Durations()
        self._threads: list[Thread] = []
        self._kernel: KernelSyncs | None = None
        try:
            self._kernel = KernelSyncs(loop, self._take_kernel_results)
        except OSError as error:
            _logger.info("files are synced by threads: %s", error)

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

    async def drain(self) -> None:
        """Wait until no sync is under way or asked for."""
        await self._idle.wait()

    def close(self) -> None:
        """Stop, after what has begun."""
        if self._kernel is not None:
            self._kernel.close()
        for _ in self._threads:
            self._tickets.put(None)
        for thread in self._threads:
            thread.join()

    def _gather(self) -> None:
        """Have what is wanted begun soon."""
        if self._commit.may_start:
            self._is_gathering = True
            self._loop.poller.gather(self._begin, self._begun_at + PAUSE_SECONDS)
        self._idle.clear()

    def _begin(self) -> None:
        self._is_gathering = False
        self._begun_at = monotonic()
        self._apply(self._commit.start())

    def _apply(self, outcome: Outcome[Waiter]) -> None:
        for starts in self._deal(outcome.starts):
            if len(starts) > 1 or not self._begin_in_kernel(starts[0]):
                self._begin_in_thread(starts)
        for waiter in outcome.done:
            self._tell(waiter, None)
        for waiter, error in outcome.failed:
            self._tell(waiter, error)
        if not self._is_gathering:
            self._gather()
        if self._commit.is_idle:
            self._idle.set()

    def _tell(self, waiter: Waiter, error: LogDirectoryOffline | None) -> None:
        try:
            waiter(error)
        except Exception as caught:
            # A bug of ours, told as the loop tells of one. The others wait for this sync as well.
            self._loop.call_exception_handler({"message": f"{waiter} failed", "exception": caught})

    def _deal(self, starts: _Starts) -> list[_Starts]:
        """Put those together that one sync of their file system can do."""
        if len(starts) < self._together_min:
            return [[start] for start in starts]
        by_directory: dict[str, _Starts] = {}
        for start in starts:
            by_directory.setdefault(start[0].volume.path, []).append(start)
        return list(by_directory.values())

    def _begin_in_kernel(self, start: _Start) -> bool:
        """Have the kernel do a sync that is of one file and nothing else. Says whether it does."""
        ticket = start[1]
        if self._kernel is None or not ticket.is_of_one_file:
            return False
        file = ticket.files[0]
        if not isinstance(file, RealFile):
            return False
        try:
            has_begun = self._kernel.begin(file.begin_sync(), (start, perf_counter_ns()))
        except DiskError:
            # A thread will find the same, and tell it.
            return False
        if not has_begun:
            file.end_sync()
        return has_begun

    def _take_kernel_results(self, ended: list[tuple[tuple[_Start, int], int]]) -> None:
        succeeded = []
        now_ns = perf_counter_ns()
        for ((log, ticket), begun_ns), error_number in ended:
            self.sync_times.add(now_ns - begun_ns)
            file = ticket.files[0]
            assert isinstance(file, RealFile), "the kernel gets no others"
            file.end_sync()
            if error_number:
                error = OSError(error_number, os.strerror(error_number))
                self._apply(self._commit.failed(log, disk_error(error, file.path, "sync")))
            else:
                succeeded.append(log)
        if succeeded:
            self._apply(self._commit.finished(*succeeded))

    def _begin_in_thread(self, starts: _Starts) -> None:
        if len(self._threads) < self._threads_max:
            self._start_thread()
        if self._threads:
            self._tickets.put(starts)
        else:
            # It holds up everybody, but whoever waits for the sync gets it.
            self._run_one(starts)

    def _start_thread(self) -> None:
        thread = Thread(target=self._run, name=f"flusher-{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            _logger.warning("no thread to sync in: %s; there are %d", error, len(self._threads))
        else:
            self._threads.append(thread)

    def _take_results(self) -> None:
        while self._results:
            starts, error, took_ns = self._results.popleft()
            self.sync_times.add(took_ns)
            if error is None:
                self._apply(self._commit.finished(*[log for log, _ in starts]))
            else:
                for log, _ in starts:
                    self._apply(self._commit.failed(log, error))

    def _run(self) -> None:
        """Sync until told to stop. Runs in a thread of its own."""
        while (starts := self._tickets.get()) is not None:
            self._run_one(starts)

    def _run_one(self, starts: _Starts) -> None:
        error: DiskError | None = None
        begun_ns = perf_counter_ns()
        try:
            self._sync(starts)
        except DiskError as caught:
            error = caught
        except Exception as caught:  # a bug of ours: those who wait must hear of it, not hang
            error = DiskError(starts[0][0].path, "sync", Reason.OTHER, repr(caught))
        self._results.append((starts, error, perf_counter_ns() - begun_ns))
        # One wake-up per result: the loop may have emptied the deque just before this one came.
        self._loop.call_soon_threadsafe(self._take_results)

    def _sync(self, starts: _Starts) -> None:
        volume = starts[0][0].volume
        if len(starts) < self._together_min:
            for _, ticket in starts:
                flush.run(ticket, volume.disk)
        else:
            flush.run_together([ticket for _, ticket in starts], volume.disk, volume.path)
