"""Files and directories that are removed some time after they left the log.

A fetch may still be sending from them, so they live on for `file.delete.delay.ms` under another name.
Removing a large file can take long on some file systems, so a worker does it, many at a time: a topic of
10,000 partitions goes in twenty turns of the loop. What is still there when the node stops is found and
removed by the next start.

A file whose name is gone keeps its space as long as it is open. So the handles are closed before the names
are removed, and once more afterwards: a slow reader may have opened a file again in between, or a sync may
have held it.
"""

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from ottla.storage.deletion import Deletion
from ottla.storage.log_dirs.directory import DirectoryDeletion
from ottla.world.clock import Clock
from ottla.world.disk import Disk, DiskError
from ottla.world.scheduler import Scheduler, Timer
from ottla.world.workers import Run

_logger: Final = logging.getLogger("ottla.deletions")

TOGETHER_MAX: Final = 500

_Deletion: TypeAlias = Deletion | DirectoryDeletion


class _Row:
    """What waits for equally long, in the order of time."""

    __slots__ = ("timer", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[tuple[int, _Deletion]] = deque()
        self.timer: Timer | None = None


class Deletions:
    """What waits to be removed."""

    def __init__(self, scheduler: Scheduler, clock: Clock, disk: Disk, run: Run) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._disk = disk
        self._run = run
        # By delay, so that each row is in the order of time. A row that is not empty has a timer or a worker.
        self._rows: dict[int, _Row] = {}
        self._is_stopped = False
        self.waiting = 0

    def add(self, deletion: _Deletion) -> None:
        """Remove something when its delay is over."""
        self.waiting += 1
        row = self._rows.setdefault(deletion.delay_ms, _Row())
        row.waiting.append((self._clock.monotonic_ms() + deletion.delay_ms, deletion))
        if len(row.waiting) == 1:
            self._start_later(row)

    def add_all(self, deletions: Iterable[_Deletion]) -> None:
        """Remove several things, each when its delay is over."""
        for deletion in deletions:
            self.add(deletion)

    def stop(self) -> None:
        """Begin no more: the threads that would do it are about to end. The next start goes on."""
        self._is_stopped = True
        for row in self._rows.values():
            if row.timer is not None:
                row.timer.cancel()

    def _start_later(self, row: _Row) -> None:
        if not self._is_stopped:
            delay_ms = max(row.waiting[0][0] - self._clock.monotonic_ms(), 0)
            row.timer = self._scheduler.call_later(delay_ms, self._start, row)

    def _start(self, row: _Row) -> None:
        """Remove what is due of a row, and come again for the rest."""
        # A timer may come up to a millisecond early by a clock that counts whole ones.
        now_ms = self._clock.monotonic_ms() + 1
        due = [deletion for at_ms, deletion in list(row.waiting)[:TOGETHER_MAX] if at_ms <= now_ms]
        _close_handles(due)

        def done(error: Exception | None) -> None:
            _close_handles(due)
            for _ in due:
                row.waiting.popleft()
            self.waiting -= len(due)
            if row.waiting:
                self._start_later(row)
            if error is not None:
                raise error

        self._run(lambda: self._remove(due), done)

    def _remove(self, due: Sequence[_Deletion]) -> None:
        for deletion in due:
            try:
                deletion.run(self._disk)
            except DiskError as error:
                _logger.warning("%s; the next start will try again", error)


def _close_handles(due: Sequence[_Deletion]) -> None:
    """Close what is about to go, or gone. Handles belong to the loop's thread."""
    for deletion in due:
        for handle in deletion.handles:
            handle.close()
