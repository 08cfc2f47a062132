"""What a node does by itself, now and then, while it serves.

    retention                 every `log.retention.check.interval.ms`
    high watermarks           every `replica.high.watermark.checkpoint.interval.ms`
    recovery points, cleaners every `log.flush.offset.checkpoint.interval.ms`
    log starts                every `log.flush.start.offset.checkpoint.interval.ms`
    producers' expiration     every `producer.id.expiration.check.interval.ms`
    syncs that `flush.ms` asks for, timeouts, failed or full directories, the journal: every second
    retention, where a directory is nearly full: every ten seconds
    expired delegation tokens every `delegation.token.expiry.check.interval.ms`, if tokens are used
    files with certificates   every ten seconds, if listeners are encrypted
    what was recovered        once, right after a start that no clean stop preceded
    what a start can do without (handlers, coordinators) is imported once, a second after it

A round over all partitions is cut into slices, so that a node with many of them goes on serving in between.
What blocks is done by workers.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Final

from ottla.broker.logs.cleaner import Cleaner
from ottla.broker.logs.partition import Partition
from ottla.broker.node import Broker
from ottla.broker.serving.handlers import find_handler
from ottla.broker.serving.served_apis import SERVED
from ottla.quorum.controller.deciders import import_deciders
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.runtime.slices import Slices
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.log_dirs.directory_checkpoints import CheckpointKind
from ottla.world.scheduler import Scheduler, Timer

_logger: Final = logging.getLogger("ottla.housekeeping")

_SECOND_MS: Final = 1000
_CERTIFICATES_MS: Final = 10_000
_RETENTION_SECONDS: Final = 10
"""How often old segments are looked for while a directory is nearly full: somebody waits for the room."""

_NEEDED_LATER: Final = (
    "ottla.broker.lanes.commit_lane",
    "ottla.broker.coordinators.groups",
    "ottla.broker.coordinators.transactions",
    "ottla.broker.logs.cleaning_round",
    "ottla.broker.lanes.produce_lane",
    "ottla.broker.replication.fetcher",
    "ottla.storage.damages.checking",
    "ottla.storage.damages.repair",
    "ottla.storage.damages.splicing",
)
"""Modules that are imported where they are needed, so that a start does not wait for them."""


class Housekeeping:
    """The timers of a node."""

    def __init__(self, broker: Broker, scheduler: Scheduler) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._timers: dict[str, Timer] = {}
        self._slices = Slices(scheduler, broker.clock)
        self._unsynced_since_ms: dict[Partition, int] = {}
        self._failed: set[str] = set()
        self._cordoned: frozenset[str] = frozenset()
        self._short: set[str] = set()
        self._retention_in = 0
        self.cleaner = Cleaner(broker, scheduler)

    def start(self) -> None:
        """Begin. The first round of what goes through the logs comes after a while, as in Kafka."""
        config = self._broker.config
        self._cordoned = self._broker.directories.cordoned
        self._look_at_room()
        delay_ms = config.log_initial_task_delay_ms
        self._every(lambda: _SECOND_MS, "second", self._each_second, _SECOND_MS)
        self._every(
            lambda: self._broker.config.log_retention_check_interval_ms,
            "retention",
            self._delete_old,
            delay_ms,
        )
        self._checkpoint_every(
            CheckpointKind.HIGH_WATERMARK, config.replica_high_watermark_checkpoint_interval_ms
        )
        self._checkpoint_every(CheckpointKind.RECOVERY_POINT, config.log_flush_offset_checkpoint_interval_ms)
        self._checkpoint_every(CheckpointKind.LOG_START, config.log_flush_start_offset_checkpoint_interval_ms)
        # Rounds of compaction write it as well. Here it loses logs that are gone.
        self._checkpoint_every(CheckpointKind.CLEANER, config.log_flush_offset_checkpoint_interval_ms)
        self._every(
            lambda: self._broker.config.producer_id_expiration_check_interval_ms,
            "producers",
            self._expire_producers,
        )
        if config.delegation_token_secret_key is not None:
            interval_ms = config.delegation_token_expiry_check_interval_ms
            self._every(lambda: interval_ms, "tokens", self._remove_expired_tokens)
        tls = self._broker.tls
        if tls is not None:
            self._every(lambda: _CERTIFICATES_MS, "certificates", lambda: tls.reload(self._broker.configs))
        self._later("recovered", 0, self._save_recovered)
        self._later("imports", _SECOND_MS, self._import_rest)
        self.cleaner.start()
        self._broker.scrubber.start()

    def stop(self) -> None:
        """End. What workers have begun is not waited for here."""
        self.cleaner.stop()
        self._broker.scrubber.stop()
        self._broker.healing.stop()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._slices.stop()

    # Timers

    def _every(
        self,
        interval_ms: Callable[[], int],
        name: str,
        work: Callable[[], None],
        first_ms: int | None = None,
    ) -> None:
        def run() -> None:
            # The interval is asked for again each time: it may have been changed while running.
            self._later(name, interval_ms(), run)
            work()

        self._later(name, interval_ms() if first_ms is None else first_ms, run)

    def _later(self, name: str, delay_ms: int, work: Callable[[], None]) -> None:
        self._timers[name] = self._scheduler.call_later(delay_ms, work)

    # Rounds

    def _each_second(self) -> None:
        self._broker.delayed_produces.sweep()
        self._flush_by_time()
        for directory in self._broker.directories.directories:
            directory.check_is_there()
        self._look_at_directories()
        self._look_at_room()
        if self._broker.journal.is_on:
            self._broker.journal_writer.each_second()

    def _look_at_room(self) -> None:
        """See which directories are nearly full: they take no records of producers."""
        reserve_bytes = self._broker.config.ottla_disk_reserve_bytes
        online = self._broker.directories.online
        for directory in online:
            volume = directory.volume
            volume.reserve_bytes = reserve_bytes
            volume.look_at_room()
            if volume.is_short is (directory.path in self._short):
                continue
            if volume.is_short:
                self._short.add(directory.path)
                _logger.error(
                    "%s is nearly full: records of producers are refused; delete topics or lower their "
                    "retention, and add space",
                    directory.path,
                )
            else:
                self._short.discard(directory.path)
                _logger.warning("%s has room again: records of producers are taken", directory.path)
        self._retention_in -= 1
        if self._retention_in <= 0 and any(directory.volume.is_short for directory in online):
            self._retention_in = _RETENTION_SECONDS
            self._delete_old()

    def _remove_expired_tokens(self) -> None:
        """Remove delegation tokens whose time is over, if the controller is here."""
        controller = self._broker.quorum.controller
        if controller is None:
            return
        # Imported only here: few clusters have tokens.
        from ottla.quorum.controller.security.delegation_tokens import expired_tokens

        records = expired_tokens(controller.image, self._broker.clock.now_ms())
        if records:
            controller.append(records[:RECORDS_MAX])

    def _look_at_directories(self) -> None:
        """Report to the controller directories that have failed, or that new logs are to stay away from."""
        broker = self._broker
        failed = {directory.path for directory in broker.directories.directories if directory.is_offline}
        cordoned = broker.directories.cordoned
        if failed == self._failed and cordoned == self._cordoned:
            return
        self._cordoned = cordoned
        for directory in broker.directories.directories:
            if directory.path in failed - self._failed:
                _logger.critical("%s", directory.volume.offline_error())
        self._failed = failed
        if broker.directories.directories[0].is_offline:
            # It holds the metadata, and without metadata there is no way on.
            broker.quorum.failed(broker.directories.directories[0].volume.offline_error())
            return
        broker.membership.report()

    def _flush_by_time(self) -> None:
        """Sync logs whose topic sets `flush.ms`, when their oldest unsynced record is that old."""
        now_ms = self._broker.clock.monotonic_ms()
        for partition in self._broker.partitions.flushed_by_time:
            log = partition.log
            if log.recovery_point >= log.log_end_offset:
                self._unsynced_since_ms.pop(partition, None)
            elif now_ms - self._unsynced_since_ms.setdefault(partition, now_ms) >= log.config.flush_ms:
                del self._unsynced_since_ms[partition]
                self._broker.flusher.request(log)

    def _delete_old(self) -> None:
        self._slices.run("retention", self._delete_old_steps())

    def _delete_old_steps(self) -> Iterator[None]:
        for partition in self._broker.partitions:
            try:
                directory = self._broker.directories.directory_of(partition.log)
                deletions = directory.delete_old_segments(partition.log, self._broker.clock.now_ms())
            except LogDirectoryOffline:
                continue
            if deletions:
                _logger.info(
                    "%s-%d: deleting %d segments; the log now starts at offset %d",
                    partition.topic,
                    partition.index,
                    len(deletions),
                    partition.log.log_start_offset,
                )
                self._broker.deletions.add_all(deletions)
                self._broker.changed(partition)
            yield

    def _expire_producers(self) -> None:
        def steps() -> Iterator[None]:
            for partition in self._broker.partitions:
                partition.log.expire_producers(self._broker.clock.now_ms())
                yield

        self._slices.run("producers", steps())

    def _import_rest(self) -> None:
        """Import what nobody has needed so far: handlers, deciders, and the rest that a start does not need.

        A node that starts does not wait for them. But one that runs must not depend on files that somebody
        may replace: it would refuse requests, or serve them with the code of two releases.
        """

        def steps() -> Iterator[None]:
            for key in sorted(SERVED):
                for listener in sorted(SERVED[key].listeners, key=attrgetter("name")):
                    find_handler(key, listener)
                    yield
            yield from import_deciders()
            for module in _NEEDED_LATER:
                import_module(module)
                yield

        self._slices.run("imports", steps())

    # Checkpoints

    def _checkpoint_every(self, kind: CheckpointKind, interval_ms: int) -> None:
        self._every(lambda: interval_ms, kind.value, lambda: self._checkpoint_all(kind))

    def _checkpoint_all(self, kind: CheckpointKind) -> None:
        for directory in self._broker.directories.online:
            self._checkpoint(directory, kind)

    def _checkpoint(self, directory: LogDirectory, kind: CheckpointKind) -> None:
        try:
            write = directory.start_checkpoint(kind)
        except LogDirectoryOffline:
            return
        if write is not None:
            self._broker.write_checkpoint(directory, write)

    def _save_recovered(self) -> None:
        """Sync what a start has recovered, and write down that it is safe.

        Otherwise a crash in the first minute would have all of it recovered again, and each crash after it
        more than the one before.
        """
        for directory in self._broker.directories.online:
            if not directory.was_clean:
                self._slices.run(f"recovered {directory.path}", self._save_recovered_steps(directory))

    def _save_recovered_steps(self, directory: LogDirectory) -> Iterator[None]:
        # In the order of the directory, so that a simulation begins them in the same order each time.
        unsafe = dict.fromkeys(
            log for log in directory.logs.values() if log.recovery_point < log.log_end_offset
        )

        def synced(log: Log, _error: LogDirectoryOffline | None) -> None:
            unsafe.pop(log, None)
            if not unsafe:
                self._checkpoint(directory, CheckpointKind.RECOVERY_POINT)

        for log in list(unsafe):
            if directory.logs.get(log.topic_partition) is not log:
                # It was deleted or moved meanwhile, and somebody else may be about to remove its files.
                synced(log, None)
                continue
            try:
                self._broker.flusher.request(log, log.log_end_offset, partial(synced, log))
            except LogDirectoryOffline:
                return
            yield
