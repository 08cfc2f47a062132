"""Gaps between the offsets of batches: which ones a log may have, and which ones may be damage.

No checksum covers the base offset of a batch. If a bit of it changes, the batch seems to lie behind a gap, or
the one after it does. Compaction leaves gaps, too, but only below the high watermark. An exact mirror has
those of its source. A gap elsewhere is checked before anybody is led past it: in a log without gaps, the
number of offsets in each batch tells where the next one has to begin (`checking`).

Gaps may be right where the settings do not tell: the topic was compacted once, or the high watermark is not
known yet after an election. So the gaps of a segment are taken for right when it has been checked: if some
of them were damage, that is known then, and kept from readers by itself (`unhealed`).
"""

from typing import TYPE_CHECKING

from ottla.model.ids import NO_OFFSET, Offset
from ottla.storage.config import LONG_MAX
from ottla.storage.damages.unhealed import is_lost
from ottla.storage.errors import DamagedRecords

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.storage.damages.checking import CheckedSegment
    from ottla.storage.log import Log
    from ottla.storage.segment import Segment


def expected_gaps_end(log: "Log", high_watermark: Offset) -> Offset:
    """Return the offset below which a gap is nothing strange, by the settings of the topic."""
    if log.config.is_mirror:
        return Offset(LONG_MAX)
    return high_watermark if log.config.is_compacted else Offset(0)


def check_gap(log: "Log", segment: "Segment", first_offset: Offset, next_offset: Offset) -> None:
    """Raise if a gap in a segment may be damage, and have that found out. `next_offset` is behind the gap."""
    if (
        log.when_damaged is None
        or next_offset <= expected_gaps_end(log, log.high_watermark)
        or _is_known(log, segment, first_offset, next_offset)
    ):
        return
    if not any(base == segment.base_offset for base, _ in log.checked_gaps):
        log.checked_gaps = (*log.checked_gaps, (segment.base_offset, NO_OFFSET))
    log.when_damaged(first_offset)
    raise DamagedRecords(str(log.topic_partition), first_offset, next_offset)


def _is_known(log: "Log", segment: "Segment", first_offset: Offset, next_offset: Offset) -> bool:
    """Say whether the segment was checked already: nothing is wrong with it, or what is wrong is known."""
    base_offset = segment.base_offset
    return (
        not segment.size
        or any(base == base_offset and next_offset <= end for base, end in log.checked_gaps)
        or any(one.base_offset == base_offset for one in log.unhealed)
        or is_lost(log, first_offset)
    )


def note_checked(log: "Log", segments: "Iterable[CheckedSegment]") -> None:
    """Take note of segments that were checked. Gaps in them that are not known as damage are right.

    Those in which nobody has met a gap are left out. If there is one tomorrow, it is damage.
    """
    ends = {one.base_offset: one.end_offset for one in segments}
    log.checked_gaps = tuple([(base, ends.get(base, end)) for base, end in log.checked_gaps])


def note_healed(log: "Log", base_offset: Offset) -> None:
    """Take note that a segment has changed: a gap in it may have been damage that is healed now."""
    log.checked_gaps = tuple([one for one in log.checked_gaps if one[0] != base_offset])
