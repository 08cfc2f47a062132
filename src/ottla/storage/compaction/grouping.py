"""Which segments are cleaned into one: neighbours that together are no larger than one may be.

Compaction makes segments smaller. Without putting them together again a log would end as thousands of tiny
files.
"""

from collections.abc import Sequence

from ottla.model.ids import Offset
from ottla.storage.compaction.source import SourceSegment
from ottla.storage.indexes.offset_index import RELATIVE_OFFSET_MAX


def group_segments(
    segments: Sequence[SourceSegment],
    *,
    segment_bytes: int,
    segment_index_bytes: int,
    end_offset: Offset,
) -> list[list[SourceSegment]]:
    """Group segments, in order, so that each group fits one segment: its bytes, indexes and offsets.

    `end_offset` is where the last segment ends at the latest. A segment that alone is too large is a group.
    """
    groups: list[list[SourceSegment]] = []
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        next_offset = end_offset if is_last else segments[index + 1].base_offset
        if groups and _fits(groups[-1], segment, next_offset, segment_bytes, segment_index_bytes):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups


def _fits(
    group: list[SourceSegment],
    segment: SourceSegment,
    next_offset: Offset,
    segment_bytes: int,
    segment_index_bytes: int,
) -> bool:
    if sum(member.size_bytes for member in group) + segment.size_bytes > segment_bytes:
        return False
    for field in ("offset_index_bytes", "time_index_bytes"):
        members = (getattr(member, field) for member in group)
        if sum(members) + getattr(segment, field) > segment_index_bytes:
            return False
    # An empty segment adds no offset, wherever it lies. Without this one would be left every 2^31 records.
    return segment.size_bytes == 0 or next_offset - 1 - group[0].base_offset <= RELATIVE_OFFSET_MAX
