"""The metadata log as a replica of the quorum sees it: a `Log` of the storage engine, and its snapshots.

What is appended here is not yet safe; `synced_offset` says what is. The driver of the replica syncs the log.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from ottla.metadata.errors import MetadataError
from ottla.model.ids import LeaderEpoch, Offset
from ottla.quorum.batches import MetadataBatch, decode_batch
from ottla.quorum.quorum_state import FILE as QUORUM_STATE_FILE
from ottla.quorum.quorum_state import QuorumState, decode_quorum_state, encode_quorum_state
from ottla.quorum.raft.snapshot_files import Download, SnapshotFiles
from ottla.quorum.snapshot_file import FORMAT_SNAPSHOT, Snapshot, SnapshotId
from ottla.records.batch import BatchView, LegacyBatchView, iter_batches
from ottla.records.errors import CorruptBatch
from ottla.storage.appending.append_info import AppendOrigin
from ottla.storage.errors import AppendError
from ottla.storage.log import Log
from ottla.storage.read import ReadLimit
from ottla.world.disk import Disk

ABSTAINING_FILE: Final = "abstaining"
"""While it is there, the replica does not vote."""
_ABSTAINING_TEXT: Final = (
    b"The metadata of this controller was damaged. It does not vote until it has fetched all of it again.\n"
)
_READ_BYTES = 1 << 20


class OffsetAndEpoch(NamedTuple):
    """A point in a log: an offset, and the epoch of the record before it."""

    offset: Offset
    epoch: int

    def is_at_least(self, other: "OffsetAndEpoch") -> bool:
        """Say whether a log that ends here is at least as good as one that ends there."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


class Valid(NamedTuple):
    """The reader's log is the beginning of this one."""


class Diverging(NamedTuple):
    """The reader's log departs from this one; it does not before this point, at the latest."""

    end: OffsetAndEpoch


class NeedsSnapshot(NamedTuple):
    """What the reader lacks is not in this log any more."""

    snapshot_id: SnapshotId


class CommittedLost(MetadataError):
    """The leader asks for records to be cut off that were committed. Going on would lose them."""


class BadRecords(Exception):
    """Batches that a leader cannot have meant to be appended here."""


class ElectionStore(Protocol):
    """Where the epoch and the vote are remembered."""

    def read(self) -> QuorumState | None:
        """Return what was written last."""

    def write(self, election: QuorumState, kraft_version: int, voter_ids: tuple[int, ...]) -> None:
        """Write it so that it survives a power cut, before this returns."""

    def abstains(self) -> bool:
        """Say whether this replica must not vote, because its log has lost what it had acknowledged."""

    def vote_again(self) -> None:
        """Forget that it must not vote."""


