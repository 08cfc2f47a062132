"""One cleaning of one log, by a worker beside the event loop (`swap_round`).

A segment whose offsets do not fit its index is split first. Then the round is over, and the next one cleans.
"""

from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

from ottla.broker.logs.swap_round import SwapRound
from ottla.model.ids import Offset
from ottla.storage.compaction.cleaning import Cleaned, CleanedGroup, CleaningTask, Progress, clean
from ottla.storage.compaction.plan import is_overtaken
from ottla.storage.compaction.split import find_overflowing, split_segment
from ottla.storage.deletion import Deletion
from ottla.storage.errors import OffsetOverflow
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.world.workers import Pause, Steps, Workers


class Means(NamedTuple):
    """What a round works with."""

    workers: Workers
    memory_bytes: int
    # Says for how many milliseconds to wait after this many bytes were moved.
    delay_after: Callable[[int], int]
    remove_later: Callable[[Deletion], None]


class CleaningRound(SwapRound):
    """One cleaning of one log."""

    def __init__(self, means: Means, directory: LogDirectory, log: Log, task: CleaningTask) -> None:
        super().__init__(means.workers, means.remove_later, log)
        self._means = means
        self.directory = directory
        self._task = task
        self.has_split = False
        self.result: Cleaned | None = None

    @property
    def is_overtaken(self) -> bool:
        """Say whether the log was truncated, or let go of segments, since the round began."""
        return is_overtaken(self._task, self.log)

    # By the worker

    def work(self) -> Steps:
        """Clean the log, or split a segment of it."""
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
                    yield from self.swap((step.cleaned,), step.replaced)
                    if not self.has_swapped:
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
                    yield from self.swap(step, (segment.base_offset,))
                    self.has_split = self.has_swapped
        segment.file.close()
