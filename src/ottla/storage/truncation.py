"""Cutting the end of a log off: a follower does so when its log departs from the leader's.

Everything that was derived from the records is cut with them: indexes, leader epochs, producers. A marker
that is cut leaves its transaction open again.

What was durable may be replaced by other bytes afterwards, so the recovery point must not be above the cut
after a crash. It is lowered here, but the file that keeps it is the log directory's: `LogDirectory.truncate`
writes that first, with what `find_safe_point` says.

A round of compaction that is under way ends first: what it has staged would survive a crash, and bring back
what was cut off.

The cut itself is durable when it returns. Otherwise a power cut could mix the two histories: old batches
behind new ones where they happen to meet at the end of a page, segments and producer snapshots that come
back.
"""

from typing import TYPE_CHECKING

from ottla.model.ids import Offset
from ottla.storage.damages.unhealed import forget_from
from ottla.storage.deletion import Deletion, take_out
from ottla.storage.indexes.index_files import sync_index
from ottla.storage.names import FileKind, find_segment_file, segment_file_name
from ottla.storage.producers.producer_replay import ProducerReplay
from ottla.storage.producers.producer_state import ProducerState
from ottla.storage.roll import create_segment, roll
from ottla.world.disk import DiskError

if TYPE_CHECKING:
    from ottla.storage.log import Log


def find_cut(log: "Log", offset: Offset) -> Offset:
    """Return where the log will end if it is truncated to `offset`: before the batch that holds it.

    If everything goes, nothing of what a crash may bring back is to be trusted: that is 0.
    """
    if offset >= log.log_end_offset:
        return log.log_end_offset
    offset = min([offset, *_damage_taken(log, offset)])
    if offset < log.segments[0].base_offset:
        return Offset(0)
    segment = next(log.segments_from(offset))
    try:
        place = segment.find_batch(offset)
    except DiskError as error:
        raise log.volume.fail(error) from error
    return offset if place is None else Offset(min(offset, max(place.base_offset, segment.base_offset)))


def takes_damage(log: "Log", offset: Offset) -> bool:
    """Say whether a truncation to `offset` would cut more than that, since damage lies below."""
    return offset < log.log_end_offset and any(one < offset for one in _damage_taken(log, offset))


def _damage_taken(log: "Log", offset: Offset) -> list[Offset]:
    """Return where the damage begins that a truncation to `offset` cannot leave in the log.

    Damage in an earlier segment than the cut stays, and what is between them. In the same segment a batch
    behind it may not be found by walking, nor the producers without a snapshot.
    """
    if not log.unhealed or offset < log.segments[0].base_offset:
        return []
    cut = next(log.segments_from(offset)).base_offset
    snapshot = f"{log.path}/{segment_file_name(cut, FileKind.PRODUCER_SNAPSHOT)}"
    kept_to = cut if log.volume.disk.exists(snapshot) else Offset(-1)
    return [one.first_offset for one in log.unhealed if one.next_offset > kept_to]


def find_safe_point(log: "Log", cut: Offset) -> Offset:
    """Return up to where the files will reach for certain when the log was truncated to `cut`.

    That is `cut`, unless it lies behind a gap: a power cut may take the segment that says so. Then it is
    where the last batch before the gap ends.
    """
    if cut >= log.log_end_offset or cut < log.segments[0].base_offset:
        return cut
    segment = next(log.segments_from(cut))
    end = segment.base_offset
    try:
        for place in segment.scan_from(Offset(cut - 1)):
            if place.base_offset >= cut:
                break
            end = Offset(place.last_offset + 1)
    except DiskError as error:
        raise log.volume.fail(error) from error
    return end


def truncate_to(log: "Log", offset: Offset, now_ms: int) -> list[Deletion]:
    """Make `offset` the log end. A batch that holds it goes as a whole, and the log ends before it.

    Deviation: Kafka lets the log end at `offset` even then, and refuses the batch when it is fetched again.
    """
    log.volume.check()
    if offset >= log.log_end_offset:
        # An epoch that this node has begun, and in which it has written nothing, is no part of the leader's
        # history. Were it left here, the two would never agree (KAFKA-10706).
        if log.leader_epochs.truncate_from_end(log.log_end_offset):
            log.has_unsynced_epochs = True
        return []
    if offset < log.segments[0].base_offset:
        return truncate_fully_and_start_at(log, offset, now_ms)
    log.end_cleaning()
    log.next_positions.clear()
    offset = find_cut(log, offset)
    if offset < log.segments[0].base_offset:
        return truncate_fully_and_start_at(log, log.segments[0].base_offset, now_ms)
    try:
        _lower_synced(log, find_safe_point(log, offset))
        deletions = _take_out_above(log, offset)
        active = log.active_segment
        end = active.truncate_to(offset)
        active.file.sync()
        # If the next batch starts a new segment, no flush would look at this one again.
        for path in active.derived_paths():
            sync_index(log.volume.disk, path)
        _set_end(log, offset)
        log.log_start_offset = min(log.log_start_offset, offset)
        log.producer_state = rebuild_producer_state(log, now_ms)
        if end < offset:
            deletions += _start_segment_in_gap(log, offset, now_ms)
        log.volume.disk.sync_directory(log.path)
        log.update_high_watermark(log.high_watermark)
    except DiskError as error:
        raise log.volume.fail(error) from error
    return deletions


