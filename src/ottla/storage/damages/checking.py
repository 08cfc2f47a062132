"""Looking for damage in the segments of a log while it is in use, beside it.

Every batch is read, and its checksum verified. Two fields are not covered by it: the base offset has to fit
those of the neighbours, and the leader epoch has to be the one that the log knows for this offset.

How many offsets a batch has is covered. If all batches of a segment together have as many as there are from
its beginning to its end, there are no gaps in it. Then it is certain where each batch begins, and a base
offset that is wrong can be put right without another replica.

A round looks only at what was synced. If somebody has met something strange, what was written since then is
looked at, too: the kernel writes by itself, and a disk may have lost bits before anybody asked for a sync.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from ottla.model.ids import Offset
from ottla.records.batch import ATTRIBUTES_OFFSET, HEADER_BYTES, LOG_OVERHEAD, MAGIC
from ottla.records.errors import CorruptBatch, RecordsError
from ottla.storage.compaction.source import (
    CHECKSUM_DIFFERS,
    MESSAGE_BYTES_MIN,
    cut_off,
    read_message,
    read_whole_batch,
)
from ottla.storage.damages.examine import DamagedRange, SoundBatch, examine
from ottla.storage.damages.unhealed import Unhealed
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.world.disk import Disk, File

if TYPE_CHECKING:
    from ottla.storage.log import Log

_NO_EPOCH: Final = -1
# The header of a batch up to its last offset.
_FRAME: Final = Struct(">qiibIhi")
_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD


class CheckedSegment(NamedTuple):
    """A segment to look at: which of its bytes, and the offsets that they cover."""

    base_offset: Offset
    path: str
    size: int
    end_offset: Offset


class CheckTask(NamedTuple):
    """All that a check of a log goes by."""

    segments: tuple[CheckedSegment, ...]
    epochs: LeaderEpochs
    truncations: int


def plan_check(log: "Log", offset: Offset | None = None) -> CheckTask:
    """Take a picture of what a log has synced, or of the whole segment that holds `offset`."""
    end_offset = log.recovery_point if offset is None else log.log_end_offset
    segments = [
        CheckedSegment(segment.base_offset, segment.file.path, segment.size, log.end_of(segment))
        for segment in log.segments
        if segment.size and log.end_of(segment) <= end_offset
    ]
    active = log.active_segment
    if active.size and log.log_end_offset > end_offset > active.base_offset:
        place = active.find_batch(end_offset)
        size = active.size if place is None else place.position
        segments.append(CheckedSegment(active.base_offset, active.file.path, size, end_offset))
    if offset is not None:
        segments = [one for one in segments if one.base_offset <= offset < one.end_offset]
    return CheckTask(tuple(segments), LeaderEpochs(log.leader_epochs.entries), log.truncations)


def check_segment(
    disk: Disk, segment: CheckedSegment, epochs: LeaderEpochs
) -> Iterator[int | tuple[Unhealed, ...]]:
    """Read a segment. Gives how many bytes were read with each step, and at last what is damaged."""
    file = disk.open(segment.path)
    try:
        try:
            yield from _check_batches(file, segment, epochs)
        except (RecordsError, _Wrong):
            parts = examine(file, segment.size, segment.base_offset, segment.end_offset)
            yield tuple(_find_damage(file, segment, parts, epochs))
        else:
            yield ()
    finally:
        file.close()


class _Wrong(Exception):
    """A batch cannot be where it is."""


def _check_batches(file: File, segment: CheckedSegment, epochs: LeaderEpochs) -> Iterator[int]:
    """Check all batches, and give how many bytes they have, chunk by chunk.

    Every batch of a node comes by here again and again, so no view of it is made.
    """
    position, expected = 0, int(segment.base_offset)
    while position < segment.size:
        data = read_whole_batch(file, position, segment.size)
        view, size, start = memoryview(data), len(data), 0
        while size - start > MESSAGE_BYTES_MIN:
            base_offset, length, epoch, magic, crc, _, last_offset_delta = _FRAME.unpack_from(data, start)
            end = start + LOG_OVERHEAD + length
            if end > size:
                break
            if magic == MAGIC and length >= _LENGTH_MIN:
                if crc32c(view[start + ATTRIBUTES_OFFSET : end]) != crc:
                    raise CorruptBatch(position + start, CHECKSUM_DIFFERS)
                last_offset = base_offset + last_offset_delta
                is_in_order = expected <= base_offset <= last_offset < segment.end_offset
                if not (is_in_order and _is_epoch_right(epoch, base_offset, epochs)):
                    raise _Wrong
                expected = last_offset + 1
            else:
                read_message(view, start, end, position)
            start = end
        if start == 0:
            raise cut_off(position, data)
        yield start
        position += start


def _is_epoch_right(leader_epoch: int, base_offset: int, epochs: LeaderEpochs) -> bool:
    known = epochs.epoch_for(Offset(base_offset))
    return leader_epoch == known or _NO_EPOCH in (leader_epoch, known)


def _find_damage(
    file: File, segment: CheckedSegment, parts: Iterator[SoundBatch | DamagedRange], epochs: LeaderEpochs
) -> list[Unhealed]:
    found: list[Unhealed] = []
    expected, is_gapless = segment.base_offset, True
    for part in parts:
        first = Offset(part.first_offset if isinstance(part, DamagedRange) else part.base_offset)
        if isinstance(part, DamagedRange):
            after = segment.end_offset if part.next_offset is None else Offset(part.next_offset)
            damaged = Unhealed(segment.base_offset, part.position, part.end, first, after)
            found.append(damaged)
            is_gapless = is_gapless and _is_displaced(file, damaged, epochs)
        else:
            after = Offset(part.last_offset + 1)
            if part.header is None:
                # How many offsets a message of an old format has is not looked at.
                is_gapless = False
            elif not _is_epoch_right(part.header.leader_epoch, part.base_offset, epochs):
                found.append(Unhealed(segment.base_offset, part.position, part.end, first, after))
                is_gapless = False
        is_gapless = is_gapless and first == expected
        expected = after
    if is_gapless and expected == segment.end_offset:
        return [one._replace(is_displaced=True) for one in found]
    return found


def _is_displaced(file: File, damaged: Unhealed, epochs: LeaderEpochs) -> bool:
    """Say whether nothing but the base offset is wrong with a batch that has just as many offsets."""
    position, size_bytes = damaged.position, damaged.end - damaged.position
    head = file.read(position, min(HEADER_BYTES, size_bytes))
    if len(head) < HEADER_BYTES:
        return False
    _, length, epoch, magic, crc, _, last_offset_delta = _FRAME.unpack_from(head)
    return (
        magic == MAGIC
        and size_bytes == LOG_OVERHEAD + length
        and damaged.next_offset == damaged.first_offset + last_offset_delta + 1
        and _is_epoch_right(epoch, damaged.first_offset, epochs)
        and crc32c(file.read(position + ATTRIBUTES_OFFSET, size_bytes - ATTRIBUTES_OFFSET)) == crc
    )


def is_same_segment(log: "Log", found: Unhealed, segments: Sequence[CheckedSegment]) -> bool:
    """Say whether a segment that was checked is still part of the log, and not written again since."""
    paths = {one.base_offset: one.path for one in segments}
    return any(
        one.base_offset == found.base_offset and one.file.path == paths.get(found.base_offset)
        for one in log.segments
    )
