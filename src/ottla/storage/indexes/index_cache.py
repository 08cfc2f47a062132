"""The index files that were looked at lately, in memory up to a bound.

Apache Kafka maps every index of every segment into memory. With a hundred thousand partitions that is more
maps than a process may have, so Ottla reads an index file in one go when it is needed and forgets the one
that was not used for the longest time. An index of a full segment of 1 GiB has 2 MiB.
"""

from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.indexes.time_index import TimeIndex


class Indexes:
    """Both indexes of a segment, as they are in its files."""

    __slots__ = ("offsets", "times")

    def __init__(self, offsets: OffsetIndex, times: TimeIndex) -> None:
        self.offsets = offsets
        self.times = times

    @property
    def size_bytes(self) -> int:
        return len(self.offsets.entries) + len(self.times.entries)


class IndexCache:
    """Indexes by segment, least recently used first."""

    __slots__ = ("_by_segment", "_bytes_max", "size_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._by_segment: dict[object, tuple[Indexes, int]] = {}
        self._bytes_max = bytes_max
        self.size_bytes = 0

    def find(self, segment: object) -> Indexes | None:
        """Return the indexes of a segment if they are in memory."""
        found = self._by_segment.pop(segment, None)
        if found is None:
            return None
        self._by_segment[segment] = found
        return found[0]

    def put(self, segment: object, indexes: Indexes) -> None:
        """Keep the indexes of a segment, and make room for them. Also called when they have grown."""
        self.forget(segment)
        size_bytes = indexes.size_bytes
        self._by_segment[segment] = (indexes, size_bytes)
        self.size_bytes += size_bytes
        while self.size_bytes > self._bytes_max and len(self._by_segment) > 1:
            self.forget(next(iter(self._by_segment)))

    def forget(self, segment: object) -> None:
        """Drop the indexes of a segment: its files have changed, or are gone."""
        found = self._by_segment.pop(segment, None)
        if found is not None:
            self.size_bytes -= found[1]
