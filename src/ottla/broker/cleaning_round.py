"""One cleaning of one log, in a thread beside the event loop.

The thread reads and writes beside the log. For the two steps of a swap that touch the log it comes back to
the loop and waits. A segment whose offsets do not fit its index is split first; then the round is over, and
the next one cleans.

Whoever truncates or moves a log ends its round first (`end`), on the loop: what is staged would survive a
crash and bring back what was cut off, or lie in the directory of a new topic that has the same name. `end`
waits for the thread, which is at most a chunk and two syncs away from its end, and the thread waits for
nobody then.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import closing
from threading import Event, Thread
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
from ottla.storage.directory import LogDirectory
from ottla.storage.errors import OffsetOverflow
from ottla.storage.log import Log
from ottla.world.disk import DiskError


class Means(NamedTuple):
    """What a round works with."""

    # Has something called on the event loop, from any thread.
    call_on_loop: Callable[[Callable[[], None]], object]
    memory_bytes: int
    # Says for how many seconds to wait after so many bytes were moved.
    delay_after: Callable[[int], float]
    remove_later: Callable[[Deletion], None]


class CleaningRound:
    """One cleaning of one log."""

    def __init__(self, means: Means, directory: LogDirectory, log: Log, task: CleaningTask) -> None:
        self._means = means
        self.directory = directory
        self.log = log
        self._task = task
        self._ending = Event()
        self._thread: Thread | None = None
        # What the thread waits for the loop to do.
        self._wanted: Future[None] | None = None
        # Segments that the log uses under their `.swap` names.
        self._replacement: Replacement | None = None
        self.has_split = False
        self.result: Cleaned | None = None
        self.error: Exception | None = None

    @property
    def is_overtaken(self) -> bool:
        """Say whether the log was truncated, or let go of segments, since the round began."""
        return is_overtaken(self._task, self.log)

    # On the loop

    def start(self, ended: Callable[[], None]) -> None:
        """Begin. `ended` is called on the loop when the thread is done: then `settle` is due."""
        self.log.cleaning = self

        def run() -> None:
            self._run()
            self._means.call_on_loop(ended)

        self._thread = Thread(target=run, name=f"cleaner {self.log.topic_partition}", daemon=True)
        self._thread.start()

    def ask_to_end(self) -> None:
        """Let the round end at its next step."""
        self._ending.set()

    def end(self) -> None:
        """End the round now. What is not in the log yet is undone."""
        assert self._thread is not None, "the round was started"
        self._ending.set()
        # The thread first says what it wants and then looks whether it is to end; here it is the other way
        # round. So one of the two notices the other.
        wanted = self._wanted
        if wanted is not None:
            wanted.cancel()
        self._thread.join()
        self.settle()

    def settle(self) -> None:
        """Let go of the log, once the thread is done. A swap that was half done is finished.

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

    # In the thread

    def _run(self) -> None:
        try:
            self._clean_or_split()
        except CancelledError:
            pass
        except Exception as error:  # whatever it is, a bug of ours too: the loop must learn that this is over
            self.error = error

    def _clean_or_split(self) -> None:
        try:
            self._clean()
        except OffsetOverflow as overflow:
            self._split(overflow)

    def _clean(self) -> None:
        steps = clean(self._task, self.log.volume.disk, self._means.memory_bytes)
        with closing(steps):
            for step in steps:
                if isinstance(step, Cleaned):
                    self.result = step
                elif isinstance(step, CleanedGroup):
                    if not self._swap((step.cleaned,), step.replaced):
                        return
                elif not self._goes_on(step):
                    return

    def _goes_on(self, moved: Progress) -> bool:
        """Wait as long as the rate asks for. False: the round is to end."""
        return not self._ending.wait(self._means.delay_after(moved.read_bytes + moved.written_bytes))

    def _split(self, overflow: OffsetOverflow) -> None:
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
                if not isinstance(step, Progress):
                    self.has_split = self._swap(step, (segment.base_offset,))
                elif not self._goes_on(step):
                    return
        segment.file.close()

    def _swap(self, cleaned: Sequence[CleanedSegment], replaced: Sequence[Offset]) -> bool:
        """Put new segments in the place of others. False: the log has changed, and the round is over."""
        disk, directory = self.log.volume.disk, self._task.directory
        stage_swap(disk, directory, cleaned)
        try:
            self._on_loop(lambda: self._begin_swap(cleaned, replaced))
        except CancelledError:
            discard_staged(disk, directory, cleaned)
            raise
        if self._replacement is None:
            discard_staged(disk, directory, cleaned)
            return False
        disk.sync_directory(directory)
        self._on_loop(self._finish_swap)
        return True

    def _on_loop(self, work: Callable[[], None]) -> None:
        """Have something done on the event loop, and wait for it. Raises `CancelledError` at the end."""
        done: Future[None] = Future()

        def run() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                work()
            except Exception as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        self._wanted = done
        if self._ending.is_set():
            done.cancel()
        self._means.call_on_loop(run)
        try:
            done.result()
        finally:
            self._wanted = None

    # The steps of a swap on the loop

    def _begin_swap(self, cleaned: Sequence[CleanedSegment], replaced: Sequence[Offset]) -> None:
        self._replacement = replace_segments(self.log, cleaned, replaced, self._task.truncations)

    def _finish_swap(self) -> None:
        assert self._replacement is not None, "a swap is under way"
        replacement, self._replacement = self._replacement, None
        finish_swap(self.log, replacement)
        self._means.remove_later(replacement.deletion)
