"""Reading: where in which file the batches of a fetch lie. The bytes themselves are for the caller to send.

A read gives bytes of one segment. They start with the batch that holds the wanted offset, which may begin
before it, and may end within a batch: consumers expect both.
"""

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.ids import NO_LEADER_EPOCH, NO_TIMESTAMP, Offset, ProducerId
from ottla.records.batch import HEADER_BYTES
from ottla.storage.damages.damage import Damage
from ottla.storage.damages.gaps import check_gap
from ottla.storage.damages.unhealed import end_before_damage, is_lost, position_before_damage
from ottla.storage.errors import DamagedRecords, OffsetOutOfRange
from ottla.storage.indexes.transaction_index import find_aborted
from ottla.storage.scan import BatchPlace, find_place
from ottla.storage.segment import Segment
from ottla.world.disk import DiskError, File

if TYPE_CHECKING:
    from ottla.storage.damages.examine import DamagedRange
    from ottla.storage.log import Log


_NEXT_POSITIONS_MAX: Final = 16
_NOWHERE: Final = (None, 0)


class ReadLimit(Enum):
    """How far a reader may see."""

    # A replica, and a coordinator that loads its state.
    LOG_END = "log end"
    # A consumer that reads uncommitted.
    HIGH_WATERMARK = "high watermark"
    # A consumer that reads committed.
    LAST_STABLE = "last stable offset"


class AbortedRange(NamedTuple):
    """A producer's records from `first_offset` to its next ABORT marker are not to be shown."""

    producer_id: ProducerId
    first_offset: Offset


class ReadResult(NamedTuple):
    """Bytes of a file, and the offsets of the log at the same moment."""

    file: File | None
    position: int
    length: int
    high_watermark: Offset
    last_stable_offset: Offset
    log_start_offset: Offset
    log_end_offset: Offset
    # Only for a reader limited to the last stable offset.
    aborted: tuple[AbortedRange, ...] | None = None
    # Where the batch begins that holds the wanted offset, or comes after it. None at the end.
    batch_offset: Offset | None = None

    def read(self) -> bytes:
        """Return the bytes, for callers that do not send them straight from the file."""
        return b"" if self.file is None else self.file.read(self.position, self.length)


def read(
    log: "Log", offset: Offset, max_bytes: int, limit: ReadLimit, at_least_one_batch: bool
) -> ReadResult:
    """Find the batches from `offset` on, up to the limit and `max_bytes`.

    With `at_least_one_batch` the first is given whole even if it is larger (KIP-74), or its reader would be
    stuck in front of it for ever. Without, a first batch that does not fit gives nothing.
    """
    end = limit_offset(log, limit)
    if not log.log_start_offset <= offset <= log.log_end_offset:
        raise OffsetOutOfRange(offset, log.log_start_offset, log.log_end_offset)
    if offset >= end:
        if offset == log.log_end_offset:
            note_tail(log)
        return _result(log, None, 0, 0, () if limit is ReadLimit.LAST_STABLE else None)
    log.volume.check()
    if log.unhealed:
        end = end_before_damage(log, offset, end)
    try:
        return _read_below(log, offset, end, max_bytes, limit, at_least_one_batch)
    except DiskError as error:
        raise log.volume.fail(error) from error


def limit_offset(log: "Log", limit: ReadLimit) -> Offset:
    """Return the offset before which a reader has to stop."""
    if limit is ReadLimit.LOG_END:
        return log.log_end_offset
    return log.high_watermark if limit is ReadLimit.HIGH_WATERMARK else log.last_stable_offset


def _read_below(
    log: "Log", offset: Offset, end: Offset, max_bytes: int, limit: ReadLimit, at_least_one_batch: bool
) -> ReadResult:
    aborted: tuple[AbortedRange, ...] | None = () if limit is ReadLimit.LAST_STABLE else None
    for segment in log.segments_from(offset):
        if segment.base_offset >= end:
            break
        place = _find_noted(log, segment, offset)
        if place is None:
            place = segment.find_batch(offset) or _find_behind_damage(log, segment, offset)
            first_offset = max(offset, segment.base_offset)
            next_offset = log.end_of(segment) if place is None else Offset(place.base_offset)
            if next_offset > first_offset:
                check_gap(log, segment, first_offset, next_offset)
            if place is None:
                # Compaction removed the rest of this segment.
                continue
            # Others who read the same will ask for it too.
            _note_next(log, offset, segment, place.position)
        end_position = _position_of_end(log, segment, end)
        if log.unhealed:
            end_position = position_before_damage(log, segment, place.position, end_position)
        if place.position >= end_position:
            break
        length = min(max_bytes, end_position - place.position)
        if length < place.size_bytes:
            length = place.size_bytes if at_least_one_batch else 0
        if limit is ReadLimit.LAST_STABLE and length:
            aborted = _find_aborted(log, segment, offset, place.position + length, end)
        if place.position + length == segment.size and end == log.log_end_offset:
            note_tail(log)
        elif length < 2 * place.size_bytes:
            # There is no room for the batch after it, unless that is smaller: the reader comes back for it.
            _note_next(log, Offset(place.last_offset + 1), segment, place.end)
        file = segment.file if length else None
        return _result(log, file, place.position, length, aborted, Offset(place.base_offset))
    return _result(log, None, 0, 0, aborted)


