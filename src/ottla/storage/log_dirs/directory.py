"""One log directory: whose it is, which logs it holds, and what has to be remembered over a restart.

Starting: lock it, read `meta.properties` and take note of the mark of a clean stop. Up to here nothing was
changed, and a start that is refused leaves no trace. `begin` removes the mark *before* any log is loaded (or
a crash while loading would look like a clean stop). Then every partition's directory is loaded. Stopping:
close every log, write the checkpoints, and the mark of a clean stop as the last act.

Kafka refuses to start on a directory with a sub-directory that is no partition's. So does Ottla, and nothing
else is ever made here.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ottla.model.ids import Offset, TopicPartition
from ottla.model.uuid import METADATA_TOPIC_ID, Uuid
from ottla.storage import retention
from ottla.storage.config import LogConfig
from ottla.storage.damages import stopped_files
from ottla.storage.damages.stopped_files import StoppedLog
from ottla.storage.damages.synced_offsets import SyncedOffsets
from ottla.storage.deletion import Deletion, not_found_is_fine
from ottla.storage.errors import UnusableDirectory
from ottla.storage.file_errors import CorruptFile
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.loading.new_log import NewLog, make_logs
from ottla.storage.log import Log
from ottla.storage.log_dirs import clean_shutdown, partition_metadata
from ottla.storage.log_dirs.directory_checkpoints import CheckpointKind, CheckpointWrite, DirectoryCheckpoints
from ottla.storage.log_dirs.epoch_note import EpochNote
from ottla.storage.log_dirs.meta_properties import MetaProperties
from ottla.storage.log_dirs.partition_metadata import read_topic_id
from ottla.storage.names import (
    METADATA_PARTITION,
    REMOTE_INDEX_CACHE_DIRECTORY,
    DirectoryState,
    FileKind,
    directory_name,
    directory_name_with_state,
    find_segment_file,
    parse_directory_name,
)
from ottla.storage.syncing import flush
from ottla.storage.syncing.committed import needs_disk
from ottla.storage.syncing.flush import FlushTicket
from ottla.storage.truncation import find_cut, find_safe_point
from ottla.storage.volume import Volume
from ottla.world.disk import Disk, DiskError, File, Lock, Reason

NO_CLEAN_STOP: Final = -2
"""In place of a broker epoch: the last stop was not clean."""


class DirectoryDeletion(NamedTuple):
    """A partition's directory to be removed after a while. The handles are closed then."""

    path: str
    delay_ms: int
    # Of the segments' files: a file that is open keeps its space after its name is gone.
    handles: tuple[File, ...] = ()

    def run(self, disk: Disk) -> None:
        """Remove it with all that is in it."""
        with not_found_is_fine():
            disk.remove_tree(self.path)


class LoadPlan(NamedTuple):
    """What a start has to do in a directory."""

    loads: list[LoadRequest]
    # Partitions that were deleted before the stop.
    deletions: list[DirectoryDeletion]


_OF_NAMESAKES: Final = (
    CheckpointKind.RECOVERY_POINT,
    CheckpointKind.LOG_START,
    CheckpointKind.HIGH_WATERMARK,
    CheckpointKind.CLEANER,
)
"""Checkpoints name partitions, not topic ids. After a crash, a log would believe what was said of one that
was deleted: it would hide its first records, show some that are not committed, or not compact its first ones
with the others, so that keys come back whose deletion is forgotten."""


