"""One partition's log: a row of segments, and the offsets that say what of it counts.

    log start offset    records below are deleted
    last stable offset  transactions below are decided; a read_committed consumer sees no further
    high watermark      every in-sync replica has what is below; a consumer sees no further
    log end offset      the offset of the next record
    recovery point      everything below survives a power cut

Always: log start <= last stable <= high watermark <= log end, and recovery point <= log end.

This class holds the state. What is done with it is in the modules named after what they do: `append`,
`committed`, `read`, `roll`, `flush`, `truncation`, `retention`; `load` makes a log of a directory. One thread
uses a log.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from ottla.model.ids import LeaderEpoch, Offset, ProducerId, TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage import read, retention, timestamps, truncation
from ottla.storage.appending.append import append_as_leader
from ottla.storage.appending.append_follower import append_as_follower
from ottla.storage.appending.verification import Verification
from ottla.storage.config import LogConfig
from ottla.storage.damages.damage import Damage
from ottla.storage.damages.unhealed import Unhealed
from ottla.storage.deletion import Deletion
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log_dirs.checkpoints import EpochEntry
from ottla.storage.names import FileKind, segment_file_name
from ottla.storage.producers.producer_snapshot import encode_producer_snapshot
from ottla.storage.producers.producer_state import Producer, ProducerState, check_epoch
from ottla.storage.read import ReadLimit, ReadResult
from ottla.storage.segment import Segment
from ottla.storage.syncing import committed, flush
from ottla.storage.syncing.committed import Tell
from ottla.storage.syncing.flush import FlushTicket
from ottla.storage.timestamps import TimestampAndOffset
from ottla.storage.volume import Volume
from ottla.world.disk import DiskError


class RunningCleaning(Protocol):
    """A round of compaction that is under way in another thread."""

    def end(self) -> None:
        """End it, and wait for that. What is not in the log yet is undone."""


class Log:
    """The log of a partition, opened. See `load` and `directory` for how to get one."""

    __slots__ = (
        "awaiting_replicas",
        "bridged",
        "checked_gaps",
        "cleaning",
        "config",
        "damages",
        "end_position",
        "has_unsynced_epochs",
        "has_unsynced_names",
        "high_watermark",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "lost",
        "next_positions",
        "path",
        "producer_state",
        "recovery_point",
        "segments",
        "snapshot_offset",
        "synced_slot",
        "topic_id",
        "topic_partition",
        "truncations",
        "unhealed",
        "unsynced_paths",
        "verifications",
        "volume",
        "when_damaged",
    )

    def __init__(
        self,
        volume: Volume,
        path: str,
        topic_partition: TopicPartition,
        topic_id: Uuid | None,
        config: LogConfig,
    ) -> None:
        """Stand for a log without segments. The loader fills it."""
        self.volume = volume
        self.path = path
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        # It may be replaced at any time.
        self.config = config
        self.segments: list[Segment] = []
        self.log_start_offset = Offset(0)
        self.log_end_offset = Offset(0)
        self.high_watermark = Offset(0)
        self.recovery_point = Offset(0)
        self.leader_epochs = LeaderEpochs()
        self.producer_state = ProducerState()
        # By producer, while their coordinator is asked. None as long as there was none.
        self.verifications: dict[ProducerId, Verification] | None = None
        # The offset of the newest producer snapshot.
        self.snapshot_offset = Offset(-1)
        # Where the last limit of a read was found: its offset, its segment, its position there.
        self.end_position: tuple[Offset, Segment | None, int] = (Offset(-1), None, 0)
        # Where batches start that readers will ask for, by offset. Hints: see `read`.
        self.next_positions: dict[Offset, tuple[Segment, int]] = {}
        # What the next flush has to take care of, besides the segments' files.
        self.has_unsynced_names = False
        self.has_unsynced_epochs = False
        self.unsynced_paths: tuple[str, ...] = ()
        self.truncations = 0
        # Those who wait for the high watermark to reach an offset, ascending. See `committed`.
        # None as long as there was nobody: there may be a hundred thousand logs.
        self.awaiting_replicas: deque[tuple[Offset, Tell]] | None = None
        # Where `synced_offsets` keeps the recovery point of this log, or -1.
        self.synced_slot = -1
        # What its load found to be damaged.
        self.damages: tuple[Damage, ...] = ()
        # Offsets that this or an earlier load has covered with empty batches, until they are healed.
        self.bridged: tuple[tuple[Offset, Offset], ...] = ()
        # What readers are kept away from until it is healed, and the part that has it healed. None if nobody
        # can.
        self.unhealed: tuple[Unhealed, ...] = ()
        # What no other replica has either. Readers are led past it, as on a node that is alone.
        self.lost: tuple[Unhealed, ...] = ()
        # Where segments with gaps begin, and up to where these are known to be right. See `gaps`.
        self.checked_gaps: tuple[tuple[Offset, Offset], ...] = ()
        self.when_damaged: Callable[[Offset], None] | None = None
        self.cleaning: RunningCleaning | None = None

    def __repr__(self) -> str:
        return f"<Log {self.path} {self.log_start_offset}..{self.log_end_offset}>"

    append_as_leader = append_as_leader
    append_as_follower = append_as_follower

    def read(
        self,
        offset: Offset,
        max_bytes: int,
        limit: ReadLimit = ReadLimit.HIGH_WATERMARK,
        at_least_one_batch: bool = True,
    ) -> ReadResult:
        """Find the batches from `offset` on. See `read.read`."""
        return read.read(self, offset, max_bytes, limit, at_least_one_batch)

    def offset_for_timestamp(
        self, timestamp_ms: int, limit: ReadLimit = ReadLimit.HIGH_WATERMARK
    ) -> TimestampAndOffset | None:
        """Find the first record of at least a timestamp that a reader may see."""
        return timestamps.find_offset_for_timestamp(self, timestamp_ms, limit)

    def max_timestamp_offset(self) -> TimestampAndOffset | None:
        """Find the first record that has the largest timestamp of all."""
        return timestamps.find_max_timestamp(self)

    def truncate_to(self, offset: Offset, now_ms: int) -> list[Deletion]:
        """Make `offset` the log end. Use `LogDirectory.truncate`, which also keeps that safe."""
        return truncation.truncate_to(self, offset, now_ms)

    def truncate_fully_and_start_at(self, offset: Offset, now_ms: int) -> list[Deletion]:
        """Drop everything and go on at `offset`."""
        return truncation.truncate_fully_and_start_at(self, offset, now_ms)

    def increment_log_start_offset(self, offset: Offset) -> bool:
        """Delete the records below `offset` as far as readers are concerned."""
        return retention.increment_log_start_offset(self, offset)

    def delete_old_segments(self, now_ms: int) -> list[Deletion]:
        """Take out the segments that the settings do not keep. Returns the files to remove later.

        Use `LogDirectory.delete_old_segments`, which also keeps that safe.
        """
        return retention.delete_old_segments(self, now_ms)

    def start_flush(self) -> FlushTicket | None:
        """Return what is to be synced now. See `flush`."""
        return flush.start_flush(self)

    def finish_flush(self, ticket: FlushTicket) -> None:
        """Say that what a ticket asked for was done."""
        flush.finish_flush(self, ticket)

    def fail_flush(self, ticket: FlushTicket, error: DiskError) -> bool:
        """Say that it failed. Unless a file was only renamed meanwhile, the directory goes offline."""
        return flush.fail_flush(self, ticket, error)

    def flush(self) -> None:
        """Sync everything now, in this thread."""
        ticket = self.start_flush()
        if ticket is not None:
            self._run(ticket)

    def _run(self, ticket: FlushTicket) -> None:
        try:
            flush.run(ticket, self.volume.disk)
        except DiskError as error:
            raise self.volume.fail(error) from error
        self.finish_flush(ticket)
        self.volume.save_synced()

    # Offsets.

    @property
    def active_segment(self) -> Segment:
        return self.segments[-1]

    @property
    def size_bytes(self) -> int:
        return sum([segment.size for segment in self.segments])

    @property
    def last_stable_offset(self) -> Offset:
        first_unstable = self.producer_state.first_unstable_offset
        if first_unstable is None or first_unstable > self.high_watermark:
            return self.high_watermark
        return max(first_unstable, self.log_start_offset)

    def update_high_watermark(self, offset: Offset) -> None:
        """Set the high watermark, kept between log start and log end."""
        # Without `min` and `max`: this is done for each append, and calling them takes longer.
        if offset > self.log_end_offset:
            offset = self.log_end_offset
        self.high_watermark = offset if offset > self.log_start_offset else self.log_start_offset
        if self.producer_state.unreplicated:
            self.producer_state.note_high_watermark(self.high_watermark)
        if self.awaiting_replicas:
            committed.high_watermark_moved(self)

    is_committed = committed.is_committed
    when_committed = committed.when_committed

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> EpochEntry:
        """Return where an epoch ended, or the largest known one before it."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def assign_leader_epoch(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Note that an epoch starts. A new leader does so at its log end before it appends."""
        if self.leader_epochs.assign(epoch, start_offset):
            self.has_unsynced_epochs = True

    # Segments.

    def segments_from(self, offset: Offset) -> Iterator[Segment]:
        """Give the segment that holds `offset`, and all after it."""
        segments = self.segments
        if offset >= segments[-1].base_offset:
            return iter(segments[-1:])
        first = bisect_right(segments, offset, key=_base_offset_of) - 1
        return iter(segments[max(first, 0) :])

    def end_of(self, segment: Segment) -> Offset:
        """Return the base offset of the segment after, or the log end."""
        after = bisect_right(self.segments, segment.base_offset, key=_base_offset_of)
        return self.segments[after].base_offset if after < len(self.segments) else self.log_end_offset

    # Producers.

    def start_verification(
        self, producer_id: ProducerId, epoch: int, sequence: int, supports_epoch_bump: bool, now_ms: int
    ) -> Verification | None:
        """Return what to hand in with the first batch of a transaction once its coordinator confirmed it.

        None if the transaction is under way here already, so that nobody need be asked. Raises `AppendError`
        if a newer instance of the producer was here: then nobody need be asked either.
        """
        producer = self.producer_state.producers.get(producer_id)
        if producer is not None:
            check_epoch(producer_id, producer, epoch)
            if producer.has_open_transaction and producer.epoch == epoch:
                return None
        if self.verifications is None:
            self.verifications = {}
        verification = self.verifications.get(producer_id)
        if verification is None:
            verification = Verification(producer_id, epoch, sequence, supports_epoch_bump, now_ms)
            self.verifications[producer_id] = verification
        else:
            verification.note_attempt(epoch, sequence)
        return verification

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that were silent for long, and verifications that nobody came back with."""
        expiration_ms = self.config.producer_id_expiration_ms
        self.producer_state.expire(now_ms, expiration_ms)
        if self.verifications:
            for producer_id, verification in list(self.verifications.items()):
                if now_ms - verification.started_ms >= expiration_ms:
                    del self.verifications[producer_id]

    def active_producers(self) -> dict[ProducerId, Producer]:
        """Return all producers that are known, to describe them."""
        return self.producer_state.producers

    def take_producer_snapshot(self, offset: Offset) -> None:
        """Write the state of the producers at `offset`, which is the log end, unless there is one."""
        if offset <= self.snapshot_offset:
            return
        path = f"{self.path}/{segment_file_name(offset, FileKind.PRODUCER_SNAPSHOT)}"
        content = encode_producer_snapshot(self.producer_state.snapshot())
        file = self.volume.disk.open(path, create=True)
        file.truncate(0)
        file.write(0, (content,))
        file.close()
        self.snapshot_offset = offset
        self.unsynced_paths = (*self.unsynced_paths, path)
        self.has_unsynced_names = True

    def end_cleaning(self) -> None:
        """End a round of compaction that is under way. What it has staged goes by names and offsets."""
        if self.cleaning is not None:
            self.cleaning.end()

    def move_to(self, path: str, *, syncs: bool = True) -> None:
        """Give the partition's directory another name, next to the old one."""
        self.volume.check()
        self.end_cleaning()
        try:
            self.volume.disk.rename(self.path, path)
            if syncs:
                self.volume.disk.sync_directory(self.volume.path)
        except DiskError as error:
            raise self.volume.fail(error) from error
        self.volume.renames += 1
        for segment in self.segments:
            segment.file.path = path + segment.file.path.removeprefix(self.path)
        self.unsynced_paths = tuple([path + old.removeprefix(self.path) for old in self.unsynced_paths])
        self.path = path

    def start_close(self) -> FlushTicket | None:
        """Complete all files, so that the next start need not look at a batch. Returns what is to be synced.

        A log that was not appended to since it was loaded costs next to nothing.
        """
        self.volume.check()
        active = self.active_segment
        try:
            known = max(self.snapshot_offset, self.segments[0].base_offset)
            if active.has_unsaved_indexes or self.log_end_offset > known:
                active.become_inactive()
                self.take_producer_snapshot(self.log_end_offset)
                self.unsynced_paths = (*self.unsynced_paths, *active.derived_paths())
                self.has_unsynced_names = True
            elif active.size == 0 and not all(map(self.volume.disk.exists, active.derived_paths())):
                # Apache Kafka calls it an error if a segment has no index files. They are empty: not worth
                # a sync.
                active.save_indexes()
        except DiskError as error:
            raise self.volume.fail(error) from error
        return self.start_flush()

    def close(self) -> None:
        """Complete and sync all files, in this thread."""
        ticket = self.start_close()
        if ticket is not None:
            self._run(ticket)


def _base_offset_of(segment: Segment) -> Offset:
    return segment.base_offset
