"""Records go where Kafka's own clients would put them."""

import random
from typing import Any

import pytest

from ottla.client.producer.partitioner import (
    CustomPartitioner,
    DefaultPartitioner,
    RoundRobinPartitioner,
    TopicPartitions,
    murmur2,
)

# As Kafka's own test of its hash has them.
KNOWN_HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def _among(partitions: int = 4, queues: dict[int, int] | None = None) -> TopicPartitions:
    return TopicPartitions("t", partitions, range(partitions), lambda number: (queues or {}).get(number, 0))


@pytest.mark.parametrize(("key", "signed"), KNOWN_HASHES.items())
def test_the_hash_is_that_of_the_java_client(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


@pytest.mark.parametrize("key", [b"customer-7", b"long " * 100])
def test_a_key_stays_on_its_partition(key: bytes) -> None:
    partitioner = DefaultPartitioner(1000)
    chosen = {partitioner.choose(_among(), key, b"v") for _ in range(10)}
    assert chosen == {(murmur2(key) & 0x7FFFFFFF) % 4}
    assert partitioner.reason(key) == "hash of the key"


def _spread(
    partitioner: DefaultPartitioner, among: TopicPartitions, records: int, key: bytes | None
) -> list[int]:
    chosen = []
    for _ in range(records):
        chosen.append(partitioner.choose(among, key, b"v"))
        partitioner.appended("t", key, 100)
    return chosen


def test_records_without_a_key_stick_until_a_batch_is_full() -> None:
    chosen = _spread(DefaultPartitioner(250, random.Random(1)), _among(), 6, None)
    assert len(set(chosen[:3])) == 1
    assert len(set(chosen[3:])) == 1


def test_records_with_a_key_move_no_sticky_partition() -> None:
    partitioner = DefaultPartitioner(250, random.Random(1))
    stuck = partitioner.choose(_among(), None, b"v")
    _spread(partitioner, _among(), 10, b"key")
    assert partitioner.choose(_among(), None, b"v") == stuck
    assert partitioner._sticky["t"][1] == 0


def test_keys_can_be_ignored() -> None:
    chosen = _spread(DefaultPartitioner(100, random.Random(1), ignore_keys=True), _among(), 100, b"the same")
    assert set(chosen) == {0, 1, 2, 3}


def test_a_partition_without_a_leader_is_left_out() -> None:
    among = TopicPartitions("t", 3, [2], lambda _: 0)
    assert set(_spread(DefaultPartitioner(1), among, 20, None)) == {2}


def test_a_partition_whose_batches_pile_up_gets_less() -> None:
    # The chances are 1, 10 and 10 of 21: as Kafka's, longest queue + 1 - own queue.
    among = _among(3, {0: 9})
    adaptive = _spread(DefaultPartitioner(1, random.Random(1)), among, 2100, None)
    assert 50 < adaptive.count(0) < 160
    assert 900 < adaptive.count(1) < 1100
    even = _spread(DefaultPartitioner(1, random.Random(1), adaptive=False), among, 2100, None)
    assert 600 < even.count(0) < 800


def test_a_topic_that_lost_partitions_is_not_stuck_to_one_of_them() -> None:
    partitioner = DefaultPartitioner(10_000, random.Random(1))
    while partitioner.choose(_among(50), None, b"v") < 1:
        partitioner = DefaultPartitioner(10_000, random.Random())
    assert partitioner.choose(_among(1), None, b"v") == 0


def test_round_robin_takes_one_after_the_other() -> None:
    partitioner = RoundRobinPartitioner()
    assert [partitioner.choose(_among(3), b"k", b"v") for _ in range(4)] == [0, 1, 2, 0]


def test_a_custom_partitioner_is_held_to_the_partitions_there_are() -> None:
    assert CustomPartitioner(lambda *_: 3).choose(_among(), None, b"v") == 3
    with pytest.raises(ValueError, match="chose 4, but 't' has partitions 0 to 3"):
        CustomPartitioner(lambda *_: 4).choose(_among(), None, b"v")


class _Fixed:
    """Chance that is none."""

    def __init__(self, drawn: int) -> None:
        self.drawn = drawn
        self.bounds: list[int] = []

    def randrange(self, stop: int) -> int:
        self.bounds.append(stop)
        return self.drawn


@pytest.mark.parametrize(("drawn", "partition"), [(0, 0), (2, 0), (3, 1), (4, 2), (6, 2), (7, 3), (8, 3)])
def test_the_chance_of_a_partition_is_what_its_queue_lacks_to_more_than_the_longest(
    drawn: int, partition: int
) -> None:
    rng: Any = _Fixed(drawn)
    partitioner = DefaultPartitioner(100, rng=rng)
    among = _among(4, {0: 0, 1: 2, 2: 0, 3: 1})
    assert partitioner.choose(among, None, b"v") == partition
    assert rng.bounds == [9]
