"""Which partition a record goes to, and why.

Records with a key go where Kafka's own clients put them: murmur2 of the key, modulo the partitions. Records
without one stick to a partition until it has taken a batch's worth of bytes, then move to another: full
batches cost less than many small ones.
"""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash by which Kafka's Java client spreads keys, as an unsigned number."""
    length = len(data)
    value = 0x9747B28C ^ length
    whole = length & ~3
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        value = (value * _M & _MASK) ^ k
    rest = data[whole:]
    if rest:
        value = (value ^ int.from_bytes(rest, "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15


class Choice(NamedTuple):
    """A partition and the reason for it, for those who watch the journey."""

    partition: int
    reason: str


class Candidates(NamedTuple):
    """What a partitioner chooses for, and from."""

    topic: str
    key: bytes | None
    value: bytes | None
    partitions: int
    available: Sequence[int]
    """The partitions that have a leader."""


class Partitioner(Protocol):
    """Chooses partitions."""

    def choose(self, record: Candidates) -> Choice:
        """Choose the partition of one record."""

    def appended(self, topic: str, partition: int, size_bytes: int) -> None:
        """Take note that a record without a key went to a partition."""


class DefaultPartitioner:
    """By the key's hash, or sticky where there is no key."""

    def __init__(self, batch_bytes: int, rng: random.Random | None = None) -> None:
        self._batch_bytes = batch_bytes
        self._rng = rng or random.Random()
        self._sticky: dict[str, tuple[int, int]] = {}

    def choose(self, record: Candidates) -> Choice:
        """Hash the key, or stay where the last record without a key went."""
        if record.key is not None:
            return Choice((murmur2(record.key) & 0x7FFFFFFF) % record.partitions, "hash of the key")
        partition, size_bytes = self._sticky.get(record.topic, (-1, 0))
        if not 0 <= partition < record.partitions or size_bytes >= self._batch_bytes:
            partition = self._rng.choice(record.available or range(record.partitions))
            self._sticky[record.topic] = (partition, 0)
            return Choice(partition, "no key: the next sticky partition")
        return Choice(partition, "no key: the same sticky partition")

    def appended(self, topic: str, partition: int, size_bytes: int) -> None:
        """Count the bytes that stuck."""
        known, total = self._sticky.get(topic, (partition, 0))
        if known == partition:
            self._sticky[topic] = (partition, total + size_bytes)


class RoundRobinPartitioner:
    """One after the other, whatever the key."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def choose(self, record: Candidates) -> Choice:
        """Take the next partition that has a leader."""
        turn = self._next.get(record.topic, 0)
        self._next[record.topic] = turn + 1
        among = record.available or range(record.partitions)
        return Choice(among[turn % len(among)], "round robin")

    def appended(self, topic: str, partition: int, size_bytes: int) -> None:
        """Nothing to count."""


class CustomPartitioner:
    """A function of the user's: (topic, key, value, number of partitions) -> partition."""

    def __init__(self, function: Callable[[str, bytes | None, bytes | None, int], int]) -> None:
        self._function = function

    def choose(self, record: Candidates) -> Choice:
        """Ask the function, and hold it to the partitions there are."""
        partition = self._function(record.topic, record.key, record.value, record.partitions)
        if not 0 <= partition < record.partitions:
            raise ValueError(
                f"the partitioner chose {partition}: {record.topic!r} has 0 to {record.partitions - 1}"
            )
        return Choice(partition, "custom partitioner")

    def appended(self, topic: str, partition: int, size_bytes: int) -> None:
        """Nothing to count."""
