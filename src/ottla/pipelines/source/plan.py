"""How much to read next, and in what pieces. Pure: numbers in, numbers out."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from ottla.model.ids import TopicPartition

Offsets = dict[TopicPartition, int]


class OffsetRange(NamedTuple):
    """A piece of one partition: from `start_offset` to before `stop_offset`."""

    where: TopicPartition
    start_offset: int
    stop_offset: int

    @property
    def size(self) -> int:
        """Return how many offsets it spans, which is at least as many as it has records."""
        return self.stop_offset - self.start_offset


# No topic has such names.
_BEGAN_AT: Final = "#start"
_IS_BEGINNING: Final = "#first"
_FAULT: Final = "#fault"


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """Return offsets as Spark's Kafka source writes them into checkpoints: `{"topic": {"0": 23}}`."""
    by_topic: dict[str, Any] = {}
    for where in sorted(offsets):
        by_topic.setdefault(where.topic, {})[str(where.partition)] = offsets[where]
    return by_topic


def from_json(content: Mapping[str, Any]) -> Offsets:
    """Read offsets as `to_json` writes them."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in content.items()
        if not topic.startswith("#")
        for partition, offset in partitions.items()
    }


def beginning_to_json(offsets: Mapping[TopicPartition, int], fault: str | None = None) -> dict[str, Any]:
    """Return where a new query begins, or why that is unknown.

    Spark asks for it again when a query that was killed in its first batch starts again, and topics may have
    more partitions by then. So the first batch carries where it began, beside where it ends, and that counts.
    """
    return {**to_json(offsets), _IS_BEGINNING: 1, **({} if fault is None else {_FAULT: fault})}


def is_beginning(content: Mapping[str, Any]) -> bool:
    """Say whether these offsets are where a query begins, and no batch's end."""
    return _IS_BEGINNING in content


def fault_of(content: Mapping[str, Any]) -> str | None:
    """Return why it is unknown where a query begins."""
    found = content.get(_FAULT)
    return None if found is None else str(found)


def first_end_to_json(
    begin: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> dict[str, Any]:
    """Return the end of a first batch, with where the batch begins."""
    return {**to_json(end), _BEGAN_AT: to_json(begin)}


def start_of(start: Mapping[str, Any], end: Mapping[str, Any]) -> Offsets:
    """Return where a batch begins: the first one says so itself."""
    if is_beginning(end):
        return from_json(end)
    return from_json(end.get(_BEGAN_AT, start))


def available(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> int:
    """Return how many offsets there are to read."""
    return sum(max(0, stop - start.get(where, stop)) for where, stop in latest.items())


def admit(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], offsets_max: int
) -> Offsets:
    """Return where to stop so that about `offsets_max` offsets are read, each partition by its share.

    A partition that has anything gives at least one, so that none is starved by a large one.
    """
    total = available(start, latest)
    if total <= offsets_max:
        return dict(latest)
    stops: Offsets = {}
    for where, stop in latest.items():
        first = start.get(where, stop)
        size = stop - first
        share = max(1, size * offsets_max // total) if size > 0 else 0
        stops[where] = min(stop, first + share) if size > 0 else stop
    return stops


def ranges_between(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> list[OffsetRange]:
    """Return what is to be read, one range for each partition that has something, in a fixed order."""
    return [
        OffsetRange(where, start[where], end[where])
        for where in sorted(end)
        if where in start and start[where] < end[where]
    ]


def split(
    ranges: list[OffsetRange], partitions_min: int = 0, records_max: int | None = None
) -> list[OffsetRange]:
    """Cut ranges until there are about `partitions_min`, and none spans more than `records_max` offsets.

    The same ranges are always cut in the same way: a batch that is read again must fall into the same pieces.
    """
    if records_max is not None:
        ranges = [piece for item in ranges for piece in _cut(item, -(-item.size // records_max))]
    total = sum(item.size for item in ranges)
    if not total or len(ranges) >= partitions_min:
        return ranges
    return [piece for item in ranges for piece in _cut(item, round(item.size / total * partitions_min))]


def _cut(whole: OffsetRange, pieces: int) -> list[OffsetRange]:
    pieces = max(1, min(pieces, whole.size))
    edges = [whole.start_offset + whole.size * number // pieces for number in range(pieces + 1)]
    return [OffsetRange(whole.where, start, stop) for start, stop in pairwise(edges)]
