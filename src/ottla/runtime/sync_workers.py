"""Those who sync in a process: the kernel by itself, and threads.

Most syncs are of one file, and the kernel does them by itself (`kernel_syncs.py`). Where it does not, and for
jobs with more in them, there are threads.
"""

import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from time import monotonic_ns
from typing import Final

from ottla.runtime.disk import RealFile
from ottla.runtime.disk_errors import disk_error
from ottla.runtime.kernel_syncs import KernelSyncs
from ottla.runtime.poller import ServingLoop
from ottla.world.disk import DiskError, Reason
from ottla.world.workers import SyncJob, SyncResult

THREADS: Final = 8

_logger: Final = logging.getLogger("ottla.flusher")


class SyncWorkers:
    """Syncs for one event loop. All methods are called in the loop's thread."""

    def __init__(
        self,
        loop: ServingLoop,
        deliver: Callable[[Sequence[SyncResult]], None],
        threads: int = THREADS,
    ) -> None:
        self._loop = loop
        self._deliver = deliver
        self._jobs: SimpleQueue[SyncJob | None] = SimpleQueue()
        # Filled by the threads, emptied by the loop. It is woken once for all that has come together.
        self._results: deque[SyncResult] = deque()
        self._threads_max = threads
        self._threads: list[Thread] = []
        self._kernel: KernelSyncs | None = None
        try:
            self._kernel = KernelSyncs(loop, self._take_kernel_results)
        except OSError as error:
            _logger.info("using threads to sync files: %s", error)

    def begin(self, job: SyncJob) -> None:
        """Begin a sync."""
        if not self._begin_in_kernel(job):
            self._begin_in_thread(job)

    def close(self) -> None:
        """Stop, after what has begun."""
        if self._kernel is not None:
            self._kernel.close()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _begin_in_kernel(self, job: SyncJob) -> bool:
        """Have the kernel do a sync that is of one file and nothing else. Says whether it does."""
        file = job.only_file
        if self._kernel is None or not isinstance(file, RealFile):
            return False
        try:
            has_begun = self._kernel.begin(file.begin_sync(), (job, file, monotonic_ns()))
        except DiskError:
            # A thread will find the same, and tell it.
            return False
        if not has_begun:
            file.end_sync()
        return has_begun

    def _take_kernel_results(self, ended: list[tuple[tuple[SyncJob, RealFile, int], int]]) -> None:
        results: list[SyncResult] = []
        now_ns = monotonic_ns()
        for (job, file, begun_ns), number in ended:
            file.end_sync()
            error = disk_error(OSError(number, os.strerror(number)), file.path, "sync") if number else None
            results.append(SyncResult(job, error, now_ns - begun_ns))
        self._deliver(results)

    def _begin_in_thread(self, job: SyncJob) -> None:
        if len(self._threads) < self._threads_max:
            self._start_thread()
        if self._threads:
            self._jobs.put(job)
        else:
            # It holds up everybody, but those who wait for the sync get it.
            self._run_one(job)

    def _start_thread(self) -> None:
        thread = Thread(target=self._run, name=f"flusher-{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            _logger.warning("cannot start another sync thread: %s; %d are running", error, len(self._threads))
        else:
            self._threads.append(thread)

    def _take_results(self) -> None:
        if self._results:
            results = list(self._results)
            for _ in results:
                self._results.popleft()
            self._deliver(results)

    def _run(self) -> None:
        """Sync until told to stop. Runs in a thread of its own."""
        while (job := self._jobs.get()) is not None:
            self._run_one(job)

    def _run_one(self, job: SyncJob) -> None:
        error: DiskError | None = None
        begun_ns = monotonic_ns()
        try:
            job.run()
        except DiskError as caught:
            error = caught
        except Exception as caught:  # a bug of ours: callers that wait must learn of it, not hang
            error = DiskError(repr(job), "sync", Reason.OTHER, repr(caught))
        self._results.append(SyncResult(job, error, monotonic_ns() - begun_ns))
        # One wake-up per result: the loop may have emptied the deque just before this one came.
        self._loop.call_soon_threadsafe(self._take_results)
