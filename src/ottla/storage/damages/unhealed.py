"""Damage that is being healed from another replica, and how readers are kept away from it.

A log with an unhealed range serves everything else. A read ends before the range. One that starts within it
is refused: the reader asks again, and soon finds what another replica had. So nobody is sent damaged bytes,
and nobody is led past records that exist elsewhere.
"""

from typing import TYPE_CHECKING, NamedTuple

from ottla.model.ids import Offset
from ottla.storage.errors import DamagedRecords

if TYPE_CHECKING:
    from ottla.storage.log import Log
    from ottla.storage.segment import Segment


class Unhealed(NamedTuple):
    """A part of the file of a segment, and the offsets that belong there."""

    base_offset: Offset
    position: int
    end: int
    first_offset: Offset
    next_offset: Offset
    # A start has put batches there that only cover the offsets.
    is_bridged: bool = False
    # It is one batch, of which nothing but the base offset is wrong: that must be `first_offset`.
    is_displaced: bool = False


def end_before_damage(log: "Log", offset: Offset, end: Offset) -> Offset:
    """Return where a read from `offset` to before `end` has to stop. Raises if it would start in damage."""
    for one in log.unhealed:
        if one.first_offset <= offset < one.next_offset:
            raise DamagedRecords(str(log.topic_partition), one.first_offset, one.next_offset)
        if offset < one.first_offset < end:
            end = one.first_offset
    return end


def position_before_damage(log: "Log", segment: "Segment", position: int, end_position: int) -> int:
    """Return where in a segment a read from `position` on has to stop."""
    for one in log.unhealed:
        if one.base_offset == segment.base_offset and position <= one.position < end_position:
            end_position = one.position
    return end_position


def is_lost(log: "Log", offset: Offset) -> bool:
    """Say whether no replica has what was at `offset`."""
    return any(one.first_offset <= offset < one.next_offset for one in log.lost)


def check_undamaged(log: "Log") -> None:
    """Raise if a log has damage that is being healed: what looks at all of it has to wait."""
    for one in log.unhealed:
        raise DamagedRecords(str(log.topic_partition), one.first_offset, one.next_offset)


def forget_from(log: "Log", offset: Offset) -> None:
    """Forget what was damaged, or checked, from `offset` on: it is cut off."""
    log.unhealed = tuple([one for one in log.unhealed if one.next_offset <= offset])
    log.lost = tuple([one for one in log.lost if one.next_offset <= offset])
    log.checked_gaps = tuple([one for one in log.checked_gaps if one[1] <= offset])