def _find_behind_known(log: "Log", segment: Segment, offset: Offset, position: int) -> BatchPlace | None:
    """Find a batch behind damage that is being healed, and that ends before `offset`.

    A follower that has what is damaged here must be able to go on. Otherwise it would never learn that this
    is committed, and could not hand it over.
    """
    ends = {
        one.position: one.end
        for one in log.unhealed
        if one.base_offset == segment.base_offset and one.next_offset <= offset
    }
    while position in ends:
        position = ends[position]
        while (place := segment.find_batch_at(position)) is not None:
            if place.last_offset >= offset:
                return place
            position = place.end
    return None


def _find_behind_damage(log: "Log", segment: Segment, offset: Offset) -> BatchPlace | None:
    """Find the first sound batch from `offset` on behind bytes that are no batch, and report those.

    Only what has no readable header is passed over like this. What has one is sent, and its reader sees that
    the checksum is wrong.
    """
    expected, position = segment.end_of_batches_from(offset)
    if position >= segment.size:
        return None
    if log.unhealed and (place := _find_behind_known(log, segment, offset, position)) is not None:
        return place
    if log.when_damaged is not None and not is_lost(log, offset):
        # Another replica has what is missing here, so nobody is led past it.
        log.when_damaged(offset)
        raise DamagedRecords(str(log.topic_partition), expected, log.end_of(segment))
    # Imported only here: only damage needs it.
    from ottla.storage.damages.examine import DamagedRange, examine

    end_offset = None if segment is log.segments[-1] else log.end_of(segment)
    for part in examine(segment.file, segment.size, expected, end_offset, position):
        if isinstance(part, DamagedRange):
            _report(log, segment, part)
        elif part.last_offset >= offset:
            header = part.header
            return BatchPlace(
                part.position,
                part.size_bytes,
                part.base_offset,
                part.last_offset,
                NO_TIMESTAMP if header is None else header.max_timestamp,
                NO_LEADER_EPOCH if header is None else header.leader_epoch,
            )
    return None


def _report(log: "Log", segment: Segment, part: "DamagedRange") -> None:
    first = Offset(part.first_offset)
    after = log.end_of(segment) if part.next_offset is None else Offset(part.next_offset)
    path = segment.file.path
    damage = Damage(log.topic_partition, path, part.position, part.size_bytes, first, after, "", True)
    if damage not in log.damages:
        log.damages = (*log.damages, damage)
        log.volume.tell(damage)


def note_tail(log: "Log") -> None:
    """Note where the next batch will start: a reader that is at the log end comes back for it.

    An index entry leads to some batch within 4 KB, and with small batches dozens of headers lie between that
    and the one that is wanted: 200 us for each fetch of a consumer that keeps up, instead of 5.
    """
    active = log.segments[-1]
    _note_next(log, log.log_end_offset, active, active.size)


def _note_next(log: "Log", offset: Offset, segment: Segment, position: int) -> None:
    positions = log.next_positions
    positions[offset] = (segment, position)
    if len(positions) > _NEXT_POSITIONS_MAX:
        del positions[next(iter(positions))]


def _find_noted(log: "Log", segment: Segment, offset: Offset) -> BatchPlace | None:
    """Find a batch where it was noted that it would start. Only its header tells whether it does."""
    noted, position = log.next_positions.get(offset, _NOWHERE)
    if noted is not segment:
        return None
    place = find_place(segment.file.read(position, HEADER_BYTES), 0, position)
    if place is None or not place.base_offset <= offset <= place.last_offset or place.end > segment.size:
        return None
    return place


def _result(
    log: "Log",
    file: File | None,
    position: int,
    length: int,
    aborted: tuple[AbortedRange, ...] | None,
    batch_offset: Offset | None = None,
) -> ReadResult:
    return ReadResult(
        file,
        position,
        length,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        log.log_end_offset,
        aborted,
        batch_offset,
    )


def _position_of_end(log: "Log", segment: Segment, end: Offset) -> int:
    """Return where in `segment` the batches below `end` stop."""
    if end == log.log_end_offset or (segment is not log.segments[-1] and log.end_of(segment) <= end):
        return segment.size
    known_offset, known_segment, known_position = log.end_position
    if known_offset == end and known_segment is segment:
        return known_position
    place = segment.find_batch(end)
    position = segment.size if place is None else place.position
    # A high watermark is asked for by every fetch until it moves.
    log.end_position = (end, segment, position)
    return position


def _find_aborted(
    log: "Log", segment: Segment, start: Offset, end_position: int, end: Offset
) -> tuple[AbortedRange, ...]:
    """Find the aborted transactions that reach into what is read, up to where it really ends.

    Their markers may lie in later segments.
    """
    segments = [later for later in log.segments_from(segment.base_offset) if later.has_aborted]
    if not segments:
        return ()
    upper = min(end, _offset_at(log, segment, end_position))
    found: list[AbortedRange] = []
    for later in segments:
        transactions, is_complete = find_aborted(later.aborted(), start, upper)
        found.extend([AbortedRange(aborted.producer_id, aborted.first_offset) for aborted in transactions])
        if is_complete:
            break
    return tuple(found)


def _offset_at(log: "Log", segment: Segment, position: int) -> Offset:
    """Return an offset that nothing before `position` of `segment` reaches, as exact as the index is."""
    if position < segment.size:
        offset = segment.find_offset_after(position)
        if offset is not None:
            return offset
    return log.end_of(segment)
