"""Moving logs between the log directories of this node, while they are written and read.

A log is copied, batch by batch, to a `-future` log in the other directory. When that has caught up and is
synced, it takes over in one step on the event loop, and the old one is deleted. Readers and writers notice
nothing: requests that wait for a sync of the old log wait for one of the new log.

The copy has to stay a prefix of the original, which a follower may cut: what was copied beyond the cut goes
at once, and what a worker was reading then is not used. After a restart the leader epochs tell, as between a
follower and its leader. Not all of a log is in its batches: leader epochs in which nothing was written,
producers whose batches were deleted, and settings are handed over in the end.

The controller learns first where the log will lie, and the copy takes over when the answer is there, as in
Kafka. The other way round, a node that died in between could start with the old log alone, if the disk of
the old directory has failed at the end of the move and is back: the metadata would still name it, and it
lacks what was acknowledged since.

Copying keeps to `replica.alter.log.dirs.io.max.bytes.per.second`. A move that a restart interrupts goes on
afterwards, from where the future log ends.
"""

import logging
from typing import Final

from ottla.broker.logs.divergence import find_common_end
from ottla.broker.logs.logs_node import LogsNode
from ottla.broker.logs.partition import Partition
from ottla.model.ids import Offset
from ottla.storage.errors import DamagedRecords, LogDirectoryOffline, StorageError
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.names import DirectoryState
from ottla.storage.read import ReadLimit, ReadResult
from ottla.storage.syncing import committed
from ottla.world.scheduler import Scheduler, Timer

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
        # Whether the new place was announced to the controller, and whether it has answered.
        self.is_announced = False
        self.is_known = False
        self.timer: Timer | None = None
        # Counts the steps. What was begun in an earlier one is of no interest any more.
        self.turn = 0


