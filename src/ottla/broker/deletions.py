"""Files and directories that are removed some time after they left the log.

A fetch may still be sending from them, so they live on for `file.delete.delay.ms` under another name.
Removing a large file can take long on some file systems, so a thread does it. What is still there when the
node stops is found and removed by the next start.
"""

import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from typing import Final

from ottla.storage.deletion import Deletion
from ottla.storage.directory import DirectoryDeletion
from ottla.world.disk import Disk, DiskError

_logger: Final = logging.getLogger("ottla.deletions")

RunInThread = Callable[[Callable[[], None], Callable[[Exception | None], None]], None]


class Deletions:
    """What waits to be removed."""

    def __init__(self, loop: AbstractEventLoop, disk: Disk, run_in_thread: RunInThread) -> None:
        self._loop = loop
        self._disk = disk
        self._run_in_thread = run_in_thread
        self.waiting = 0

    def add(self, deletion: Deletion | DirectoryDeletion) -> None:
        """Remove something when its delay is over."""
        self.waiting += 1
        self._loop.call_later(deletion.delay_ms / 1000, self._start, deletion)

    def add_all(self, deletions: Iterable[Deletion | DirectoryDeletion]) -> None:
        """Remove several things, each when its delay is over."""
        for deletion in deletions:
            self.add(deletion)

    def _start(self, deletion: Deletion | DirectoryDeletion) -> None:
        if isinstance(deletion, Deletion):
            # Handles belong to the loop's thread.
            for handle in deletion.handles:
                handle.close()
        self._run_in_thread(lambda: deletion.run(self._disk), self._done)

    def _done(self, error: Exception | None) -> None:
        self.waiting -= 1
        if isinstance(error, DiskError):
            _logger.warning("%s; the next start will try again", error)
        elif error is not None:
            raise error
