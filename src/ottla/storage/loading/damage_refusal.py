"""Refusing to load a log that is damaged, where it must not be repaired: an operator has to decide."""

from typing import NoReturn

from ottla.model.ids import Offset
from ottla.storage.errors import DamagedLog
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.segment import Segment


def refuse_damage(request: LoadRequest, segment: Segment, end: Offset | None) -> None:
    """Raise `DamagedLog`, unless what is damaged was never synced for certain."""
    from ottla.storage.damages.examine import DamagedRange, examine

    path = segment.file.path
    gapless_to = end if end is not None and end <= request.synced else request.promised
    first: DamagedRange | None = None
    sound = 0
    expected = segment.base_offset
    for part in examine(segment.file, segment.size, segment.base_offset, end, gapless_to=gapless_to):
        if isinstance(part, DamagedRange):
            first = first or part
        else:
            sound += first is not None
            expected = Offset(part.last_offset + 1)
    if first is None:
        # Nothing is there that could not be read, so something is missing at the end.
        refuse(request, f"{path} ends at offset {expected}, but was synced up to offset {gapless_to}")
    if first.first_offset >= request.synced and request.knows_synced:
        return
    offsets = f"from offset {first.first_offset} on"
    if first.next_offset is not None:
        offsets = f"offsets {first.first_offset} to {first.next_offset - 1}"
    refuse(
        request,
        f"{first.size_bytes} bytes at position {first.position} of {path} cannot be read, {offsets}, and "
        f"{sound} valid batches follow them in this file",
    )


def refuse(request: LoadRequest, what: str) -> NoReturn:
    """Raise `DamagedLog`."""
    raise DamagedLog(f"{request.topic_partition} is damaged: {what}")
