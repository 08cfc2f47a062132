"""Moving logs between the log directories of this node, while they are written and read.

A log is copied, batch by batch, to a `-future` log in the other directory. When that has caught up and is
synced, it takes over in one step on the event loop, and the old one is deleted. Readers and writers notice
nothing: requests that wait for a sync of the old log wait for one of the new log.

Copying keeps to `replica.alter.log.dirs.io.max.bytes.per.second`. A move that a restart interrupts goes on
afterwards, from where the future log ends.
"""

import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.logs.partition import Partition
from ottla.model.ids import Offset
from ottla.storage.errors import DamagedRecords, LogDirectoryOffline, StorageError
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.names import DirectoryState
from ottla.storage.read import ReadLimit, ReadResult
from ottla.storage.syncing import committed
from ottla.world.scheduler import Scheduler, Timer

if TYPE_CHECKING:
    from ottla.broker.node import Broker

CHUNK_BYTES: Final = 1 << 20
PAUSE_MS: Final = 5
"""Between two chunks, so that the loop serves others in between."""

_logger: Final = logging.getLogger("ottla.moves")


class Move:
    """One log on its way to another directory."""

    def __init__(self, partition: Partition, target: LogDirectory, future: Log) -> None:
        self.partition = partition
        self.target = target
        self.future = future
        self.is_synced = False
        self.timer: Timer | None = None


class LogMoves:
    """The moves under way."""

    def __init__(self, broker: "Broker", scheduler: Scheduler) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._moves: dict[Partition, Move] = {}

    def __len__(self) -> int:
        return len(self._moves)

    def begin(self, partition: Partition, target: LogDirectory) -> None:
        """Have a log moved. Raises `LogDirectoryOffline` if that directory does not work."""
        move = self._moves.get(partition)
        if move is not None:
            if move.target is target:
                return
            self.cancel(partition)
        if self._broker.directories.directory_of(partition.log) is target:
            return
        log = partition.log
        future = target.create_log(
            log.topic_partition,
            partition.topic_id,
            log.config,
            self._broker.clock.now_ms(),
            self._broker.new_id(),
        )
        self._start(Move(partition, target, future))

    def resume(self) -> None:
        """Go on with the moves that the last stop interrupted."""
        for directory in self._broker.directories.online:
            for key, future in list(directory.future_logs.items()):
                partition = self._broker.partitions.find(*key)
                if partition is not None:
                    self._start(Move(partition, directory, future))

    def cancel(self, partition: Partition) -> None:
        """End a move, and drop what was copied."""
        move = self._moves.pop(partition, None)
        if move is None:
            return
        if move.timer is not None:
            move.timer.cancel()
        self._broker.flusher.forget(move.future)
        try:
            deletion = move.target.set_aside(move.future, DirectoryState.DELETE, self._broker.new_id())
        except LogDirectoryOffline:
            return
        self._broker.deletions.add(deletion)

    def stop(self) -> None:
        """Let all moves rest: the next start goes on with them."""
        for move in self._moves.values():
            if move.timer is not None:
                move.timer.cancel()

    def _start(self, move: Move) -> None:
        _logger.info("moving %s to %s", move.partition.log.path, move.target.path)
        self._moves[move.partition] = move
        self._later(move, 0)

    def _later(self, move: Move, delay_ms: int) -> None:
        move.timer = self._scheduler.call_later(delay_ms, self._step, move)

    def _step(self, move: Move) -> None:
        if self._moves.get(move.partition) is not move:
            return
        try:
            source = self._find_source(move)
            if source is not None:
                self._copy(move, source)
            elif not move.is_synced:
                self._broker.flusher.request(
                    move.future, move.future.log_end_offset, lambda error: self._synced(move, error)
                )
            else:
                self._switch(move)
        except DamagedRecords:
            # It is being checked or healed.
            self._later(move, PAUSE_MS)
        except StorageError as error:
            self._fail(move, error)

    def _find_source(self, move: Move) -> ReadResult | None:
        """Say what is to be copied next; None: the future log has caught up."""
        source, future = move.partition.log, move.future
        if not source.log_start_offset <= future.log_end_offset <= source.log_end_offset:
            # Nothing of it is wanted any more, or it has what the source never had.
            now_ms = self._broker.clock.now_ms()
            self._broker.deletions.add_all(
                future.truncate_fully_and_start_at(source.log_start_offset, now_ms)
            )
        if future.log_end_offset == source.log_end_offset:
            return None
        return source.read(future.log_end_offset, CHUNK_BYTES, ReadLimit.LOG_END)

    def _copy(self, move: Move, source: ReadResult) -> None:
        """Copy some batches. They are read by a worker, since they may be cold."""
        read: list[bytes] = []

        def done(error: Exception | None) -> None:
            if self._moves.get(move.partition) is not move:
                return
            if error is not None:
                self._fail(move, error)
                return
            content = memoryview(bytearray(read[0]))
            try:
                move.future.append_as_follower(content, now_ms=self._broker.clock.now_ms())
            except StorageError as refused:
                self._fail(move, refused)
                return
            move.is_synced = False
            rate = self._broker.config.replica_alter_log_dirs_io_max_bytes_per_second
            self._later(move, max(PAUSE_MS, len(content) * 1000 // rate))

        self._broker.workers.run(lambda: read.append(source.read()), done)

    def _fail(self, move: Move, error: Exception) -> None:
        _logger.critical("cannot move %s: %s", move.partition.log.path, error)
        self.cancel(move.partition)

    def _synced(self, move: Move, error: LogDirectoryOffline | None) -> None:
        if error is not None:
            self.cancel(move.partition)
            return
        # Appends may have come meanwhile: they are few, and copied and synced by those who wait for them.
        move.is_synced = True
        self._later(move, 0)

    def _switch(self, move: Move) -> None:
        """Let the future log take over. Nothing can be appended in between: this is one call on the loop."""
        broker, partition, old, new = self._broker, move.partition, move.partition.log, move.future
        del self._moves[partition]
        new.update_high_watermark(old.high_watermark)
        if old.log_start_offset > new.log_start_offset:
            new.increment_log_start_offset(Offset(old.log_start_offset))
        deletion = broker.directories.replace_by_future(old.topic_partition, broker.new_id())
        partition.log = new
        new.when_damaged, old.when_damaged = old.when_damaged, None
        if deletion is not None:
            broker.deletions.add(deletion)
        # Not before all that can fail is done: otherwise nobody would tell those who wait.
        committed.wait_on_in(old, new)
        broker.changed(partition)
        _logger.info("moved %s to %s", old.topic_partition, move.target.path)
        broker.directory_changed(partition)
