"""Making a `Log` of a partition's directory, whatever a crash has left there.

1. Settle what was half done (`leftovers`).
2. After a clean stop believe the files: only the few batches behind the last index entry are looked at.
   Otherwise recover every segment that reaches above the recovery point. A segment without usable indexes is
   recovered in any case. What cannot be right and was synced is damage: the segment is written again without
   it (`repair`), and the load starts again. What was never synced is a torn tail: the log is cut there, and
   what follows is kept aside (`damage`).
3. Bring leader epochs and producers up to the log end: they were noticed while recovering, or come from
   their files and the batches after those.

The recovery point is not moved by any of this: what was recovered may not have been synced.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from ottla.model.ids import Offset
from ottla.storage.damages.bridged import read_bridged, write_bridged
from ottla.storage.damages.damage import Damage, keep_file, keep_range
from ottla.storage.errors import OffsetOverflow
from ottla.storage.file_errors import CorruptFile
from ottla.storage.indexes.index_files import replace_index
from ottla.storage.indexes.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.storage.indexes.offset_index import RELATIVE_OFFSET_MAX
from ottla.storage.indexes.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.loading.damage_refusal import refuse, refuse_damage
from ottla.storage.loading.derived_files import index_end_is_plausible, read_aborted, replace_derived_files
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.loading.log_files import LogFiles
from ottla.storage.loading.recovery import Buffer, RecoveredSegment, recover_segment
from ottla.storage.log import Log
from ottla.storage.log_dirs import partition_metadata
from ottla.storage.log_dirs.checkpoints import (
    LOG_START_FILE,
)
from ottla.storage.names import FileKind
from ottla.storage.producers.producer_replay import ProducerReplay
from ottla.storage.producers.producer_snapshot import decode_producer_snapshot, encode_producer_snapshot
from ottla.storage.roll import create_segment, set_jitter
from ottla.storage.segment import ALLOCATION_BYTES_MIN, Segment
from ottla.storage.volume import Volume
from ottla.world.disk import DiskError, Entry

if TYPE_CHECKING:
    # Imported where they are needed: only damage needs them, and every start has to import this module.
    from ottla.storage.damages.repair import KnownTransactions

_FOLLOWERS_GAP_MIN: Final = RELATIVE_OFFSET_MAX // 2


def load_log(volume: Volume, request: LoadRequest, buffer: Buffer | None = None) -> Log:
    """Load the log of a partition. Raises `LogDirectoryOffline` if the disk fails."""
    damages: list[Damage] = []
    try:
        while True:
            try:
                log = _Loader(volume, request, buffer or Buffer()).load(damages)
            except _Repaired:
                # Each time one segment fewer is damaged. What was recovered before stays recovered.
                continue
            except OffsetOverflow as overflow:
                from ottla.storage.compaction.split import split_on_disk

                base_offset = Offset(overflow.base_offset)
                split_on_disk(volume.disk, request.path, base_offset, request.config.index_interval_bytes)
            else:
                log.damages = tuple(damages)
                log.bridged = read_bridged(volume.disk, request.path)
                return log
    except DiskError as error:
        raise volume.fail(error) from error


class _Repaired(Exception):
    """A segment was written again, so the files are no longer what the loader has seen."""


class _Loader:
    """The load of one log."""

    def __init__(self, volume: Volume, request: LoadRequest, buffer: Buffer) -> None:
        self.volume = volume
        self.disk = volume.disk
        self.request = request
        self.buffer = buffer
        self.files: LogFiles
        self.damages: list[Damage] = []
        # Of the segment that was recovered last.
        self.recovered_end = (Offset(-1), Offset(-1))
        self.has_gaps = request.config.is_compacted
        # The checkpoint has no checksum. What a clean stop noted has one.
        stopped = request.stopped
        self.log_start_offset = request.log_start_offset if stopped is None else stopped.log_start_offset
        topic_id = partition_metadata.read_topic_id(self.disk, request.path)
        self.log = Log(volume, request.path, request.topic_partition, topic_id, request.config)

    def load(self, damages: list[Damage]) -> Log:
        """Load the log. What turns out to be damaged is added to `damages`."""
        log, request = self.log, self.request
        self.damages = damages
        self.files = files = LogFiles(self.volume, request, damages)
        segments = [files.segment_at(base_offset) for base_offset in sorted(files.of_kind[FileKind.LOG])]
        segments = self._without_deleted(segments)
        log.leader_epochs = LeaderEpochs(files.read_epochs())
        if not request.is_clean:
            # Above the recovery point they may be of a history that was truncated. The batches tell.
            log.leader_epochs.doubt_from(request.recovery_point)
        log.leader_epochs.believe_up_to(request.recovery_point)
        replay = self._start_replay(segments)
        log.segments = self._trustworthy(segments, replay)
        self._set_offsets(replay)
        for segment in log.segments:
            # Whether it is used at all will show. A hundred thousand idle ones should cost no descriptors.
            segment.file.close()
        return log

    def _start_replay(self, segments: Sequence[Segment]) -> ProducerReplay:
        return ProducerReplay(
            self.disk,
            self.request.path,
            list(self.files.of_kind[FileKind.PRODUCER_SNAPSHOT]),
            segments[0].base_offset if segments else self.log_start_offset,
            self.request.now_ms,
            self.request.config.producer_id_expiration_ms,
        )

    # Segments.

    def _without_deleted(self, segments: list[Segment]) -> list[Segment]:
        """Remove the segments below the log start. Of several that were deleted, some may have come back.

        None is removed if the log may not even reach up to its start: the checkpoint may be damaged.
        """
        if self._may_be_wrong(self.log_start_offset):
            return segments
        after = [segment for segment in segments if segment.base_offset > self.log_start_offset]
        kept = segments[max(0, len(segments) - len(after) - 1) :]
        for segment in segments[: len(segments) - len(kept)]:
            self.files.remove(segment)
            self.log.has_unsynced_names = True
        return kept

    def _trustworthy(self, segments: list[Segment], replay: ProducerReplay) -> list[Segment]:
        """Recover what needs it, and return the segments that are left."""
        kept: list[Segment] = []
        for index, segment in enumerate(segments):
            is_last = index == len(segments) - 1
            end = None if is_last else segments[index + 1].base_offset
            kept.append(segment)
            if self._needs_recovery(segment, end):
                is_synced = self.request.is_clean or (end is not None and end <= self.request.recovery_point)
                is_whole = self._recover(segment, end, kept, replay, keeps_aborted=is_synced)
                if not is_whole or not self._is_followed_by(end):
                    self._keep_aside(segments[index + 1 :])
                    break
                if end is not None and self._has_lost_end(end):
                    self._repair(segment, end, kept)
                if end is not None and (self.request.is_clean or end < self.request.recovery_point):
                    # One just at the recovery point may not have been synced, and be of another history.
                    replay.prefer_snapshot(end)
                if end is not None and end not in self.files.of_kind[FileKind.PRODUCER_SNAPSHOT]:
                    self._take_snapshot(end, replay)
        return kept

    def _keep_aside(self, segments: list[Segment]) -> None:
        """Take segments out of the log that lie behind its end. Nothing of them may come back into it.

        Where gaps are nothing special they go one by one, the last first.
        """
        if segments and self.request.refuses_damage and not self.request.knows_synced:
            refuse(
                self.request,
                f"offsets {self.recovered_end[1]} to {segments[0].base_offset - 1} are missing before "
                f"{segments[0].file.path}",
            )
        for segment in reversed(segments):
            kept = keep_file(self.disk, self.request.path, segment.base_offset, segment.size)
            if kept:
                base = segment.base_offset
                path = segment.file.path
                partition = self.request.topic_partition
                end = self.recovered_end[1]
                self.damages.append(Damage(partition, path, 0, segment.size, end, base, kept, False, True))
            self.files.remove(segment, has_log=False)
            self.log.has_unsynced_names = True
            if self._may_follow_gap(segment.base_offset) or segment is segments[0]:
                self.disk.sync_directory(self.request.path)

    def _has_lost_end(self, base_offset: Offset) -> bool:
        """Say whether there was something between the segment that was recovered and the next one."""
        if base_offset > self.request.synced or base_offset <= self.recovered_end[1]:
            return False
        return not self._may_follow_gap(base_offset) or self.files.misses_segment_between(
            self.recovered_end[1], base_offset
        )

    def _repair(self, segment: Segment, end: Offset | None, kept: Sequence[Segment]) -> NoReturn:
        """Write a segment again without what cannot be right. Then the load has to start again."""
        from ottla.storage.damages.repair import DamagedSegment, empty_batch, repair_segment

        request = self.request
        if request.refuses_damage:
            refuse_damage(request, segment, end)
        promised = request.promised
        filled_to = end if end is not None and end <= request.synced else promised
        may_gap = (
            end is not None
            and self._may_follow_gap(end)
            and not self.files.misses_segment_between(self.recovered_end[1], end)
        )
        before = [one for one in kept if one is not segment]
        state = self._start_replay(kept).advance(segment.base_offset, before)
        damaged = DamagedSegment(
            request.topic_partition,
            request.path,
            segment.base_offset,
            segment.file,
            segment.size,
            segment.modified_ms,
            end,
            request.synced,
            filled_to,
            not may_gap,
            self.log.leader_epochs.epoch_for(Offset(segment.base_offset)),
            _known_transactions(request, self.files, segment, end),
            request.make_filler or empty_batch,
        )
        found = repair_segment(self.disk, damaged, state)
        self.damages += found
        lost = [(one.first_offset, one.next_offset) for one in found if one.was_synced]
        known = read_bridged(self.disk, request.path)
        new = [one for one in lost if one[0] < one[1] and one not in known]
        if new:
            write_bridged(self.disk, request.path, (*known, *new))
        segment.file.close()
        raise _Repaired

    def _take_snapshot(self, offset: Offset, replay: ProducerReplay) -> None:
        """Write the producers down between two segments, so that the next recovery can start there.

        Only where nobody did so before: one that was written then knows producers whose batches are gone now.
        """
        path = self.files.path_of(offset, FileKind.PRODUCER_SNAPSHOT)
        replace_index(self.disk, path, encode_producer_snapshot(replay.state.snapshot()))
        self.files.of_kind[FileKind.PRODUCER_SNAPSHOT][offset] = Entry(path, False, 0, 0)
        self.log.unsynced_paths = (*self.log.unsynced_paths, path)

    def _is_followed_by(self, base_offset: Offset | None) -> bool:
        """Say whether the segment at `base_offset` goes on where the one that was recovered ends.

        Where it does not, a power cut took the end of a segment and left the next one, or brought back a
        segment that was truncated. Only compaction leaves gaps, and only truncation overlaps. A log that was
        compacted is recognized by its settings; by the cleaner's checkpoint, which stays when those change;
        and by the gaps that compaction left elsewhere. A follower's segments have a gap between them only
        where one segment could not hold the offsets on both sides of it.

        Deviation: Kafka goes on after any gap, as long as no batch is torn. What lies behind one was never
        synced. A marker may be lost with what is missing, and then an aborted transaction would be taken
        for a part of the committed one after it.
        """
        if base_offset is None or base_offset <= self.request.synced:
            return True
        gap = base_offset - self.recovered_end[1]
        return gap == 0 or (gap > 0 and (self._may_follow_gap(base_offset) or gap > _FOLLOWERS_GAP_MIN))

    def _may_follow_gap(self, base_offset: Offset) -> bool:
        return self.has_gaps or base_offset <= self.request.cleaned_to

    def _needs_recovery(self, segment: Segment, end: Offset | None) -> bool:
        is_active = end is None
        has_entries = segment.offset_bytes or segment.time_bytes or segment.has_aborted
        if is_active and segment.size == 0 and not has_entries:
            # Just started. It gets index files when there is something in them.
            return False
        if not self.request.is_clean and (end is None or end >= self.request.recovery_point):
            # One that ends just there may have been completed afterwards, and its indexes not synced.
            return True
        if (
            segment.base_offset not in self.files.of_kind[FileKind.OFFSET_INDEX]
            or segment.base_offset in self.files.suspects
        ):
            return True
        if segment.offset_bytes % OFFSET_ENTRY_BYTES or segment.time_bytes % TIME_ENTRY_BYTES:
            return True
        if segment.has_aborted and not read_aborted(segment):
            return True
        # After a clean stop the ends of all other segments are taken on trust, as looking costs some reads.
        if end is not None and self.request.is_clean:
            return False
        return not index_end_is_plausible(segment) or (end is not None and self._ends_early(segment, end))

    def _ends_early(self, segment: Segment, end: Offset) -> bool:
        """Say whether something seems to be missing between a segment and the next one."""
        found = segment.read_end()
        has_gap = found.next_offset < end and not self._may_follow_gap(end)
        return found.position < segment.size or has_gap or found.next_offset > end

    def _recover(
        self,
        segment: Segment,
        end: Offset | None,
        kept: list[Segment],
        replay: ProducerReplay,
        *,
        keeps_aborted: bool,
    ) -> bool:
        """Recover a segment. Says whether all of it was good.

        If nothing can be missing of it, what its transaction index says is believed: compaction may have
        taken the data of a transaction, so that its marker no longer tells that there was one. But only where
        there is a marker: the index may not have been synced, and be full of zeros.
        """
        told = read_aborted(segment) if keeps_aborted else []
        state = replay.advance(segment.base_offset, kept)
        epochs = self.log.leader_epochs
        epochs.recovered_to = self.recovered_end[1] if self.recovered_end[1] >= 0 else segment.base_offset
        try:
            recovered = recover_segment(
                segment.file,
                segment.size,
                segment.base_offset,
                self.request.config.index_interval_bytes,
                state,
                epochs,
                self.buffer,
            )
        except OffsetOverflow:
            if self._holds_damage(segment, end):
                self._repair(segment, end, kept)
            raise
        is_whole = recovered.valid_bytes == segment.size
        if is_whole:
            if self._reaches_too_far(segment, end, recovered):
                self._repair(segment, end, kept)
        elif not self._is_torn(segment, recovered):
            self._repair(segment, end, kept)
        known = [one for one in told if recovered.markers.get(one.last_offset) == one.producer_id]
        # The batches are believed first: a checksum covers them, and nothing covers the index.
        by_marker = {aborted.last_offset: aborted for aborted in (*known, *recovered.aborted)}
        recovered.aborted = [by_marker[offset] for offset in sorted(by_marker)]
        self.log.has_unsynced_epochs = True
        replay.offset = recovered.next_offset
        self.recovered_end = (segment.base_offset, recovered.next_offset)
        self.has_gaps = self.has_gaps or recovered.has_gaps
        if not is_whole:
            self._note_torn(segment, recovered)
            # Synced, or batches behind the torn one could come back behind what is going to be appended.
            segment.file.truncate(recovered.valid_bytes)
            segment.file.sync()
        elif segment.size > ALLOCATION_BYTES_MIN:
            # Gives back blocks that may be reserved behind the end.
            segment.file.truncate(segment.size)
        replace_derived_files(self.disk, self.request.path, segment, recovered, lasts=keeps_aborted)
        log = self.log
        log.unsynced_paths = (*log.unsynced_paths, segment.file.path, *segment.derived_paths())
        log.has_unsynced_names = True
        return is_whole

    def _holds_damage(self, segment: Segment, end: Offset | None) -> bool:
        from ottla.storage.damages.examine import DamagedRange, examine

        gapless_to = 0 if self._may_follow_gap(segment.base_offset) else self.request.promised
        parts = examine(segment.file, segment.size, segment.base_offset, end, gapless_to=gapless_to)
        return any(isinstance(part, DamagedRange) for part in parts)

    def _reaches_too_far(self, segment: Segment, end: Offset | None, recovered: RecoveredSegment) -> bool:
        """Say whether a base offset, which no checksum covers, is too large in one of the last batches."""
        if end is not None:
            return recovered.next_offset > end and end <= self.request.synced
        may_be = recovered.has_gaps and recovered.next_offset > self.request.promised
        return may_be and self._holds_damage(segment, end)

    def _is_torn(self, segment: Segment, recovered: RecoveredSegment) -> bool:
        """Say whether the end of a segment is what a crash leaves of a write.

        That was never synced, and there is no batch in it.
        """
        if recovered.next_offset < self.request.synced:
            return False
        from ottla.storage.damages.examine import SoundBatch, examine

        # From any offset on: a batch with a base offset that is too large makes all behind it seem old.
        rest = examine(segment.file, segment.size, segment.base_offset, position=recovered.valid_bytes)
        return not any(isinstance(part, SoundBatch) for part in rest)

    def _note_torn(self, segment: Segment, recovered: RecoveredSegment) -> None:
        start, end = recovered.valid_bytes, segment.size
        directory, base_offset = self.request.path, segment.base_offset
        kept = keep_range(self.disk, directory, base_offset, segment.file, start, end)
        offset = recovered.next_offset
        partition, path = self.request.topic_partition, segment.file.path
        self.damages.append(Damage(partition, path, start, end - start, offset, offset, kept, False))

    # Offsets.

    def _set_offsets(self, replay: ProducerReplay) -> None:
        log, request = self.log, self.request
        if log.segments:
            active = log.active_segment
            if self.recovered_end[0] != active.base_offset and active.read_end().position < active.size:
                # Not what a stop leaves, so everything in it has to be looked at.
                self._recover(active, None, log.segments, replay, keeps_aborted=request.is_clean)
            recovered_base, recovered_end = self.recovered_end
            if recovered_base == active.base_offset:
                log.log_end_offset = recovered_end
            else:
                log.log_end_offset = active.become_active()
            if log.log_end_offset < request.promised:
                self._fill_up(active)
            active.keep_aborted()
            set_jitter(active, request.config)
        if log.segments and log.log_end_offset < self.log_start_offset and request.knows_synced:
            self._note_wrong_start(log.segments[0].base_offset)
        if log.segments and log.log_end_offset < self.log_start_offset:
            # What is there is older than what was deleted, or the checkpoint of log starts is damaged.
            # Deviation: Kafka deletes it.
            self._keep_aside(log.segments)
            log.segments = []
        if not log.segments:
            log.log_end_offset = max(self.log_start_offset, self._note_all_lost())
            log.segments = [create_segment(log, log.log_end_offset, request.now_ms)]
            replay.snapshots.clear()
            replay.offset = log.log_end_offset
            replay.state.clear()
        log.log_start_offset = max(self.log_start_offset, log.segments[0].base_offset)
        log.high_watermark = log.log_start_offset
        log.recovery_point = min(request.recovery_point, log.log_end_offset)
        if request.is_clean and not log.has_unsynced_epochs:
            log.recovery_point = log.log_end_offset
        changed_end = log.leader_epochs.truncate_from_end(log.log_end_offset)
        changed_start = log.leader_epochs.truncate_from_start(log.log_start_offset)
        if changed_end or changed_start:
            log.has_unsynced_epochs = True
        log.producer_state = replay.advance(log.log_end_offset, log.segments)
        self.files.settle_snapshots(log)

    def _may_be_wrong(self, log_start_offset: Offset) -> bool:
        """Say whether a log start is behind everything that was synced. Only what was synced is deleted."""
        return self.request.knows_synced and log_start_offset > self.request.promised

    def _note_wrong_start(self, base_offset: Offset) -> None:
        """Let the log start with its first segment, since the checkpoint cannot be right."""
        partition, path = self.request.topic_partition, f"{self.volume.path}/{LOG_START_FILE}"
        what = (
            f"{path} has the log start {self.log_start_offset}, after the log end {self.log.log_end_offset}: "
            f"using {base_offset} instead"
        )
        self.log_start_offset = base_offset
        self.damages.append(Damage(partition, path, 0, 0, base_offset, base_offset, "", True, what=what))

    def _fill_up(self, active: Segment) -> None:
        """Let the log reach up to where it was synced, though its files end before.

        So no offset is used twice.
        """
        missing = self.request.promised - self.log.log_end_offset
        if missing <= RELATIVE_OFFSET_MAX - (self.log.log_end_offset - active.base_offset):
            self._repair(active, None, self.log.segments)
        # No batch can cover so many offsets. Nor has a log lost so many: the checkpoint is damaged.

    def _note_all_lost(self) -> Offset:
        """Return where a log goes on whose segments are all gone, having noted what it has lost."""
        request = self.request
        start, end = self.log_start_offset, request.promised
        if end > start:
            path = self.files.path_of(start, FileKind.LOG)
            if request.refuses_damage:
                refuse(request, f"{path} is missing, with offsets {start} to {end - 1}")
            self.damages.append(Damage(request.topic_partition, path, 0, 0, start, end, "", True))
        return end


def _known_transactions(
    request: LoadRequest, files: LogFiles, segment: Segment, end: Offset | None
) -> "KnownTransactions | None":
    """Return what is known of a segment's transactions, if that is certain.

    Nothing of it may be newer.
    """
    if end is None or not (request.is_clean or end < request.recovery_point):
        return None
    try:
        entries = decode_producer_snapshot(
            files.disk.read_file(files.path_of(end, FileKind.PRODUCER_SNAPSHOT))
        )
        aborted = segment.aborted()
    except (CorruptFile, DiskError):
        return None
    from ottla.storage.damages.repair import KnownTransactions

    return KnownTransactions(
        frozenset(
            (entry.transaction_first_offset, entry.producer_id)
            for entry in entries
            if entry.transaction_first_offset >= 0
        ),
        frozenset((one.first_offset, one.producer_id) for one in aborted),
    )