class LogDirectory:
    """A log directory that this process has locked. `open_directory` makes one."""

    def __init__(self, volume: Volume, lock: Lock, meta: MetaProperties, clean_stop_epoch: int) -> None:
        """Raises `DiskError` if what the last run noted cannot be read.

        Raises `UnusableDirectory` if there is a directory that is no partition's.
        """
        self.volume = volume
        self.meta = meta
        # The broker epoch at the last clean stop, -1 if it is not known, or NO_CLEAN_STOP.
        self.clean_stop_epoch = clean_stop_epoch
        self.logs: dict[TopicPartition, Log] = {}
        # Being copied here from another directory of this node.
        self.future_logs: dict[TopicPartition, Log] = {}
        self.checkpoints = DirectoryCheckpoints(volume.disk, volume.path)
        # The first dirty offsets are compaction's to know, and kept here with the other checkpoints.
        self.cleaner_offsets: dict[TopicPartition, Offset] = {}
        self._high_watermarks: dict[TopicPartition, Offset] = {}
        self._lock = lock
        # What the last run noted: of a clean stop, or of each sync.
        self._stopped = stopped_files.read(volume.disk, volume.path, clean_stop_epoch)
        self._epoch_note = EpochNote(volume.disk, volume.path)
        self._synced = SyncedOffsets(volume.disk, volume.path)
        self._synced.read(is_clean=self.was_clean)
        self.is_new = self._is_unused()
        """Whether no run has left anything here since the directory was formatted."""
        self._has_begun = False
        # The quorum's log, if it lies here. What it is at a clean stop is noted with the others.
        self.metadata_log: Log | None = None

    def __repr__(self) -> str:
        return f"<LogDirectory {self.path}, {len(self.logs)} logs{', offline' if self.is_offline else ''}>"

    @property
    def path(self) -> str:
        return self.volume.path

    @property
    def was_clean(self) -> bool:
        return self.clean_stop_epoch != NO_CLEAN_STOP

    @property
    def is_offline(self) -> bool:
        return self.volume.error is not None

    # Starting.

    def find_stopped(self, partition: TopicPartition) -> StoppedLog | None:
        """Return what the files of a log were at the last clean stop."""
        return self._stopped.get(directory_name(partition))

    def find_synced(self, partition: TopicPartition) -> Offset:
        """Return how far a log was synced when there was no clean stop, or -1 if that is not known."""
        topic_id = METADATA_TOPIC_ID if partition == METADATA_PARTITION else None
        return self._synced.find(f"{self.path}/{directory_name(partition)}", partition, topic_id)

    def noted_logs(self) -> set[tuple[Uuid, int]]:
        """Return the topic ids and numbers of the partitions of which the last run had records here."""
        noted = {(topic_id, number) for topic_id, number, offset in self._synced.all_noted() if offset > 0}
        for name, log in self._stopped.items():
            if log.topic_id is not None and log.log_end_offset > 0:
                noted.add((log.topic_id, parse_directory_name(name).partition.partition))
        return noted

    def find_kept_epoch(self) -> int:
        """Return the broker epoch of the last run if it was ended from outside and lost nothing that counts.

        -1, if it stopped cleanly, or may have lost something. To be asked when the logs are loaded.
        """
        if self.was_clean or self.is_offline or self.has_lost_records():
            return clean_shutdown.NO_BROKER_EPOCH
        return self._epoch_note.last_epoch

    def has_lost_records(self) -> bool:
        """Say whether a log lacks what it may have acknowledged. To be asked when the logs are loaded."""
        return any(map(self._has_lost, self.logs.values()))

    def _has_lost(self, log: Log) -> bool:
        """Say whether a log may lack anything but a write that the end of the last run has torn."""
        return self._high_watermarks.get(log.topic_partition, Offset(0)) > log.log_end_offset or any(
            damage.was_synced or damage.holds_batches for damage in log.damages
        )

    def note_epoch(self, broker_epoch: int) -> None:
        """Note the broker's epoch for good, if all that is acknowledged here is on disk."""
        if self.is_offline or not all(needs_disk(log.config) for log in self.logs.values()):
            return
        try:
            self._epoch_note.write(broker_epoch)
        except DiskError as error:
            raise self.volume.fail(error) from error

    def has_log(self, partition: TopicPartition) -> bool:
        """Say whether there is a directory of a partition here, loaded or not."""
        return self.volume.disk.exists(f"{self.path}/{directory_name(partition)}")

    def find_topic_id(self, partition: TopicPartition) -> Uuid | None:
        """Return the id of its topic that the directory of a partition tells, or None if it does not.

        Nor does a file that cannot be read. If the disk is to blame, it will show soon enough.
        """
        try:
            return read_topic_id(self.volume.disk, f"{self.path}/{directory_name(partition)}")
        except DiskError:
            return None

    def restore(self, partition: TopicPartition, topic_id: Uuid) -> None:
        """Make the directory of a log that is missing, or let it say of which topic it is.

        A log without files is loaded as one that has lost everything. So the loss is reported, and no offset
        is used twice.
        """
        disk, path = self.volume.disk, f"{self.path}/{directory_name(partition)}"
        try:
            disk.make_directory(path)
            content = partition_metadata.encode_partition_metadata(topic_id)
            disk.write_file_atomically(f"{path}/{partition_metadata.FILE}", content)
            disk.sync_directory(self.path)
        except DiskError as error:
            raise self.volume.fail(error) from error

    def find_data(self) -> str | None:
        """Return a segment of a partition with something in it, or None if all are empty."""
        for name in self._partition_names():
            found = parse_directory_name(name)
            if found.state is DirectoryState.CURRENT and found.partition != METADATA_PARTITION:
                for entry in self.volume.disk.list(f"{self.path}/{name}"):
                    file = find_segment_file(entry.name)
                    if file is not None and file.kind is FileKind.LOG and entry.size:
                        return f"{self.path}/{name}/{entry.name}"
        return None

    def check_is_there(self) -> None:
        """Go offline if the directory was removed, renamed or replaced while it is in use."""
        if not self.is_offline and not self._lock.is_in_place():
            reason = "it was removed or replaced while it was in use"
            self.volume.fail(DiskError(self.path, "find", Reason.NOT_FOUND, reason))

    def begin(self) -> None:
        """Begin to write here: from now on, a stop is clean only if it says so."""
        if self._has_begun:
            return
        self._has_begun = True
        try:
            _remove_clean_stop(self.volume.disk, self.path)
            self._epoch_note.begin()
            self.checkpoints.remove_staged()
            self._synced.begin()
        except DiskError as error:
            raise self.volume.fail(error) from error
        self.volume.synced = self._synced
        self.volume.epoch_note = self._epoch_note

    def plan_load(self, config_of: Callable[[str], LogConfig], now_ms: int) -> LoadPlan:
        """Say what is to be loaded. The metadata log is not: it is the quorum's, and has rules of its own."""
        self.begin()
        try:
            recovery_points = self.checkpoints.read(CheckpointKind.RECOVERY_POINT)
            log_starts = self.checkpoints.read(CheckpointKind.LOG_START)
            self._high_watermarks = self.checkpoints.read(CheckpointKind.HIGH_WATERMARK)
            self.cleaner_offsets = self.checkpoints.read(CheckpointKind.CLEANER)
            names = self._partition_names()
        except DiskError as error:
            raise self.volume.fail(error) from error
        plan = LoadPlan([], [])
        for name in names:
            partition, state, _ = parse_directory_name(name)
            path = f"{self.path}/{name}"
            config = config_of(partition.topic)
            if state is DirectoryState.DELETE:
                plan.deletions.append(DirectoryDeletion(path, config.file_delete_delay_ms))
            elif state is not DirectoryState.STRAY and partition != METADATA_PARTITION:
                plan.loads.append(
                    LoadRequest(
                        path,
                        partition,
                        config,
                        recovery_points.get(partition, Offset(0)),
                        log_starts.get(partition, Offset(0)),
                        self.was_clean,
                        now_ms,
                        self.cleaner_offsets.get(partition, Offset(0)),
                        self._synced.find(path, partition),
                        self._stopped.get(name),
                    )
                )
        return plan

    def _is_unused(self) -> bool:
        """Say whether there is no mark of a clean stop, no note of a sync, no checkpoint and no partition.

        Formatting writes the first records of the metadata, so their directory says nothing.
        """
        has_partitions = any(
            parse_directory_name(name).partition != METADATA_PARTITION for name in self._partition_names()
        )
        recovery_points = self.checkpoints.path_of(CheckpointKind.RECOVERY_POINT)
        return not (
            self.was_clean
            or has_partitions
            or self._synced.has_notes
            or self.volume.disk.exists(recovery_points)
        )

    def _partition_names(self) -> list[str]:
        """Return the names of the partitions' directories. Whatever else is a directory stops the start."""
        names: list[str] = []
        for entry in self.volume.disk.list(self.path):
            if not entry.is_directory or entry.name == REMOTE_INDEX_CACHE_DIRECTORY:
                continue
            try:
                parse_directory_name(entry.name)
            except CorruptFile as error:
                raise UnusableDirectory(
                    self.path,
                    f"{self.path}/{entry.name} is not a partition directory (topic-number), and a log "
                    "directory must contain nothing else: move it elsewhere",
                ) from error
            names.append(entry.name)
        return names

    def add(self, log: Log) -> None:
        """Take a log that was loaded from here, with the high watermark it had."""
        logs = self.logs if parse_state(log.path) is DirectoryState.CURRENT else self.future_logs
        if log.topic_partition in logs:
            raise UnusableDirectory(
                self.path,
                f"{log.topic_partition} has two directories, {logs[log.topic_partition].path} and {log.path}",
            )
        logs[log.topic_partition] = log
        self._disown(log)
        log.update_high_watermark(self._high_watermarks.get(log.topic_partition, Offset(0)))

    # Logs that come and go.

    def create_log(
        self,
        partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        now_ms: int,
        future_id: Uuid | None = None,
    ) -> Log:
        """Make the log of a partition. With a `future_id`, one that will replace another directory's."""
        name = directory_name(partition)
        if future_id is not None:
            name = directory_name_with_state(partition, DirectoryState.FUTURE, future_id)
        new = NewLog(f"{self.path}/{name}", partition, topic_id, config)
        [log] = make_logs(self.volume, [new], now_ms)
        (self.logs if future_id is None else self.future_logs)[partition] = log
        self._disown(log)
        return log

    def _disown(self, log: Log) -> None:
        """See that a new log is not taken for an older one of its name, which got further."""
        try:
            if self.volume.synced is not None:
                self.volume.synced.lower(log, log.log_end_offset)
        except DiskError as error:
            raise self.volume.fail(error) from error
        cleaned_to = self.cleaner_offsets.get(log.topic_partition)
        if cleaned_to is not None:
            self.cleaner_offsets[log.topic_partition] = min(cleaned_to, log.log_end_offset)
        for kind in _OF_NAMESAKES:
            if self.checkpoints.last_written(kind, log.topic_partition) > log.log_end_offset:
                self.checkpoint_now(kind)

    def set_aside(
        self, log: Log, state: DirectoryState, unique_id: Uuid, *, syncs: bool = True
    ) -> DirectoryDeletion:
        """Rename the directory of a log that is to be deleted, or is of no known topic, and let go of it.

        Of the latter kind the returned deletion is not to be run: a human may want the data. Who sets many
        aside syncs this directory once, afterwards.
        """
        self.let_go(log)
        name = directory_name_with_state(log.topic_partition, state, unique_id)
        log.move_to(f"{self.path}/{name}", syncs=syncs)
        for segment in log.segments:
            self.volume.index_cache.forget(segment)
        handles = tuple([segment.file for segment in log.segments])
        return DirectoryDeletion(log.path, log.config.file_delete_delay_ms, handles)

    def let_go(self, log: Log) -> None:
        """Forget a log that `set_aside` will rename. Until then its name is not free."""
        for logs in (self.logs, self.future_logs):
            if logs.get(log.topic_partition) is log:
                del logs[log.topic_partition]
                if logs is self.logs:
                    # A topic that gets the same name has not been compacted, and nothing of it is committed.
                    self.cleaner_offsets.pop(log.topic_partition, None)
                    self._high_watermarks.pop(log.topic_partition, None)

    def promote_future(self, partition: TopicPartition) -> Log:
        """Make the future log of a partition the current one."""
        log = self.future_logs.pop(partition)
        log.move_to(f"{self.path}/{directory_name(partition)}")
        self.logs[partition] = log
        return log

    def truncate(self, offsets: Iterable[tuple[Log, Offset]], now_ms: int) -> list[Deletion]:
        """Truncate logs, after their recovery points were lowered where a crash would look for them."""
        wanted = list(offsets)
        self._lower_recovery_points(
            [(log, find_safe_point(log, find_cut(log, offset))) for log, offset in wanted]
        )
        self._lower_cleaned([(log, find_cut(log, offset)) for log, offset in wanted])
        deletions: list[Deletion] = []
        for log, offset in wanted:
            deletions += log.truncate_to(offset, now_ms)
        return deletions

    def truncate_fully_and_start_at(self, log: Log, offset: Offset, now_ms: int) -> list[Deletion]:
        """Empty a log, after its recovery point was lowered where a crash would look for it."""
        self._lower_recovery_points([(log, Offset(0))])
        self._lower_cleaned([(log, Offset(0))])
        return log.truncate_fully_and_start_at(offset, now_ms)

    def delete_old_segments(self, log: Log, now_ms: int) -> list[Deletion]:
        """Take out the segments that a log's settings do not keep. Returns the files to remove later."""
        return retention.delete_old_segments(log, now_ms, keep_log_start=lambda: self._keep_log_start(log))

    def _keep_log_start(self, log: Log) -> None:
        """Make a log start survive a power cut."""
        if self.volume.synced is not None:
            # First: a start would not believe that a log starts behind what is known to be synced.
            self.volume.synced.cover(log, log.log_start_offset)
        self.checkpoint_now(CheckpointKind.LOG_START)

    def _lower_recovery_points(self, offsets: Iterable[tuple[Log, Offset]]) -> None:
        is_lowered = False
        for log, offset in offsets:
            if log.recovery_point > offset:
                log.recovery_point = offset
                is_lowered = True
        if is_lowered:
            self.checkpoint_now(CheckpointKind.RECOVERY_POINT)

    def _lower_cleaned(self, offsets: Iterable[tuple[Log, Offset]]) -> None:
        """Have it known, also after a crash, that what comes in the place of what is cut off is dirty."""
        is_lowered = False
        for log, offset in offsets:
            key = log.topic_partition
            if self.logs.get(key) is log and self.cleaner_offsets.get(key, Offset(0)) > offset:
                if offset > 0:
                    self.cleaner_offsets[key] = offset
                else:
                    del self.cleaner_offsets[key]
                is_lowered = True
        if is_lowered:
            self.checkpoint_now(CheckpointKind.CLEANER)

    # Checkpoints.

    def offsets_of(self, kind: CheckpointKind) -> dict[TopicPartition, Offset]:
        """Return what a checkpoint has to say now."""
        logs = [*self.logs.values(), *self.future_logs.values()]
        match kind:
            case CheckpointKind.RECOVERY_POINT:
                return {log.topic_partition: log.recovery_point for log in logs}
            case CheckpointKind.LOG_START:
                return {
                    log.topic_partition: log.log_start_offset
                    for log in logs
                    if log.log_start_offset > log.segments[0].base_offset
                }
            case CheckpointKind.HIGH_WATERMARK:
                # Partitions whose log is not loaded keep the one they had.
                return {
                    **self._high_watermarks,
                    **{log.topic_partition: log.high_watermark for log in self.logs.values()},
                }
            case CheckpointKind.CLEANER:
                return dict(self.cleaner_offsets)

    def start_checkpoint(self, kind: CheckpointKind) -> CheckpointWrite | None:
        """Begin to write a checkpoint. See `directory_checkpoints`. None if there is nothing new to say."""
        self.volume.check()
        return self.checkpoints.start(kind, self.offsets_of(kind))

    def finish_checkpoint(self, write: CheckpointWrite) -> None:
        """Put in place what a checkpoint's `run` has written."""
        self.volume.check()
        try:
            self.checkpoints.finish(write)
        except DiskError as error:
            raise self.volume.fail(error) from error

    def checkpoint_now(self, kind: CheckpointKind) -> None:
        """Write a checkpoint and wait until it is safe."""
        self.volume.check()
        try:
            self.checkpoints.write_now(kind, self.offsets_of(kind))
        except DiskError as error:
            raise self.volume.fail(error) from error

    # Stopping.

    def start_close(self) -> list[tuple[Log, FlushTicket]]:
        """Complete the files of all logs, and return what has to be synced. Nothing may be appended after."""
        starts = [(log, log.start_close()) for log in [*self.logs.values(), *self.future_logs.values()]]
        return [(log, ticket) for log, ticket in starts if ticket is not None]

    def finish_close(self, broker_epoch: int = clean_shutdown.NO_BROKER_EPOCH) -> None:
        """Write the checkpoints and the mark of a clean stop, once everything was synced. Unlocks."""
        try:
            self.volume.check()
            for kind in (
                CheckpointKind.RECOVERY_POINT,
                CheckpointKind.LOG_START,
                CheckpointKind.HIGH_WATERMARK,
                CheckpointKind.CLEANER,
            ):
                self.checkpoint_now(kind)
            logs = [*self.logs.values(), *self.future_logs.values()]
            if self.metadata_log is not None:
                logs.append(self.metadata_log)
            states = {log.path.rpartition("/")[2]: stopped_files.state_of(log) for log in logs}
            stopped_files.write(self.volume.disk, self.path, broker_epoch, states)
            if self.volume.synced is not None:
                # Apache Kafka would not keep it up to date.
                self.volume.synced.remove()
            self._epoch_note.remove()
            self.volume.disk.write_file_atomically(
                f"{self.path}/{clean_shutdown.FILE}", clean_shutdown.encode_clean_shutdown(broker_epoch)
            )
        except DiskError as error:
            raise self.volume.fail(error) from error
        finally:
            self.release()

    def close(self, broker_epoch: int = clean_shutdown.NO_BROKER_EPOCH) -> None:
        """Stop cleanly, in this thread."""
        try:
            for log, ticket in self.start_close():
                flush.run(ticket, self.volume.disk)
                log.finish_flush(ticket)
        except DiskError as error:
            raise self.volume.fail(error) from error
        finally:
            if self.is_offline:
                self.release()
        self.finish_close(broker_epoch)

    def release(self) -> None:
        """Let other processes have the directory."""
        self._lock.release()


def parse_state(path: str) -> DirectoryState:
    """Return what the partition's directory at `path` is there for."""
    return parse_directory_name(path.rpartition("/")[2]).state


def _remove_clean_stop(disk: Disk, path: str) -> None:
    """Remove the mark of a clean stop for good."""
    marker = f"{path}/{clean_shutdown.FILE}"
    if disk.exists(marker):
        disk.remove(marker)
        disk.sync_directory(path)
