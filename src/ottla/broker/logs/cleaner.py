"""The driver of compaction: chooses logs on the event loop, and has rounds clean them beside it.

`log.cleaner.threads` rounds (`cleaning_round`) go on at once. They share
`log.cleaner.dedupe.buffer.size` of memory for keys, and `log.cleaner.io.max.bytes.per.second`.

A log that cannot be cleaned, because a batch of it cannot be read, is checked, and left alone until something
was healed or until the next start.
"""

import logging
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from ottla.broker.logs.logs_node import LogsNode
from ottla.model.ids import TopicPartition
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory_checkpoints import CheckpointKind
from ottla.world.disk import DiskError
from ottla.world.scheduler import Scheduler, Timer

if TYPE_CHECKING:
    # Imported where they are needed: the first look comes some time after the start.
    from ottla.broker.logs.cleaning_round import CleaningRound, Means
    from ottla.storage.compaction.candidates import Candidate
    from ottla.storage.compaction.cleaning import Cleaned

_logger: Final = logging.getLogger("ottla.cleaner")

SWITCH_SECONDS: Final = 0.0005
"""How long a cleaner may keep the interpreter to itself. Python's default of 5 ms would delay requests."""


_SECOND_US: Final = 1_000_000


def has_room_to_clean(log: Log) -> bool:
    """Say whether a copy of the largest segment fits: it is written before the old ones go."""
    volume = log.volume
    if not volume.is_short:
        return True
    try:
        usable_bytes = volume.disk.usage(volume.path).usable_bytes
    except DiskError:
        return False
    return usable_bytes > 2 * max(segment.size for segment in log.segments)


class Cleaner:
    """Cleans compacted logs while the node serves."""

    def __init__(self, broker: LogsNode, scheduler: Scheduler) -> None:
        self.broker = broker
        self._scheduler = scheduler
        self._timer: Timer | None = None
        self._running: dict[Log, CleaningRound] = {}
        # Logs that could not be cleaned, and how much had been healed by then.
        self._uncleanable: dict[TopicPartition, int] = {}
        self._is_stopping = False
        self._when_idle: list[Callable[[], None]] = []
        self._switch_seconds = sys.getswitchinterval()
        # When the bytes that were read and written so far may have been, at the allowed rate.
        self._free_at_us = 0
        self.cleaned_rounds = 0

    def start(self) -> None:
        """Look for something to clean from now on."""
        self._look_later(self.broker.config.log_cleaner_backoff_ms)

    def stop(self) -> None:
        """Begin nothing new, and end what is under way."""
        self._is_stopping = True
        for round_ in self._running.values():
            round_.ask_to_end()
        if self._timer is not None:
            self._timer.cancel()

    def drain(self, done: Callable[[], None]) -> None:
        """Call `done` when no round is under way."""
        if self._running:
            self._when_idle.append(done)
        else:
            done()

    # On the loop

    def _look_later(self, delay_ms: int) -> None:
        if not self._is_stopping:
            self._timer = self._scheduler.call_later(delay_ms, self._look)

    def _look(self) -> None:
        """Begin to clean the dirtiest log, if one is worth it and a thread is free."""
        config = self.broker.config
        if len(self._running) >= config.log_cleaner_threads:
            return
        from ottla.storage.compaction.candidates import choose_dirtiest
        from ottla.storage.compaction.plan import plan_cleaning

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
        from ottla.broker.logs.cleaning_round import CleaningRound

        self._begin(CleaningRound(self._means(), directory, candidate.log, task))
        self._look_later(0)

    def _candidates(self) -> "Iterable[Candidate]":
        from ottla.storage.compaction.candidates import find_candidate

        now_ms, healed = self.broker.clock.now_ms(), self.broker.healing.healed_ranges
        # What was copied before it is compacted would be compacted never, if the copy took over its offset.
        moving = {key for directory in self.broker.directories.online for key in directory.future_logs}
        for directory in self.broker.directories.online:
            for key, log in directory.logs.items():
                if key in moving:
                    continue
                is_free = log not in self._running and log.cleaning is None and not log.unhealed
                if not has_room_to_clean(log):
                    continue
                if log.config.is_compacted and is_free and self._uncleanable.get(key) != healed:
                    candidate = find_candidate(log, directory.cleaner_offsets.get(key), now_ms)
                    if candidate.checkpoint_is_stale:
                        directory.cleaner_offsets.pop(key, None)
                    yield candidate

    def _means(self) -> "Means":
        from ottla.broker.logs.cleaning_round import Means

        config = self.broker.config
        memory_bytes = config.log_cleaner_dedupe_buffer_size // max(config.log_cleaner_threads, 1)
        return Means(self.broker.workers, memory_bytes, self._delay_after, self.broker.deletions.add)

    def _begin(self, round_: "CleaningRound") -> None:
        if not self._running:
            sys.setswitchinterval(SWITCH_SECONDS)
        self._running[round_.log] = round_
        round_.start(lambda: self._end(round_))

    def _end(self, round_: "CleaningRound") -> None:
        del self._running[round_.log]
        try:
            round_.settle()
        except LogDirectoryOffline as error:
            _logger.critical("%s", error)
        if round_.has_split:
            _logger.warning("split a segment of %s that was too large for an index", round_.log)
        if round_.error is not None:
            self._note_error(round_, round_.error)
        elif round_.result is not None:
            self._note_cleaned(round_, round_.result)
        if not self._running:
            sys.setswitchinterval(self._switch_seconds)
            waiting, self._when_idle = self._when_idle, []
            for done in waiting:
                done()
        self._look_later(0)

    def _note_cleaned(self, round_: "CleaningRound", result: "Cleaned") -> None:
        self.cleaned_rounds += 1
        key, directory = round_.log.topic_partition, round_.directory
        if directory.logs.get(key) is not round_.log:
            return
        _logger.info(
            "compacted %s up to offset %d: kept %d of %d records",
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

    def _note_error(self, round_: "CleaningRound", error: Exception) -> None:
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
            self._uncleanable[log.topic_partition] = self.broker.healing.healed_ranges
            self._have_checked(log)
            _logger.error(
                "cannot compact %s, the next attempt is when it is healed or after a restart: %s",
                log.topic_partition,
                error,
            )

    def _have_checked(self, log: Log) -> None:
        """Have a log checked that a round could not read. If it can be healed, it is cleaned again then."""
        key = log.topic_partition
        partition = self.broker.partitions.find(key.topic, key.partition)
        if partition is not None and partition.log is log:
            self.broker.scrubber.check(partition, None)

    # By the workers of rounds

    def _delay_after(self, size_bytes: int) -> int:
        """Return for how many milliseconds to wait, so that all rounds together stay within their rate."""
        rate = self.broker.config.log_cleaner_io_max_bytes_per_second
        now_us = self.broker.clock.monotonic_ns() // 1000
        self._free_at_us = max(self._free_at_us, now_us - _SECOND_US) + int(size_bytes * _SECOND_US / rate)
        return max(self._free_at_us - now_us, 0) // 1000
