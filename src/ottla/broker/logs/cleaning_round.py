"""One cleaning of one log, by a worker beside the event loop.

The worker reads and writes beside the log. For the two steps of a swap that touch the log it comes back to
the loop and waits. A segment whose offsets do not fit its index is split first; then the round is over, and
the next one cleans.

A log's round is ended first (`end`), on the loop, before the log is truncated or moved: what is staged would
survive a crash and bring back what was cut off, or lie in the directory of a new topic that has the same
name. `end` waits for the worker, which is at most a chunk and two syncs away from its end, and waits for
nothing then.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import NamedTuple

from ottla.model.ids import Offset
from ottla.storage.compaction.cleaned_segment import CleanedSegment
from ottla.storage.compaction.cleaning import Cleaned, CleanedGroup, CleaningTask, Progress, clean
from ottla.storage.compaction.plan import is_overtaken
from ottla.storage.compaction.split import find_overflowing, split_segment
from ottla.storage.compaction.swap import (
    Replacement,
    discard_staged,
    finish_swap,
    replace_segments,
    stage_swap,
)
from ottla.storage.deletion import Deletion
from ottla.storage.errors import OffsetOverflow
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.world.disk import DiskError
from ottla.world.workers import LongWork, OnLoop, Pause, Steps, Workers


class Means(NamedTuple):
    """What a round works with."""

    workers: Workers
    memory_bytes: int
    # Says for how many milliseconds to wait after so many bytes were moved.
    delay_after: Callable[[int], int]
    remove_later: Callable[[Deletion], None]


class CleaningRound:
    """One cleaning of one log."""

    def __init__(self, means: Means, directory: LogDirectory, log: Log, task: CleaningTask) -> None:
        self._means = means
        self.directory = directory
        self.log = log
        self._task = task
        self._work: LongWork | None = None
        # Segments that the log uses under their `.swap` names.
        self._replacement: Replacement | None = None
        self._has_swapped = False
        self.has_split = False
        self.result: Cleaned | None = None
        self.error: Exception | None = None

    @property
    def is_overtaken(self) -> bool:
        """Say whether the log was truncated, or let go of segments, since the round began."""
        return is_overtaken(self._task, self.log)

    # On the loop

    def start(self, ended: Callable[[], None]) -> None:
        """Begin. `ended` is called on the loop when the worker is done: then `settle` is due."""
        self.log.cleaning = self
        self._work = self._means.workers.run_steps(self._run(), ended)

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

    def _run(self) -> Steps:
        try:
            yield from self._clean_or_split()
        except Exception as error:  # whatever it is, a bug of ours too: the loop must learn that this is over
            self.error = error

    def _clean_or_split(self) -> Steps:
        try:
            yield from self._clean()
        except OffsetOverflow as overflow:
            yield from self._split(overflow)

    def _clean(self) -> Steps:
        steps = clean(self._task, self.log.volume.disk, self._means.memory_bytes)
        with closing(steps):
            for step in steps:
                if isinstance(step, Cleaned):
                    self.result = step
                elif isinstance(step, CleanedGroup):
                    yield from self._swap((step.cleaned,), step.replaced)
                    if not self._has_swapped:
                        return
                else:
                    yield self._pause_after(step)

    def _pause_after(self, moved: Progress) -> Pause:
        """Wait as long as the rate asks for."""
        return Pause(self._means.delay_after(moved.read_bytes + moved.written_bytes))

    def _split(self, overflow: OffsetOverflow) -> Steps:
        task, disk = self._task, self.log.volume.disk
        segment = find_overflowing(task.segments, Offset(overflow.offset))
        if segment is None:
            raise overflow
        ends = [one.base_offset for one in task.segments if one.base_offset > segment.base_offset]
        end = min(ends, default=task.end_offset)
        aborted = [one for one in task.aborted if segment.base_offset <= one.last_offset < end]
        steps = split_segment(segment, aborted, disk, task.directory, task.config.index_interval_bytes)
        with closing(steps):
            for step in steps:
                if isinstance(step, Progress):
                    yield self._pause_after(step)
                else:
                    yield from self._swap(step, (segment.base_offset,))
                    self.has_split = self._has_swapped
        segment.file.close()

    def _swap(self, cleaned: Sequence[CleanedSegment], replaced: Sequence[Offset]) -> Steps:
        """Put new segments in the place of others, unless the log has changed: then the round is over."""
        disk, directory = self.log.volume.disk, self._task.directory
        self._has_swapped = False
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
        self._has_swapped = True

    # The steps of a swap on the loop

    def _begin_swap(self, cleaned: Sequence[CleanedSegment], replaced: Sequence[Offset]) -> None:
        self._replacement = replace_segments(self.log, cleaned, replaced, self._task.truncations)

    def _finish_swap(self) -> None:
        assert self._replacement is not None, "a swap is under way"
        replacement, self._replacement = self._replacement, None
        finish_swap(self.log, replacement)
        self._means.remove_later(replacement.deletion)
