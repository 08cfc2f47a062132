"""Making the indexes of a segment again from the headers of its batches.

For an index that turns out to be damaged while it is used. Checksums are not verified, and nothing else that
recovery derives is touched: see `recovery` for a segment that nobody vouches for.
"""

from collections.abc import Iterable
from typing import Final

from ottla.model.ids import NO_TIMESTAMP, FilePosition, Offset
from ottla.storage.indexes.index_cache import Indexes
from ottla.storage.indexes.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from ottla.storage.indexes.time_index import TimeIndex
from ottla.storage.scan import BatchPlace

# The default of `index.interval.bytes`. Another distance is just as right.
_INTERVAL_BYTES: Final = 4096


def index_batches(base_offset: Offset, places: Iterable[BatchPlace]) -> Indexes:
    """Return the indexes of a segment with these batches, as they are when it is complete."""
    indexes = Indexes(OffsetIndex(base_offset), TimeIndex(base_offset))
    largest_timestamp, largest_offset = NO_TIMESTAMP, base_offset
    last_position, last_offset, offset_max = 0, base_offset - 1, base_offset + RELATIVE_OFFSET_MAX
    for place in places:
        if not last_offset < place.last_offset <= offset_max:
            # Its base offset is damaged, or that of a batch before it. It is found without an entry.
            continue
        last_offset = place.last_offset
        if place.max_timestamp > largest_timestamp:
            largest_timestamp, largest_offset = place.max_timestamp, Offset(place.last_offset)
        if place.position - last_position > _INTERVAL_BYTES:
            indexes.offsets.append(Offset(place.last_offset), FilePosition(place.position))
            indexes.times.maybe_append(largest_timestamp, largest_offset)
            last_position = place.position
    indexes.times.maybe_append(largest_timestamp, largest_offset)
    return indexes
