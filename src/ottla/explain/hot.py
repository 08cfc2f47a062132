"""Which keys and partitions carry the load, and what other numbers of partitions would do to it.

It is counted while reading, with a space-saving sketch: a fixed number of counters, of which the smallest is
given to a new key together with its count. So a heavy key is never missed, and a count is too high by a known
number at most.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.explain.causes.order import PARTITIONERS
from ottla.explain.evidence.logs import RecordFacts

COUNTERS: Final = 1_000


class HeavyKeys:
    """Counts keys in a fixed amount of memory."""

    def __init__(self, counters: int = COUNTERS) -> None:
        self._counters = counters
        self._counts: dict[bytes, tuple[int, int]] = {}
        self.seen = 0

    def add(self, key: bytes) -> None:
        """Count a key."""
        self.seen += 1
        known = self._counts.get(key)
        if known is not None:
            self._counts[key] = (known[0] + 1, known[1])
        elif len(self._counts) < self._counters:
            self._counts[key] = (1, 0)
        else:
            smallest = min(self._counts, key=lambda one: self._counts[one][0])
            count, _ = self._counts.pop(smallest)
            self._counts[key] = (count + 1, count)

    def heaviest(self, number: int) -> list[tuple[bytes, int, int]]:
        """Return keys with their counts, and by how much a count may be too high."""
        chosen = sorted(self._counts.items(), key=lambda item: -item[1][0])[:number]
        return [(key, count, error) for key, (count, error) in chosen]


@dataclass(frozen=True, slots=True)
class Heat:
    """How a topic's load is spread."""

    topic: str
    records: int
    without_key: int
    by_partition: Mapping[int, int]
    keys: Sequence[tuple[bytes, int, int]]
    forecasts: Mapping[str, float]
    """The share of the busiest partition, by what would be changed."""

    @property
    def busiest_share(self) -> float:
        """Return the share of the busiest partition."""
        return max(self.by_partition.values(), default=0) / max(self.records, 1)


def measure_heat(topic: str, partitions: int, records: Iterable[RecordFacts]) -> Heat:
    """Count records by key and by partition."""
    by_partition = dict.fromkeys(range(partitions), 0)
    keys = HeavyKeys()
    every: list[bytes] = []
    without_key = 0
    for record in records:
        by_partition[record.where.partition] = by_partition.get(record.where.partition, 0) + 1
        if record.key is None:
            without_key += 1
        else:
            keys.add(record.key)
            every.append(record.key)
    forecasts = {
        f"{count} partitions": _busiest(every, count)
        for count in sorted({partitions * 2, partitions * 4, partitions + 1})
    }
    if keys.seen:
        forecasts["the hottest key split in 4"] = _busiest_with_split(
            every, partitions, keys.heaviest(1)[0][0]
        )
    return Heat(topic, sum(by_partition.values()), without_key, by_partition, keys.heaviest(10), forecasts)


def _busiest(keys: Sequence[bytes], partitions: int) -> float:
    """Return the share of the busiest partition if keys were placed among this many, as Java clients do."""
    place = next(iter(PARTITIONERS.values()))
    counts = [0] * partitions
    for key in keys:
        counts[place(key, partitions)] += 1
    return max(counts) / max(len(keys), 1)


def _busiest_with_split(keys: Sequence[bytes], partitions: int, hottest: bytes) -> float:
    finer = [b"%s#%d" % (key, number % 4) if key == hottest else key for number, key in enumerate(keys)]
    return _busiest(finer, partitions)
