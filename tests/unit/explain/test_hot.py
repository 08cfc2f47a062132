"""Heavy keys in a fixed amount of memory."""

import random

from ottla.explain.evidence.logs import BatchFacts, RecordFacts
from ottla.explain.hot import HeavyKeys, measure_heat
from ottla.model.ids import TopicPartition


def test_a_heavy_key_is_found_among_many() -> None:
    rng = random.Random(7)
    sketch = HeavyKeys(counters=50)
    for number in range(10_000):
        sketch.add(b"heavy" if rng.random() < 0.1 else b"%d" % number)
    key, count, error = sketch.heaviest(1)[0]
    assert key == b"heavy"
    assert count - error <= 1_100
    assert count >= 900


def record(number: int, key: bytes | None, partition: int) -> RecordFacts:
    where = TopicPartition("t", partition)
    batch = BatchFacts(where, 0, 0, 1, 70, "none", 0, 0, False, 0, -1, -1, -1, False, False)
    return RecordFacts(where, number, 0, key, b"v", (), batch)


def test_heat_is_counted_by_partition_and_key() -> None:
    heat = measure_heat("t", 2, [record(n, b"hot" if n % 4 else None, n % 2) for n in range(8)])
    assert (heat.records, heat.without_key) == (8, 2)
    assert heat.by_partition == {0: 4, 1: 4}
    assert heat.keys[0] == (b"hot", 6, 0)
    assert heat.busiest_share == 0.5
    assert heat.forecasts["4 partitions"] == 1.0
    assert heat.forecasts["the hottest key split in 4"] < 1.0