class QuorumStateFile:
    """The file `quorum-state` in the directory of the metadata log."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._path = f"{directory}/{QUORUM_STATE_FILE}"
        self._abstaining_path = f"{directory}/{ABSTAINING_FILE}"

    def read(self) -> QuorumState | None:
        if not self._disk.exists(self._path):
            return None
        try:
            return decode_quorum_state(self._disk.read_file(self._path))
        except MetadataError as error:
            raise MetadataError(f"{self._path} is damaged: {error}") from error

    def write(self, election: QuorumState, kraft_version: int, voter_ids: tuple[int, ...]) -> None:
        self._disk.write_file_atomically(self._path, encode_quorum_state(election, kraft_version, voter_ids))

    def abstains(self) -> bool:
        return self._disk.exists(self._abstaining_path)

    def abstain(self) -> None:
        """Remember that this replica must not vote, before anything of its log is set aside."""
        self._disk.write_file_atomically(self._abstaining_path, _ABSTAINING_TEXT)

    def vote_again(self) -> None:
        self._disk.remove(self._abstaining_path)
        self._disk.sync_directory(self._directory)


class MetadataLog:
    """A log and its snapshots."""

    def __init__(self, log: Log, snapshots: SnapshotFiles) -> None:
        self.log = log
        self.snapshots = snapshots

    @property
    def start_offset(self) -> Offset:
        return self.log.log_start_offset

    @property
    def end_offset(self) -> Offset:
        return self.log.log_end_offset

    @property
    def synced_offset(self) -> Offset:
        """Everything below survives a power cut."""
        return min(self.log.recovery_point, self.log.log_end_offset)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, in the log or in the snapshot before it."""
        if self.log.leader_epochs.latest >= 0:
            return self.log.leader_epochs.latest
        latest = self.snapshots.latest
        return 0 if latest is None else latest.epoch

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    # Appending.

    def append_as_leader(self, batch: bytearray, epoch: int, wall_ms: int) -> Offset:
        """Append a batch. Returns the offset of its last record."""
        info = self.log.append_as_leader(
            memoryview(batch),
            leader_epoch=LeaderEpoch(epoch),
            now_ms=wall_ms,
            origin=AppendOrigin.RAFT_LEADER,
        )
        return info.last_offset

    def append_as_follower(self, records: bytes, epoch: int, wall_ms: int) -> list[MetadataBatch]:
        """Append what the leader of an epoch sent. A batch that is cut off is left out.

        Returns the control batches. They are read before anything is appended.
        """
        batches = self._check(records, epoch)
        if not batches:
            return []
        size = sum([batch.size_bytes for batch in batches])
        try:
            control = [decode_batch(batch) for batch in batches if batch.header.is_control]
            self.log.append_as_follower(memoryview(records)[:size], now_ms=wall_ms)
        except (AppendError, MetadataError) as error:
            raise BadRecords(str(error)) from error
        return control

    def _check(self, records: bytes, epoch: int) -> list[BatchView]:
        """Return the whole batches. They must go on where the log ends, and no epoch may go back."""
        next_offset, last_epoch = self.end
        try:
            batches = list(iter_batches(memoryview(records)))
        except CorruptBatch as error:
            raise BadRecords(str(error)) from error
        for batch in batches:
            if isinstance(batch, LegacyBatchView):
                raise BadRecords(f"a batch of format {batch.magic}")
            header = batch.header
            if header.base_offset != next_offset or header.last_offset < header.base_offset:
                raise BadRecords(f"a batch at {header.base_offset} cannot be appended at {next_offset}")
            if not last_epoch <= header.leader_epoch <= epoch:
                raise BadRecords(
                    f"a batch of epoch {header.leader_epoch} came after one of epoch {last_epoch}, "
                    f"from the leader of epoch {epoch}"
                )
            next_offset, last_epoch = Offset(header.last_offset + 1), header.leader_epoch
        return batches

    # Reading.

    def read(self, offset: Offset, bytes_max: int) -> bytes:
        """Return batches from `offset` on, committed or not."""
        return self.log.read(offset, bytes_max, ReadLimit.LOG_END).read()

    def control_batches(self, offset: Offset) -> Iterator[MetadataBatch]:
        """Give the control batches from `offset` on."""
        while offset < self.end_offset:
            for batch in iter_batches(memoryview(self.read(offset, _READ_BYTES))):
                header = batch.header
                if header.last_offset < offset:
                    # A read starts with the batch that holds the offset.
                    continue
                if header.is_control:
                    yield decode_batch(batch)
                offset = Offset(header.last_offset + 1)

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return where an epoch ended, or the last one before it."""
        found = self.log.end_offset_for_epoch(LeaderEpoch(epoch))
        if found.epoch < 0:
            return self.end
        end = OffsetAndEpoch(found.start_offset, found.epoch)
        earliest = self.snapshots.earliest
        if earliest is not None and end.offset == earliest.end_offset and end.epoch == epoch:
            # The epoch is older than all in the log.
            return OffsetAndEpoch(earliest.end_offset, earliest.epoch)
        return end

    def validate(self, offset: Offset, epoch: int) -> Valid | Diverging | NeedsSnapshot:
        """Compare the log of a reader that ends at `offset`, after a record of `epoch`, with this one."""
        latest = self.snapshots.latest_to_send
        if offset == 0 and latest is not None:
            # Fetching the snapshot is quicker than fetching the log before it.
            return NeedsSnapshot(latest)
        if self.start_offset == 0 and offset == 0:
            return Valid()
        earliest = self.snapshots.earliest
        if earliest is not None and (
            offset < self.start_offset
            or (offset == self.start_offset and epoch != earliest.epoch)
            or epoch < earliest.epoch
        ):
            assert self.snapshots.latest is not None, "there is an earliest one"
            return NeedsSnapshot(self.snapshots.latest)
        end = self.end_of_epoch(epoch)
        return Diverging(end) if end.epoch != epoch or end.offset < offset else Valid()

    # Truncating.

    def find_truncation(self, diverging: OffsetAndEpoch) -> Offset:
        """Return where this log has to end so that it may be the beginning of a leader's."""
        if diverging.epoch == 0:
            return min(diverging.offset, self.end_offset)
        mine = self.end_of_epoch(diverging.epoch)
        return min(mine.offset, diverging.offset) if mine.epoch == diverging.epoch else mine.offset

    def truncate_to(self, offset: Offset, wall_ms: int) -> None:
        """Cut the end off. It is durable when this returns."""
        for deletion in self.log.truncate_to(offset, wall_ms):
            deletion.run(self.log.volume.disk)

    def update_high_watermark(self, offset: Offset) -> None:
        self.log.update_high_watermark(offset)

    # Snapshots.

    def is_behind(self, snapshot_id: SnapshotId) -> bool:
        """Say whether a snapshot has something that the log does not have."""
        mine = (self.last_epoch, self.end_offset)
        return snapshot_id.end_offset >= self.start_offset and mine < (
            snapshot_id.epoch,
            snapshot_id.end_offset,
        )

    def restart_from(self, download: Download, wall_ms: int) -> Snapshot:
        """Put a fetched snapshot in the place of the whole log."""
        snapshot = download.freeze()
        self.snapshots.look_again()
        self._start_at(download.id, wall_ms)
        return snapshot

    def settle(self, wall_ms: int) -> None:
        """Finish what a crash may have interrupted: a snapshot that is ahead of the log replaces it."""
        latest = self.snapshots.latest
        if latest is None or latest == FORMAT_SNAPSHOT:
            return
        log_epoch = max(self.log.leader_epochs.latest, 0)
        begins_later = self.start_offset > latest.end_offset
        if not begins_later and (log_epoch, self.end_offset) < (latest.epoch, latest.end_offset):
            self._start_at(latest, wall_ms)
        if begins_later or self.end_offset < latest.end_offset:
            # What is missing in between would be lost without anybody noticing.
            raise MetadataError(
                f"the newest snapshot of {self.log.path} ends at {latest.end_offset}, but the log goes from "
                f"{self.start_offset} to {self.end_offset}"
            )

    def _start_at(self, snapshot_id: SnapshotId, wall_ms: int) -> None:
        for deletion in self.log.truncate_fully_and_start_at(snapshot_id.end_offset, wall_ms):
            deletion.run(self.log.volume.disk)
        self.snapshots.keep_from(snapshot_id)
