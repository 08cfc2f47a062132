"""The driver of compaction: chooses logs on the event loop, cleans them in threads of its own.

A thread reads and writes beside the log, as fast as its rate allows, and comes back to the loop for the
swap, which is the one step that touches the log. `log.cleaner.threads` of them share
`log.cleaner.dedupe.buffer.size` of memory for keys, and `log.cleaner.io.max.bytes.per.second`.

A log that cannot be cleaned, because a batch of it cannot be read, is left alone until the next start, as in
Kafka.
"""

import asyncio
import logging
import sys
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.model.ids import TopicPartition
from ottla.records.errors import RecordsError
from ottla.storage.compaction.candidates import Candidate, choose_dirtiest, find_candidate
from ottla.storage.compaction.cleaning import Cleaned, CleanedGroup, CleaningTask, Progress, clean
from ottla.storage.compaction.plan import is_overtaken, plan_cleaning
from ottla.storage.compaction.swap import (
    Replacement,
    discard_staged,
    finish_swap,
    replace_segments,
    stage_swap,
)
from ottla.storage.directory import LogDirectory
from ottla.storage.directory_checkpoints import CheckpointKind
from ottla.storage.errors import LogDirectoryOffline, StorageError
from ottla.storage.log import Log
from ottla.world.disk import DiskError

if TYPE_CHECKING:
    from ottla.broker.node import Broker

T = TypeVar("T")

_logger: Final = logging.getLogger("ottla.cleaner")

SWITCH_SECONDS: Final = 0.0005
"""How long a cleaner may keep the interpreter to itself. Python's default of 5 ms would delay requests."""


class Round:
    """One cleaning of one log, in a thread. The loop's side of it is in `Cleaner`."""

    def __init__(self, cleaner: "Cleaner", directory: LogDirectory, log: Log, task: CleaningTask) -> None:
        self._cleaner = cleaner
        self._directory = directory
        self._log = log
        self._task = task
        self.result: Cleaned | None = None
        self.error: Exception | None = None

    @property
    def log(self) -> Log:
        """The log that is being cleaned."""
        return self._log

    @property
    def directory(self) -> LogDirectory:
        """The directory it lies in."""
        return self._directory

    @property
    def is_overtaken(self) -> bool:
        """Say whether the log was truncated, or let go of segments, since the round began."""
        return is_overtaken(self._task, self._log)

    def run(self) -> None:
        """Clean the log. Runs in a thread."""
        cleaner = self._cleaner
        try:
            steps = clean(self._task, self._log.volume.disk, cleaner.memory_bytes)
            for step in steps:
                if cleaner.is_stopping:
                    steps.close()
                    break
                if isinstance(step, Progress):
                    cleaner.throttle(step.read_bytes + step.written_bytes)
                elif isinstance(step, CleanedGroup):
                    if not self._swap(step):
                        break
                else:
                    self.result = step
        except (DiskError, StorageError, RecordsError) as error:
            self.error = error

    def _swap(self, group: CleanedGroup) -> bool:
        """Put a cleaned segment in the place of others. False: the log has changed, and cleaning is over."""
        disk, directory, cleaned = self._log.volume.disk, self._task.directory, (group.cleaned,)
        stage_swap(disk, directory, cleaned)
        replacement = self._cleaner.on_loop(
            lambda: replace_segments(self._log, cleaned, group.replaced, group.truncations)
        )
        if replacement is None:
            discard_staged(disk, directory, cleaned)
            return False
        disk.sync_directory(directory)
        self._cleaner.on_loop(lambda: self._finish(replacement))
        return True

    def _finish(self, replacement: Replacement) -> None:
        finish_swap(self._log, replacement)
        self._cleaner.broker.deletions.add(replacement.deletion)