def _lower_synced(log: "Log", offset: Offset) -> None:
    """Have it written down that what is about to be cut off may be missing after a crash."""
    if log.volume.synced is not None:
        log.volume.synced.lower(log, offset)


def _start_segment_in_gap(log: "Log", offset: Offset, now_ms: int) -> list[Deletion]:
    """Have a log that ends in a gap say so: a start would take the end of its last batch for the log's.

    And then what was synced would seem to be lost.
    """
    if log.active_segment.size:
        roll(log, offset, now_ms)
        return []
    # The first one stays, since it says where the log starts.
    deletions = take_out(log, [log.segments.pop()]) if len(log.segments) > 1 else []
    log.segments.append(create_segment(log, offset, now_ms))
    return deletions


def _take_out_above(log: "Log", offset: Offset) -> list[Deletion]:
    """Take out the segments above a cut, for good: none may come back behind a gap.

    In a compacted log a gap is nothing special, so there they go one by one, the last first.
    """
    disk = log.volume.disk
    deletions: list[Deletion] = []
    while log.active_segment.base_offset > offset:
        deletions += take_out(log, [log.segments.pop()])
        if log.config.is_compacted or log.active_segment.base_offset <= offset:
            disk.sync_directory(log.path)
    return deletions


def truncate_fully_and_start_at(log: "Log", offset: Offset, now_ms: int) -> list[Deletion]:
    """Drop everything. The log is empty afterwards, and its first record will have `offset`."""
    log.volume.check()
    log.end_cleaning()
    log.next_positions.clear()
    try:
        _lower_synced(log, Offset(0))
        deletions = take_out(log, log.segments)
        remove_snapshots_above(log, Offset(-1))
        log.segments = [create_segment(log, offset, now_ms)]
        _set_end(log, offset)
        log.log_start_offset = offset
        log.leader_epochs.truncate_from_end(Offset(0))
        log.producer_state = ProducerState()
        log.volume.disk.sync_directory(log.path)
        log.update_high_watermark(offset)
    except DiskError as error:
        raise log.volume.fail(error) from error
    return deletions


def _set_end(log: "Log", offset: Offset) -> None:
    log.log_end_offset = offset
    log.recovery_point = min(log.recovery_point, offset)
    log.truncations += 1
    log.end_position = (Offset(-1), None, 0)
    forget_from(log, offset)
    log.leader_epochs.truncate_from_end(offset)
    log.has_unsynced_epochs = True
    log.has_unsynced_names = True
    log.verifications = None


def remove_snapshots_above(log: "Log", offset: Offset) -> list[Offset]:
    """Remove the producer snapshots of offsets above `offset`. Returns the offsets of the others."""
    disk = log.volume.disk
    left: list[Offset] = []
    for entry in disk.list(log.path):
        file = find_segment_file(entry.name)
        if file is None or file.kind is not FileKind.PRODUCER_SNAPSHOT or file.state.value:
            continue
        if file.offset > offset:
            disk.remove(f"{log.path}/{segment_file_name(file.offset, FileKind.PRODUCER_SNAPSHOT)}")
        else:
            left.append(file.offset)
    log.snapshot_offset = max(left, default=Offset(-1))
    log.unsynced_paths = tuple([path for path in log.unsynced_paths if disk.exists(path)])
    return left


def rebuild_producer_state(log: "Log", now_ms: int) -> ProducerState:
    """Return the producers at the log end, from the newest snapshot left and the batches after it."""
    snapshots = remove_snapshots_above(log, log.log_end_offset)
    replay = ProducerReplay(
        log.volume.disk,
        log.path,
        snapshots,
        log.segments[0].base_offset,
        now_ms,
        log.config.producer_id_expiration_ms,
    )
    return replay.advance(log.log_end_offset, log.segments)
