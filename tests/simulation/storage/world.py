"""A log directory in a simulated world: a disk that may lose power, the logs on it, and the truth about them.

Every operation is done to a log and told to the truth. One that a power cut interrupts is told too, so that
the truth knows what may or may not have happened. Syncs go through the group commit: an append is promised
once its waiter was told. Between the start of a sync and its end anything may happen, as with threads.
"""

from collections.abc import Generator
from contextlib import closing, suppress
from random import Random

from tests.simulation.storage.batches import read_batches
from tests.simulation.storage.checks import check_all, check_compacted, check_found, read_log
from tests.simulation.storage.truth import Truth

from ottla.model.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.appending.append_info import AppendInfo, AppendOrigin
from ottla.storage.compaction.candidates import find_candidate
from ottla.storage.compaction.cleaning import Cleaned, CleanedGroup, clean
from ottla.storage.compaction.plan import plan_cleaning
from ottla.storage.compaction.swap import discard_staged, finish_swap, replace_segments, stage_swap
from ottla.storage.config import LogConfig
from ottla.storage.deletion import Deletion
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.log_dirs.directory_checkpoints import CheckpointKind, CheckpointWrite
from ottla.storage.log_dirs.meta_properties import MetaProperties
from ottla.storage.log_dirs.opening import format_directory, open_directory
from ottla.storage.names import FileKind, FileState, segment_file_name
from ottla.storage.syncing import flush
from ottla.storage.syncing.flush import FlushTicket
from ottla.storage.syncing.group_commit import GroupCommit, Outcome
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import PowerCut, SimulatedDisk
from ottla.world.disk import DiskError

DIRECTORY = "logs"
TOPIC_ID = Uuid(bytes(range(16)))
_META = MetaProperties(cluster_id="simulated", node_id=NodeId(1), directory_id=Uuid(bytes(15) + b"\x99"))
_RUNNING_MAX = 2
_MAP_BYTES = 4_096


class Partition:
    """A log of the world, and the truth about it."""

    def __init__(self, name: TopicPartition, log: Log) -> None:
        self.name = name
        self.log = log
        self.truth = Truth()


class _Cleaning:
    """A round of compaction, as its log knows it."""

    def __init__(self, world: "World", partition: Partition) -> None:
        self._world = world
        self._partition = partition

    def end(self) -> None:
        self._world.end_compaction(self._partition)


