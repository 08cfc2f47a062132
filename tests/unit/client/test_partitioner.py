"""Records go where Kafka's own clients would put them."""

import random

import pytest

from ottla.client.producer.partitioner import (
    Candidates,
    CustomPartitioner,
    DefaultPartitioner,
    RoundRobinPartitioner,
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


def _record(key: bytes | None, partitions: int = 4) -> Candidates:
    return Candidates("t", key, b"v", partitions, range(partitions))


@pytest.mark.parametrize(("key", "signed"), KNOWN_HASHES.items())
def test_the_hash_is_that_of_the_java_client(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_a_key_stays_on_its_partition() -> None:
    partitioner = DefaultPartitioner(1000)
    chosen = {partitioner.choose(_record(b"customer-7")).partition for _ in range(10)}
    assert len(chosen) == 1


def test_records_without_a_key_stick_until_a_batch_is_full() -> None:
    partitioner = DefaultPartitioner(250, random.Random(1))
    chosen = []
    for _ in range(6):
        partition = partitioner.choose(_record(None)).partition
        partitioner.appended("t", partition, 100)
        chosen.append(partition)
    assert len(set(chosen[:3])) == 1
    assert len(set(chosen[3:])) == 1


def test_a_partition_without_a_leader_is_left_out() -> None:
    partitioner = DefaultPartitioner(1)
    for _ in range(20):
        chosen = partitioner.choose(Candidates("t", None, b"v", 3, [2])).partition
        partitioner.appended("t", chosen, 10)
        assert chosen == 2


def test_round_robin_takes_one_after_the_other() -> None:
    partitioner = RoundRobinPartitioner()
    assert [partitioner.choose(_record(b"k", 3)).partition for _ in range(4)] == [0, 1, 2, 0]


def test_a_custom_partitioner_is_held_to_the_partitions_there_are() -> None:
    assert CustomPartitioner(lambda *_: 3).choose(_record(None)).partition == 3
    with pytest.raises(ValueError, match="chose 4: 't' has 0 to 3"):
        CustomPartitioner(lambda *_: 4).choose(_record(None))
