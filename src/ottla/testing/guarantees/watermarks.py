"""What clients can see of a partition's bounds, and of a group's progress, never goes back.

A `look` asks for some of these, by key:

- `log_start_offset`, `last_stable_offset`, `high_watermark`: what ListOffsets answers;
- `committed_offset`: where the group of the copiers goes on. Copiers never commit less than before.

Looks overlap. One is held only against those that were over before it began.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from ottla.testing.guarantees.anomaly import Anomaly
from ottla.testing.guarantees.history import EventType, Operation
from ottla.testing.guarantees.indexes import Indexes
from ottla.testing.guarantees.order import known_offsets

LOG_START_OFFSET: Final = "log_start_offset"
LAST_STABLE_OFFSET: Final = "last_stable_offset"
HIGH_WATERMARK: Final = "high_watermark"
COMMITTED_OFFSET: Final = "committed_offset"


def find_watermarks_going_back(indexes: Indexes) -> Iterator[Anomaly]:
    """A bound that was higher before."""
    highest: dict[tuple[str, int], int] = {}
    looks = [one for one in indexes.operations if one.looks and one.type is EventType.OK]
    for look, ended in _with_those_before(looks, looks):
        for one in ended:
            for where, offset in _bounds(one):
                highest[where] = max(highest.get(where, offset), offset)
        for (bound, key), offset in _bounds(look):
            before = highest.get((bound, key), offset)
            if offset < before:
                detail = f"operation {look.number} saw {offset}, after {before}"
                yield Anomaly("nonmonotonic-" + bound.replace("_", "-"), key, detail)


def find_watermarks_behind(indexes: Indexes) -> Iterator[Anomaly]:
    """A high watermark below an offset that was acknowledged, or a stable offset below one that was read."""
    known: dict[str, dict[int, int]] = defaultdict(dict)
    looks = [one for one in indexes.operations if one.looks and one.type is EventType.OK]
    for look, ended in _with_those_before(looks, indexes.operations):
        for one in ended:
            for key, offset in known_offsets(one):
                known[HIGH_WATERMARK][key] = max(known[HIGH_WATERMARK].get(key, -1), offset)
            for polled in one.polls:
                for key, records in polled.records.items():
                    highest = max((offset for offset, _ in records), default=-1)
                    known[LAST_STABLE_OFFSET][key] = max(known[LAST_STABLE_OFFSET].get(key, -1), highest)
        for (bound, key), offset in _bounds(look):
            if offset <= known[bound].get(key, -1):
                detail = f"operation {look.number} saw {offset}, but {known[bound][key]} was there before"
                yield Anomaly(bound.replace("_", "-") + "-behind", key, detail)


def _with_those_before(
    looks: Sequence[Operation], others: Sequence[Operation]
) -> Iterator[tuple[Operation, list[Operation]]]:
    """Yield each look, in order of time, with those that have ended since the look before and before it."""
    ends = sorted(others, key=lambda one: one.completed_ns)
    place = 0
    for look in sorted(looks, key=lambda one: one.invoked_ns):
        begin = place
        while place < len(ends) and ends[place].completed_ns < look.invoked_ns:
            place += 1
        yield look, ends[begin:place]


def _bounds(look: Operation) -> Iterator[tuple[tuple[str, int], int]]:
    for looked in look.looks:
        for bound, offsets in looked.bounds.items():
            for key, offset in offsets.items():
                yield (bound, key), offset
