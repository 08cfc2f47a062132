"""The files in the directory of a log that is being loaded, compared with what a clean stop noted of them."""

from ottla.model.ids import Offset
from ottla.storage.damages.damage import Damage
from ottla.storage.damages.stopped_files import NO_FILE, StoppedSegment, crc_of
from ottla.storage.deletion import not_found_is_fine
from ottla.storage.file_errors import CorruptFile
from ottla.storage.loading.leftovers import SegmentFiles, settle_leftovers
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.log_dirs.checkpoints import LEADER_EPOCH_FILE, EpochEntry, decode_epoch_checkpoint
from ottla.storage.names import SEGMENT_KINDS, FileKind, segment_file_name
from ottla.storage.segment import Segment
from ottla.storage.volume import Volume
from ottla.world.disk import DiskError, Reason


class LogFiles:
    """The files of one log."""

    def __init__(self, volume: Volume, request: LoadRequest, damages: list[Damage]) -> None:
        """Settle what a crash left half done. Segments that are missing are added to `damages`."""
        self.volume = volume
        self.disk = volume.disk
        self.request = request
        # Base offsets of segments that are not as a clean stop left them.
        self.suspects: set[Offset] = set()
        # Base offsets of segments that a clean stop left, and that are not there.
        self.missing: list[Offset] = []
        self.of_kind: SegmentFiles = settle_leftovers(self.disk, request.path)
        self._remove_orphans()
        self._compare_with_stop(damages)

    def path_of(self, offset: Offset, kind: FileKind) -> str:
        """Return the path of a file of the segment at an offset."""
        return f"{self.request.path}/{segment_file_name(offset, kind)}"

    def segment_at(self, base_offset: Offset) -> Segment:
        """Return the segment at a base offset, as its files are."""
        entry = self.of_kind[FileKind.LOG][base_offset]
        offsets = self.of_kind[FileKind.OFFSET_INDEX].get(base_offset)
        times = self.of_kind[FileKind.TIME_INDEX].get(base_offset)
        return Segment.of_files(
            self.volume,
            self.disk.open(self.path_of(base_offset, FileKind.LOG)),
            base_offset,
            entry.modified_ms,
            size=entry.size,
            offset_bytes=offsets.size if offsets else 0,
            time_bytes=times.size if times else 0,
            has_aborted=base_offset in self.of_kind[FileKind.TRANSACTION_INDEX],
        )

    def read_epochs(self) -> list[EpochEntry]:
        """Return the leader epochs that the checkpoint has: none, if it is missing or damaged."""
        try:
            return decode_epoch_checkpoint(self.disk.read_file(f"{self.request.path}/{LEADER_EPOCH_FILE}"))
        except CorruptFile:
            return []
        except DiskError as error:
            if error.reason is not Reason.NOT_FOUND:
                raise
            return []

    def misses_segment_between(self, start: Offset, end: Offset) -> bool:
        """Say whether a segment that a clean stop left between two offsets is not there."""
        return any(start <= missing < end for missing in self.missing)

    def remove(self, segment: Segment, *, has_log: bool = True) -> None:
        """Remove the files of a segment. Without `has_log`, its log file is not there any more."""
        if not has_log:
            del self.of_kind[FileKind.LOG][segment.base_offset]
        for kind in (*SEGMENT_KINDS, FileKind.PRODUCER_SNAPSHOT):
            if segment.base_offset in self.of_kind[kind]:
                with not_found_is_fine():
                    # A torn producer snapshot was removed when it was to be read.
                    self.disk.remove(self.path_of(segment.base_offset, kind))
                del self.of_kind[kind][segment.base_offset]

    def settle_snapshots(self, log: Log) -> None:
        """Remove the snapshots that no segment starts at, except the newest, and those above the log end."""
        bases = {segment.base_offset for segment in log.segments}
        offsets = sorted(self.of_kind[FileKind.PRODUCER_SNAPSHOT])
        for offset in offsets:
            path = self.path_of(offset, FileKind.PRODUCER_SNAPSHOT)
            is_newest = offset == offsets[-1] and offset > log.active_segment.base_offset
            if offset > log.log_end_offset or not (offset in bases or is_newest):
                if self.disk.exists(path):
                    self.disk.remove(path)
            elif self.disk.exists(path):
                log.snapshot_offset = offset
                if not self.request.is_clean and offset > self.request.recovery_point:
                    # If only the process was killed, it may be in the kernel's memory and nowhere else.
                    log.unsynced_paths = (*log.unsynced_paths, path)

    def _remove_orphans(self) -> None:
        """Remove index files without a log file."""
        for kind in SEGMENT_KINDS:
            for offset in self.of_kind[kind].keys() - self.of_kind[FileKind.LOG].keys():
                self.disk.remove(self.path_of(offset, kind))
                del self.of_kind[kind][offset]

    def _compare_with_stop(self, damages: list[Damage]) -> None:
        """Find the segments whose files are not what they were at the last clean stop."""
        stopped = self.request.stopped
        if not self.request.is_clean or stopped is None:
            return
        bases = [segment.base_offset for segment in stopped.segments]
        for index, segment in enumerate(stopped.segments):
            if segment != self._found_segment(segment.base_offset):
                self.suspects.add(segment.base_offset)
            if segment.base_offset in self.of_kind[FileKind.LOG]:
                continue
            self.missing.append(segment.base_offset)
            # What is missing behind another segment shows when that one is recovered.
            before = [base for base in bases[:index] if base in self.of_kind[FileKind.LOG]]
            self.suspects.update(before[-1:])
            if not before:
                self._note_missing(segment, [*bases, stopped.log_end_offset][index + 1], damages)

    def _found_segment(self, base_offset: Offset) -> StoppedSegment:
        sizes = [
            entry.size if (entry := self.of_kind[kind].get(base_offset)) is not None else 0
            for kind in (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)
        ]
        aborted_crc = NO_FILE
        if base_offset in self.of_kind[FileKind.TRANSACTION_INDEX]:
            aborted_crc = crc_of(self.disk, self.path_of(base_offset, FileKind.TRANSACTION_INDEX))
        return StoppedSegment(base_offset, sizes[0], sizes[1], sizes[2], aborted_crc)

    def _note_missing(self, segment: StoppedSegment, end: Offset, damages: list[Damage]) -> None:
        path = self.path_of(segment.base_offset, FileKind.LOG)
        partition, base = self.request.topic_partition, segment.base_offset
        damage = Damage(partition, path, 0, segment.size, base, end, "", True)
        if damage not in damages:
            damages.append(damage)