class LogMoves:
    """The moves under way."""

    def __init__(self, broker: LogsNode, scheduler: Scheduler) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._moves: dict[Partition, Move] = {}
        self._is_stopped = False

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
        """Go on with the moves that the last stop interrupted.

        A log may have two copies: the directory of one was offline when the other one was begun. A copy that
        has lost records since does not take over.
        """
        for directory in self._broker.directories.online:
            for key, future in list(directory.future_logs.items()):
                partition = self._broker.partitions.find(*key)
                if partition is None:
                    continue
                if partition in self._moves:
                    self._drop(directory, future)
                elif future.bridged or any(one.was_synced for one in future.damages):
                    self._begin_afresh(partition, directory, future)
                else:
                    move = Move(partition, directory, future)
                    self._start(move)
                    self._cut_where_it_departs(move)

    def _begin_afresh(self, partition: Partition, directory: LogDirectory, future: Log) -> None:
        """Copy a log again whose copy has lost records: the start has put empty batches in their place."""
        _logger.warning("%s is damaged: copying %s again", future.path, partition.log.path)
        self._drop(directory, future)
        try:
            self.begin(partition, directory)
        except LogDirectoryOffline as error:
            _logger.critical("cannot move %s: %s", partition.log.path, error)

    def was_cut(self, log: Log) -> None:
        """Take note that a log has lost its end: what may come there is not what was copied."""
        for move in list(self._moves.values()):
            if move.partition.log is log:
                self._broker.flusher.forget(move.future)
                self._later(move, 0)
                self._cut_where_it_departs(move)

    def cancel(self, partition: Partition) -> None:
        """End a move, also one that the last stop has left, and drop what was copied."""
        move = self._moves.pop(partition, None)
        if move is not None:
            if move.timer is not None:
                move.timer.cancel()
            self._broker.directory_reports.withdraw(partition)
        for directory in self._broker.directories.directories:
            future = directory.future_logs.get(partition.log.topic_partition)
            if future is not None:
                self._drop(directory, future)

    def _drop(self, directory: LogDirectory, future: Log) -> None:
        self._broker.flusher.forget(future)
        try:
            deletion = directory.set_aside(future, DirectoryState.DELETE, self._broker.new_id())
        except LogDirectoryOffline:
            return
        self._broker.deletions.add(deletion)

    def stop(self) -> None:
        """Let all moves rest: the next start goes on with them.

        What a worker is reading comes too late. Logs that are closed must not be appended to.
        """
        self._is_stopped = True
        for move in self._moves.values():
            if move.timer is not None:
                move.timer.cancel()

    def _start(self, move: Move) -> None:
        _logger.info("moving %s to %s", move.partition.log.path, move.target.path)
        self._moves[move.partition] = move
        # Until the end it is not compacted: what was copied before would be dirty.
        move.partition.log.end_cleaning()
        self._later(move, 0)

    def _later(self, move: Move, delay_ms: int) -> None:
        if self._is_stopped:
            return
        if move.timer is not None:
            move.timer.cancel()
        move.turn += 1
        move.timer = self._scheduler.call_later(delay_ms, self._step, move)

    def _is_at(self, move: Move, turn: int) -> bool:
        return not self._is_stopped and self._moves.get(move.partition) is move and move.turn == turn

    def _step(self, move: Move) -> None:
        if self._moves.get(move.partition) is not move:
            return
        try:
            # It may have failed while the move waited, and nothing of it be used below.
            move.target.volume.check()
            source = self._find_source(move)
            if source is not None:
                self._copy(move, source)
            elif not move.is_synced:
                turn = move.turn
                self._broker.flusher.request(
                    move.future, move.future.log_end_offset, lambda error: self._synced(move, turn, error)
                )
            elif not move.is_known:
                self._announce(move)
            else:
                self._switch(move)
        except DamagedRecords:
            # It is being checked or healed.
            self._later(move, PAUSE_MS)
        except StorageError as error:
            self._fail(move, error)

    def _announce(self, move: Move) -> None:
        """Have the controller expect the log where it will lie. The move goes on with its answer."""
        if move.is_announced:
            return

        def known() -> None:
            if self._moves.get(move.partition) is move:
                move.is_known = True
                # What was appended since is copied first.
                self._later(move, 0)

        move.is_announced = True
        self._broker.directory_reports.announce(move.partition, move.target, known)

    def _find_source(self, move: Move) -> ReadResult | None:
        """Say what is to be copied next; None: the future log has caught up."""
        source, future = move.partition.log, move.future
        future.config = source.config
        if future.log_end_offset < source.log_start_offset:
            # Nothing of it is wanted any more.
            self._begin_again(move)
        if future.log_end_offset == source.log_end_offset:
            return None
        return source.read(future.log_end_offset, CHUNK_BYTES, ReadLimit.LOG_END)

    def _cut_where_it_departs(self, move: Move) -> None:
        """Make the copy a prefix of the original again."""
        source, future = move.partition.log, move.future
        move.is_synced = False
        try:
            while True:
                if future.log_end_offset > future.log_start_offset and future.leader_epochs.latest < 0:
                    # Batches from before leader epochs. Nothing tells whether they are the same.
                    self._begin_again(move)
                epoch = min(future.leader_epochs.latest, source.leader_epochs.latest)
                known = source.end_offset_for_epoch(epoch)
                end = Offset(0)
                if known.epoch >= 0:
                    end = find_common_end(future, known.epoch, known.start_offset)
                end = min(end, source.log_end_offset)
                if end == future.log_end_offset:
                    return
                if end <= max(future.log_start_offset, source.log_start_offset):
                    self._begin_again(move)
                    return
                _logger.info("%s was cut: cutting its copy at %d", source.topic_partition, end)
                now_ms = self._broker.clock.now_ms()
                self._broker.deletions.add_all(move.target.truncate([(future, end)], now_ms))
        except StorageError as error:
            self._fail(move, error)

    def _begin_again(self, move: Move) -> None:
        source, now_ms = move.partition.log, self._broker.clock.now_ms()
        self._broker.deletions.add_all(
            move.target.truncate_fully_and_start_at(move.future, source.log_start_offset, now_ms)
        )

    def _copy(self, move: Move, source: ReadResult) -> None:
        """Copy some batches. They are read by a worker, since they may be cold."""
        read: list[bytes] = []
        turn = move.turn

        def done(error: Exception | None) -> None:
            if not self._is_at(move, turn):
                # The original was cut meanwhile: it may have been read before that.
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

    def _synced(self, move: Move, turn: int, error: LogDirectoryOffline | None) -> None:
        if not self._is_at(move, turn):
            return
        if error is not None:
            self.cancel(move.partition)
            return
        # Appends may have come meanwhile: they are few, and copied and synced by those who wait for them.
        move.is_synced = True
        self._later(move, 0)

    def _lie_where_it_failed(self, move: Move, error: LogDirectoryOffline) -> None:
        """Let a replica be offline whose new directory fails while the copy takes over: it is expected there.

        Nobody knows whether the copy has its name for good. If the old log took more, and the controller did
        not hear of it, the copy could be all that the next start finds where the metadata expects the log.
        """
        partition, old = move.partition, move.partition.log
        _logger.critical("%s was about to lie in %s, which has failed: %s", old.path, move.target.path, error)
        partition.log = move.future
        old.when_damaged = None
        committed.wait_no_more(old, error)
        self._broker.directory_reports.arrived(partition)
        self._broker.changed(partition)

    def _switch(self, move: Move) -> None:
        """Let the future log take over. Nothing can be appended in between: this is one call on the loop."""
        broker, partition, old, new = self._broker, move.partition, move.partition.log, move.future
        new.update_high_watermark(old.high_watermark)
        if old.log_start_offset > new.log_start_offset:
            new.increment_log_start_offset(Offset(old.log_start_offset))
        for entry in old.leader_epochs.entries:
            new.assign_leader_epoch(entry.epoch, entry.start_offset)
        new.producer_state, new.verifications = old.producer_state, old.verifications
        del self._moves[partition]
        try:
            deletion = broker.directories.replace_by_future(old.topic_partition, broker.new_id())
        except LogDirectoryOffline as error:
            self._lie_where_it_failed(move, error)
            return
        partition.log = new
        partition.configure(old.config, partition.in_sync_replicas_min)
        new.when_damaged, old.when_damaged = old.when_damaged, None
        if deletion is not None:
            broker.deletions.add(deletion)
        # Not before all that can fail is done: otherwise nobody would tell those who wait.
        committed.wait_on_in(old, new)
        broker.changed(partition)
        _logger.info("moved %s to %s", old.topic_partition, move.target.path)
        broker.directory_reports.arrived(partition)