class Cleaner:
    """Cleans compacted logs while the node serves."""

    def __init__(self, broker: "Broker", loop: AbstractEventLoop) -> None:
        self.broker = broker
        self._loop = loop
        self._timer: TimerHandle | None = None
        self._running: dict[Log, Round] = {}
        self._uncleanable: set[TopicPartition] = set()
        self._stop = Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._switch_seconds = sys.getswitchinterval()
        # When the bytes that were read and written so far may have been, at the allowed rate.
        self._free_at = 0.0
        self.cleaned_rounds = 0

    @property
    def is_stopping(self) -> bool:
        """Say whether cleaning is to end at the next step."""
        return self._stop.is_set()

    @property
    def memory_bytes(self) -> int:
        """How much memory one thread has for keys."""
        config = self.broker.config
        return config.log_cleaner_dedupe_buffer_size // max(config.log_cleaner_threads, 1)

    def start(self) -> None:
        """Look for something to clean from now on."""
        self._look_later(self.broker.config.log_cleaner_backoff_ms)

    def stop(self) -> None:
        """Begin nothing new, and end what is under way."""
        self._stop.set()
        if self._timer is not None:
            self._timer.cancel()

    async def drain(self) -> None:
        """Wait until no thread is cleaning."""
        await self._idle.wait()

    # On the loop

    def _look_later(self, delay_ms: int) -> None:
        if not self.is_stopping:
            self._timer = self._loop.call_later(delay_ms / 1000, self._look)

    def _look(self) -> None:
        """Begin to clean the dirtiest log, if one is worth it and a thread is free."""
        config = self.broker.config
        if len(self._running) >= config.log_cleaner_threads:
            return
        candidate = choose_dirtiest(self._candidates())
        if candidate is None:
            self._look_later(config.log_cleaner_backoff_ms)
            return
        directory = self.broker.directories.directory_of(candidate.log)
        # A recovery that started below what is cleaned now would miss markers that go, and take their
        # transactions for open. So the recovery point goes to the disk first.
        try:
            directory.checkpoint_now(CheckpointKind.RECOVERY_POINT)
        except LogDirectoryOffline:
            self._look_later(config.log_cleaner_backoff_ms)
            return
        task = plan_cleaning(candidate, self.broker.clock.now_ms())
        self._begin(Round(self, directory, candidate.log, task))
        self._look_later(0)

    def _candidates(self) -> Iterable[Candidate]:
        now_ms = self.broker.clock.now_ms()
        for directory in self.broker.directories.online:
            for key, log in directory.logs.items():
                if log.config.is_compacted and key not in self._uncleanable and log not in self._running:
                    candidate = find_candidate(log, directory.cleaner_offsets.get(key), now_ms)
                    if candidate.checkpoint_is_stale:
                        directory.cleaner_offsets.pop(key, None)
                    yield candidate

    def _begin(self, round_: Round) -> None:
        if not self._running:
            sys.setswitchinterval(SWITCH_SECONDS)
        self._running[round_.log] = round_
        self._idle.clear()

        def run() -> None:
            round_.run()
            self._loop.call_soon_threadsafe(self._end, round_)

        Thread(target=run, name=f"cleaner {round_.log.topic_partition}", daemon=True).start()

    def _end(self, round_: Round) -> None:
        del self._running[round_.log]
        if round_.error is not None:
            self._note_error(round_, round_.error)
        elif round_.result is not None:
            self._note_cleaned(round_, round_.result)
        if not self._running:
            sys.setswitchinterval(self._switch_seconds)
            self._idle.set()
        self._look_later(0)

    def _note_cleaned(self, round_: Round, result: Cleaned) -> None:
        self.cleaned_rounds += 1
        key, directory = round_.log.topic_partition, round_.directory
        if directory.logs.get(key) is not round_.log:
            return
        _logger.info(
            "compacted %s up to offset %d: %d of %d records stay",
            key,
            result.first_dirty_offset,
            result.kept_records,
            result.read_records,
        )
        directory.cleaner_offsets[key] = result.first_dirty_offset
        try:
            write = directory.start_checkpoint(CheckpointKind.CLEANER)
        except LogDirectoryOffline:
            return
        if write is not None:
            self.broker.write_checkpoint(directory, write)

    def _note_error(self, round_: Round, error: Exception) -> None:
        log = round_.log
        if round_.directory.logs.get(log.topic_partition) is not log:
            # The topic was deleted, or its log moved, under the cleaner's feet.
            return
        if round_.is_overtaken:
            # A file was renamed or cut off that the cleaner was about to read. It will look again.
            return
        if isinstance(error, DiskError):
            _logger.critical("%s", log.volume.fail(error))
        elif not isinstance(error, LogDirectoryOffline):
            self._uncleanable.add(log.topic_partition)
            _logger.error("%s is left uncompacted until the next start: %s", log.topic_partition, error)

    # In a cleaner's thread

    def on_loop(self, work: Callable[[], T]) -> T:
        """Do something on the event loop, and wait for it."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result()

    def throttle(self, size_bytes: int) -> None:
        """Wait so long that all cleaners together stay within their rate."""
        rate = self.broker.config.log_cleaner_io_max_bytes_per_second
        now = monotonic()
        self._free_at = max(self._free_at, now - 1) + size_bytes / rate
        if self._free_at > now:
            self._stop.wait(self._free_at - now)
