"""The threads that sync: they run the tickets of the group commit, so that the event loop never waits.

A sync takes about a millisecond on a good disk. Several threads, because syncs of different files overlap:
the file system commits them together.
"""

from asyncio import AbstractEventLoop, Event
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Final

from ottla.model.ids import Offset
from ottla.storage import flush
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.flush import FlushTicket
from ottla.storage.group_commit import GroupCommit, Outcome
from ottla.storage.log import Log
from ottla.world.disk import DiskError, Reason

THREADS: Final = 4

# Called with None when what was waited for is safe, or with why it will never be.
Waiter = Callable[[LogDirectoryOffline | None], None]


class Flusher:
    """Runs syncs for one event loop. All methods are called in the loop's thread."""

    def __init__(self, loop: AbstractEventLoop, threads: int = THREADS) -> None:
        self._loop = loop
        self._commit: GroupCommit[Waiter] = GroupCommit(threads)
        self._tickets: SimpleQueue[tuple[Log, FlushTicket] | None] = SimpleQueue()
        # Filled by the threads, emptied by the loop. It is woken once for all that has come together.
        self._results: deque[tuple[Log, DiskError | None]] = deque()
        self._idle = Event()
        self._idle.set()
        self._threads = [
            Thread(target=self._run, name=f"flusher-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def request(self, log: Log, offset: Offset | None = None, waiter: Waiter | None = None) -> None:
        """Have a log synced. `waiter` is called once everything below `offset` is safe, or never will be."""
        self._apply(self._commit.request(log, offset, waiter))

    def forget(self, log: Log) -> list[Waiter]:
        """Let go of a log that was truncated, deleted or moved. Returns who waited for it."""
        return self._commit.forget(log)

    async def drain(self) -> None:
        """Wait until no sync is under way or asked for."""
        await self._idle.wait()

    def close(self) -> None:
        """Stop the threads, after what they have begun."""
        for _ in self._threads:
            self._tickets.put(None)
        for thread in self._threads:
            thread.join()

    def _apply(self, outcome: Outcome[Waiter]) -> None:
        for start in outcome.starts:
            self._tickets.put(start)
        if self._commit.is_idle:
            self._idle.set()
        else:
            self._idle.clear()
        for waiter in outcome.done:
            waiter(None)
        for waiter, error in outcome.failed:
            waiter(error)

    def _take_results(self) -> None:
        while self._results:
            log, error = self._results.popleft()
            if error is None:
                self._apply(self._commit.finished(log))
            else:
                self._apply(self._commit.failed(log, error))

    def _run(self) -> None:
        """Sync until told to stop. Runs in a thread of its own."""
        while (start := self._tickets.get()) is not None:
            log, ticket = start
            error: DiskError | None = None
            try:
                flush.run(ticket, log.volume.disk)
            except DiskError as caught:
                error = caught
            except Exception as caught:  # a bug of ours: those who wait must hear of it, not hang
                error = DiskError(log.path, "sync", Reason.OTHER, repr(caught))
            self._results.append((log, error))
            # One wake-up per result: the loop may have emptied the deque just before this one came.
            self._loop.call_soon_threadsafe(self._take_results)
