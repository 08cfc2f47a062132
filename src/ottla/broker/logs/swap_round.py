"""Work on one log by a worker beside the event loop, that may put new segments in the place of old ones.

The worker reads and writes beside the log. For the two steps of a swap that touch the log it comes back to
the loop and waits.

A log's round is ended first (`end`), on the loop, before the log is truncated or moved: what is staged would
survive a crash and bring back what was cut off, or lie in the directory of a new topic that has the same
name. `end` waits for the worker, which is at most a chunk and two syncs away from its end, and waits for
nothing then.
"""

from collections.abc import Callable, Sequence

from ottla.model.ids import Offset
from ottla.storage.compaction.cleaned_segment import CleanedSegment
from ottla.storage.compaction.swap import (
    Replacement,
    discard_staged,
    finish_swap,
    replace_segments,
    stage_swap,
)
from ottla.storage.deletion import Deletion
from ottla.storage.log import Log
from ottla.world.disk import DiskError
from ottla.world.workers import LongWork, OnLoop, Steps, Workers


class SwapRound:
    """One piece of work on one log. `work` gives its steps."""

    def __init__(self, workers: Workers, remove_later: Callable[[Deletion], None], log: Log) -> None:
        self.log = log
        self._workers = workers
        self._remove_later = remove_later
        self._directory = log.path
        self._truncations = log.truncations
        self._work: LongWork | None = None
        # Segments that the log uses under their `.swap` names.
        self._replacement: Replacement | None = None
        self.has_swapped = False
        self.error: Exception | None = None

    # On the loop

    def start(self, ended: Callable[[], None]) -> None:
        """Begin. `ended` is called on the loop when the worker is done: then `settle` is due."""
        self.log.cleaning = self
        self._work = self._workers.run_steps(self._run(), ended)

    def ask_to_end(self) -> None:
        """Let the round end at its next step."""
        assert self._work is not None, "the round was started"
        self._work.ask_to_end()

    def end(self) -> None:
        """End the round now. What is not in the log yet is undone."""
        assert self._work is not None, "the round was started"
        self._work.end()
        self.settle()

    def settle(self) -> None:
        """Let go of the log, once the worker is done. A swap that was half done is finished.

        Raises `LogDirectoryOffline` if that cannot be.
        """
        if self.log.cleaning is self:
            self.log.cleaning = None
        if self._replacement is None:
            return
        if isinstance(self.error, DiskError):
            # The log reads files by names that nobody could make safe.
            raise self.log.volume.fail(self.error)
        self._finish_swap()

    # By the worker

    def work(self) -> Steps:
        """Give the steps of the work."""
        raise NotImplementedError

    def _run(self) -> Steps:
        try:
            yield from self.work()
        except Exception as error:  # whatever it is, a bug of ours too: the loop must learn that this is over
            self.error = error

    def swap(self, cleaned: Sequence[CleanedSegment], replaced: Sequence[Offset]) -> Steps:
        """Put new segments in the place of others, unless the log has changed: then the round is over."""
        disk, directory = self.log.volume.disk, self._directory
        self.has_swapped = False
        stage_swap(disk, directory, cleaned)
        try:
            yield OnLoop(lambda: self._begin_swap(cleaned, replaced))
        except GeneratorExit:
            discard_staged(disk, directory, cleaned)
            raise
        if self._replacement is None:
            discard_staged(disk, directory, cleaned)
            return
        disk.sync_directory(directory)
        yield OnLoop(self._finish_swap)
        self.has_swapped = True

    # The steps of a swap on the loop

    def _begin_swap(self, cleaned: Sequence[CleanedSegment], replaced: Sequence[Offset]) -> None:
        self._replacement = replace_segments(self.log, cleaned, replaced, self._truncations)

    def _finish_swap(self) -> None:
        assert self._replacement is not None, "a swap is under way"
        replacement, self._replacement = self._replacement, None
        finish_swap(self.log, replacement)
        self._remove_later(replacement.deletion)