class World:
    """A log directory and everything around it."""

    def __init__(self, rng: Random, config: LogConfig, partitions: int = 1) -> None:
        self.rng = rng
        self.config = config
        self.disk = SimulatedDisk()
        self.disk.now_ms = 1_000_000
        format_directory(self.disk, DIRECTORY, _META)
        self.disk.sync_directory("")
        self.directory = self._open()
        self.partitions: list[Partition] = []
        # What the last start knew before it looked.
        self.requests: list[LoadRequest] = []
        for number in range(partitions):
            name = TopicPartition("t", number)
            log = self.directory.create_log(name, TOPIC_ID, config, self.now_ms)
            self.partitions.append(Partition(name, log))
        self._start_work()

    def _open(self) -> LogDirectory:
        return open_directory(Volume(self.disk, DIRECTORY))

    def _start_work(self) -> None:
        """Forget everything that a process has under way."""
        self.commit: GroupCommit[tuple[Truth, int]] = GroupCommit(_RUNNING_MAX, together_min=2)
        self.tickets: list[tuple[Log, FlushTicket]] = []
        self.deletions: list[Deletion] = []
        self.writes: list[CheckpointWrite] = []
        # How far this process has synced each log.
        self.synced_here: dict[Truth, int] = {}
        # Rounds of compaction, each as its steps that are left.
        self.rounds: dict[TopicPartition, Generator[None, None, None]] = {}

    @property
    def now_ms(self) -> int:
        return self.disk.now_ms

    def partition_of(self, log: Log) -> Partition:
        return next(partition for partition in self.partitions if partition.log is log)

    # Appending.

    def append(
        self,
        partition: Partition,
        batch: bytearray,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        version: int = 2,
    ) -> AppendInfo:
        """Append one batch as the leader, and ask for a sync."""
        truth = partition.truth
        end = truth.end
        try:
            info = partition.log.append_as_leader(
                memoryview(batch),
                leader_epoch=LeaderEpoch(truth.leader_epoch),
                now_ms=self.now_ms,
                origin=origin,
                transaction_version=version,
            )
        except (PowerCut, LogDirectoryOffline):
            batch[:8] = end.to_bytes(8)
            batch[12:16] = truth.leader_epoch.to_bytes(4)
            truth.may_append(bytes(batch))
            raise
        if not info.is_duplicate:
            truth.append(bytes(batch))
            assert (info.first_offset, info.last_offset) == (end, truth.end - 1), "offsets of an append"
        return info

    def append_as_follower(self, partition: Partition, batches: bytes) -> None:
        """Append batches that have their offsets already."""
        try:
            partition.log.append_as_follower(memoryview(batches), now_ms=self.now_ms)
        except (PowerCut, LogDirectoryOffline):
            partition.truth.may_append(batches)
            raise
        partition.truth.append(batches)

    # Syncing.

    def commit_up_to_end(self, partition: Partition) -> None:
        """Wait for everything appended so far, as an `acks=all` answer does."""
        log, truth = partition.log, partition.truth
        self._apply(self.commit.request(log, log.log_end_offset, (truth, truth.end)))

    def run_ticket(self) -> None:
        """Run a sync that was started, or all of them together, and finish it."""
        if not self.tickets:
            return
        starts, self.tickets = self.tickets, []
        try:
            if len(starts) > 1 and self.rng.random() < 0.5:
                flush.run_together([ticket for _, ticket in starts], self.disk, DIRECTORY)
            else:
                start = starts.pop(self.rng.randrange(len(starts)))
                starts, self.tickets = [start], starts
                flush.run(start[1], self.disk)
        except DiskError as error:
            for log, _ in starts:
                self._apply(self.commit.failed(log, error))
            return
        for log, ticket in starts:
            if ticket.truncations == log.truncations:
                self.partition_of(log).truth.others.clear()
        self._apply(self.commit.finished(*[log for log, _ in starts]))

    def _apply(self, outcome: Outcome[tuple[Truth, int]]) -> None:
        started = self.commit.start()
        self.tickets += started.starts
        for truth, offset in outcome.done + started.done:
            truth.sync_up_to(offset)
            self.synced_here[truth] = min(offset, truth.synced_end)

    def flush(self, partition: Partition) -> None:
        """Sync everything now."""
        self.commit_up_to_end(partition)
        while self.tickets:
            self.run_ticket()

    # Checkpoints.

    def start_checkpoint(self, kind: CheckpointKind) -> None:
        write = self.directory.start_checkpoint(kind)
        if write is None:
            return
        try:
            write.run(self.disk)
        except DiskError as error:
            raise self.directory.volume.fail(error) from error
        self.writes.append(write)

    def finish_checkpoint(self) -> None:
        if self.writes:
            self.directory.finish_checkpoint(self.writes.pop())

    # Cutting, deleting.

    def truncate(self, partition: Partition, offset: int) -> None:
        """Truncate as a follower does, but not what was compacted: that was decided for good."""
        offset = max(offset, partition.truth.compacted_end)
        self.commit.forget(partition.log)
        try:
            self.deletions += self.directory.truncate([(partition.log, Offset(offset))], self.now_ms)
        finally:
            partition.truth.truncate_to(offset)
            # The state of the producers was loaded from a snapshot, which is where they expire.
            self._note_expired(partition.truth)

    def start_anew(self, partition: Partition, offset: int) -> None:
        """Truncate everything, as a follower does whose leader has deleted what it would need."""
        self.commit.forget(partition.log)
        try:
            log = partition.log
            self.deletions += self.directory.truncate_fully_and_start_at(log, Offset(offset), self.now_ms)
        finally:
            partition.truth.start_anew_at(offset)

    def delete_records(self, partition: Partition, offset: int) -> None:
        """Move the log start, as DeleteRecords does."""
        partition.log.increment_log_start_offset(Offset(offset))
        partition.truth.move_start(offset)

    def delete_old_segments(self, partition: Partition) -> None:
        """Apply retention."""
        log, truth = partition.log, partition.truth
        before = log.log_start_offset
        truth.start_max = truth.end
        self.deletions += self.directory.delete_old_segments(log, self.now_ms)
        assert before <= log.log_start_offset <= truth.high_watermark, (
            "retention went beyond the high watermark"
        )
        truth.move_start(log.log_start_offset)

    def run_deletions(self) -> None:
        """Remove the files that were taken out."""
        while self.deletions:
            self.deletions.pop().run(self.disk)

    # Compacting.

    def step_compaction(self, partition: Partition) -> None:
        """Begin a round of compaction, or do its next step. Between two steps anything may happen."""
        steps = self.rounds.get(partition.name)
        if steps is None:
            steps = self.rounds[partition.name] = self._compact(partition)
            partition.log.cleaning = _Cleaning(self, partition)
        try:
            next(steps)
        except StopIteration:
            self._forget_round(partition)
        except DiskError as error:
            raise self.directory.volume.fail(error) from error

    def end_compaction(self, partition: Partition) -> None:
        """End a round early, as a broker does that is about to truncate the log."""
        self.rounds[partition.name].close()
        self._forget_round(partition)

    def _forget_round(self, partition: Partition) -> None:
        del self.rounds[partition.name]
        partition.log.cleaning = None

    def _compact(self, partition: Partition) -> Generator[None, None, None]:
        log, offsets = partition.log, self.directory.cleaner_offsets
        candidate = find_candidate(log, offsets.get(partition.name), self.now_ms)
        if candidate.cleanable_bytes == 0:
            return
        # A recovery must not start below what is compacted.
        self.directory.checkpoint_now(CheckpointKind.RECOVERY_POINT)
        task = plan_cleaning(candidate, self.now_ms)
        steps = clean(task, self.disk, _MAP_BYTES, chunk_bytes=2_000)
        with closing(steps):
            for step in steps:
                if isinstance(step, CleanedGroup):
                    is_swapped = yield from self._swap(partition, step, task.end_offset)
                    if not is_swapped:
                        return
                elif isinstance(step, Cleaned):
                    offsets[partition.name] = step.first_dirty_offset
                yield

    def _swap(
        self, partition: Partition, group: CleanedGroup, round_end: Offset
    ) -> Generator[None, None, bool]:
        log, truth, cleaned = partition.log, partition.truth, (group.cleaned,)
        self._stage(partition, group, round_end)
        stage_swap(self.disk, log.path, cleaned)
        try:
            yield
        except GeneratorExit:
            discard_staged(self.disk, log.path, cleaned)
            truth.staged = []
            raise
        replacement = replace_segments(log, cleaned, group.replaced)
        if replacement is None:
            discard_staged(self.disk, log.path, cleaned)
            truth.staged = []
            return False
        truth.swap()
        is_synced = False
        try:
            yield
            self.disk.sync_directory(log.path)
            is_synced = True
            yield
        finally:
            if not is_synced:
                self.disk.sync_directory(log.path)
            finish_swap(log, replacement)
            self.deletions.append(replacement.deletion)
        return True

    def _stage(self, partition: Partition, group: CleanedGroup, round_end: Offset) -> None:
        """Judge what a compaction came to, and tell the truth what the log will be with it."""
        log, truth = partition.log, partition.truth
        bases = [segment.base_offset for segment in log.segments]
        start = group.cleaned.base_offset
        end = min(base for base in bases if base > group.replaced[-1])
        name = segment_file_name(start, FileKind.LOG, FileState.CLEANED)
        cleaned = read_batches(self.disk.read_file(f"{log.path}/{name}"))
        before = [batch for batch in truth.stored if batch.last_offset < start]
        after = [batch for batch in truth.stored if batch.base_offset >= end]
        stored = [*before, *cleaned, *after]
        if set(group.replaced) <= set(bases):
            check_compacted(log, truth, truth.stored, stored, round_end)
        # Else retention has overtaken it, and only a start swaps it in. It brings back what was deleted.
        # A start that finishes the swap cannot tell that segments beyond the last kept batch were replaced
        # too. They stay, and the next round cleans them.
        cleaned_end = cleaned[-1].last_offset + 1 if cleaned else start
        stays_from = min([base for base in group.replaced[1:] if base >= cleaned_end], default=end)
        stays = [batch for batch in truth.stored if stays_from <= batch.base_offset < end]
        truth.stage(stored, [*before, *cleaned, *stays, *after])

    def set_high_watermark(self, partition: Partition, offset: int) -> None:
        partition.log.update_high_watermark(Offset(offset))
        partition.truth.set_high_watermark(offset)

    def expire_producers(self, partition: Partition) -> None:
        partition.log.expire_producers(self.now_ms)
        self._note_expired(partition.truth)

    def _note_expired(self, truth: Truth) -> None:
        limit_ms = self.config.producer_id_expiration_ms
        for batch in (*truth.history, *truth.stored):
            # Whoever had expired in an older snapshot came back with the batches after that. Compaction may
            # have made a batch older.
            if batch.producer_id >= 0 and self.now_ms - batch.max_timestamp >= limit_ms:
                truth.expired.add(batch.producer_id)

    # Stopping and starting.

    def close(self) -> None:
        """Stop cleanly."""
        while self.tickets:
            self.run_ticket()
        self.directory.close()

    def kill(self) -> None:
        """End the process by force."""
        self._drop_rounds()
        self.disk.kill()

    def cut_power(self) -> None:
        """Lose power."""
        self._drop_rounds()
        self.disk.cut_power(self.rng)

    def _drop_rounds(self) -> None:
        """Let go of compactions as a process does that ends: without tidying up."""
        self.disk.halt()
        for steps in self.rounds.values():
            with suppress(PowerCut, LogDirectoryOffline):
                steps.close()
        self.rounds.clear()

    def open(self) -> None:
        """Start again on what is there."""
        self._start_work()
        self.directory = self._open()
        plan = self.directory.plan_load(lambda _topic: self.config, self.now_ms)
        self.requests = plan.loads
        assert [request.topic_partition for request in plan.loads] == [p.name for p in self.partitions]
        for request, partition in zip(plan.loads, self.partitions, strict=True):
            partition.log = load_log(self.directory.volume, request)
            self.directory.add(partition.log)

    def judge(self, *, is_whole: bool) -> None:
        """Hold what a start has found against the truth, and take it for the truth from here on.

        With `is_whole` nothing may be missing: the stop was clean, or the machine kept its power.
        """
        for partition in self.partitions:
            log, truth = partition.log, partition.truth
            found = read_batches(read_log(log))
            state = check_found(log, truth, found, is_whole=is_whole)
            if log.log_start_offset < truth.start <= log.log_end_offset:
                # The deletion was not made durable. Whoever asked for it asks again.
                log.update_high_watermark(Offset(max(truth.start, log.high_watermark)))
                log.increment_log_start_offset(Offset(truth.start))
            promised_start = truth.start
            truth.adopt(state, found, log.log_start_offset, log.log_end_offset, log.high_watermark)
            self._note_expired(truth)
            if log.log_end_offset < promised_start:
                # Everything was to be truncated, and any of the segments may be left. The leader has nothing
                # that would follow them, so the follower truncates again.
                self.start_anew(partition, promised_start)
            check_all(log, truth, self.rng)

    def check(self, partition: Partition) -> None:
        check_all(partition.log, partition.truth, self.rng)
