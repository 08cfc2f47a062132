"""Which partition a record goes to, and why.

Records with a key go where Kafka's own clients put them: murmur2 of the key, modulo the partitions. Records
without one stick to a partition until it has taken a batch's worth of bytes, then move to another: full
batches cost less than many small ones. The next one is drawn by chance, and a partition whose batches pile up
gets a smaller chance (KIP-794), so that a slow broker takes less.
"""

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from struct import unpack_from
from typing import NamedTuple, Protocol

from ottla.client import surroundings

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995
# Hashing 16 bytes takes 1.6 us, finding the hash of a key that came before 0.1 us. Only short keys are kept:
# a producer of large ones must not hold on to them.
_KEPT_KEYS = 8192
_KEPT_KEY_BYTES_MAX = 64


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash by which Kafka's Java client spreads keys, as an unsigned number."""
    length = len(data)
    value = 0x9747B28C ^ length
    words = length >> 2
    for word in unpack_from(f"<{words}I", data):
        k = word * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        value = (value * _M & _MASK) ^ k
    rest = data[words << 2 :]
    if rest:
        value = (value ^ int.from_bytes(rest, "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15


_kept_hash = lru_cache(_KEPT_KEYS)(murmur2)


def partition_of_key(key: bytes, partitions: int) -> int:
    """Return where Kafka's own clients put a record with this key."""
    hashed = _kept_hash(key) if len(key) <= _KEPT_KEY_BYTES_MAX else murmur2(key)
    return (hashed & 0x7FFFFFFF) % partitions


class TopicPartitions(NamedTuple):
    """What a partitioner chooses from."""

    topic: str
    number: int
    available: Sequence[int]
    """The partitions that have a leader."""
    queued_batches: Callable[[int], int]
    """How many batches wait for a partition."""


class Partitioner(Protocol):
    """Chooses partitions."""

    def choose(self, among: TopicPartitions, key: bytes | None, value: bytes | None, /) -> int:
        """Choose the partition of one record."""

    def appended(self, topic: str, key: bytes | None, size_bytes: int, /) -> None:
        """Take note of the bytes of a record that went where `choose` said."""

    def reason(self, key: bytes | None, /) -> str:
        """Say why the last choice was made, for those who watch the journey."""


class DefaultPartitioner:
    """By the key's hash, or sticky where there is no key.

    Deviation: Kafka waits for the open batch to be full before it leaves a partition, for up to twice the
    bytes. Here the bytes decide, for the batch is full by then unless it was sent before.
    """

    def __init__(
        self,
        batch_bytes: int,
        rng: random.Random | None = None,
        *,
        adaptive: bool = True,
        ignore_keys: bool = False,
    ) -> None:
        self._batch_bytes = batch_bytes
        self._rng = rng or surroundings.current.random
        self._adaptive = adaptive
        self._ignore_keys = ignore_keys
        self._sticky: dict[str, list[int]] = {}
        """By topic: the partition, and the bytes that stuck to it."""

    def choose(self, among: TopicPartitions, key: bytes | None, _value: bytes | None) -> int:
        """Hash the key, or stay where the last record without a key went."""
        if key is not None and not self._ignore_keys:
            return partition_of_key(key, among.number)
        sticky = self._sticky.get(among.topic)
        if sticky is None or sticky[1] >= self._batch_bytes or sticky[0] >= among.number:
            sticky = self._sticky[among.topic] = [self._draw(among), 0]
        return sticky[0]

    def appended(self, topic: str, key: bytes | None, size_bytes: int) -> None:
        """Count the bytes that stuck."""
        if key is None or self._ignore_keys:
            self._sticky[topic][1] += size_bytes

    def reason(self, key: bytes | None) -> str:
        """Say why."""
        by_key = key is not None and not self._ignore_keys
        return "hash of the key" if by_key else "no key: the sticky partition"

    def _draw(self, among: TopicPartitions) -> int:
        """Draw the next partition; the longer its queue is, the smaller its chance."""
        partitions = among.available or range(among.number)
        if not self._adaptive or len(partitions) == 1:
            return self._rng.choice(partitions)
        queues = [among.queued_batches(partition) for partition in partitions]
        longest = max(queues)
        chances = list(accumulate(longest + 1 - queue for queue in queues))
        return partitions[bisect_right(chances, self._rng.randrange(chances[-1]))]


class RoundRobinPartitioner:
    """One after the other, whatever the key."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def choose(self, among: TopicPartitions, _key: bytes | None, _value: bytes | None) -> int:
        """Take the next partition that has a leader."""
        turn = self._next.get(among.topic, 0)
        self._next[among.topic] = turn + 1
        partitions = among.available or range(among.number)
        return partitions[turn % len(partitions)]

    def appended(self, _topic: str, _key: bytes | None, _size_bytes: int) -> None:
        """Nothing to count."""

    def reason(self, _key: bytes | None) -> str:
        """Say why."""
        return "round robin"


class CustomPartitioner:
    """A function of the user's: (topic, key, value, number of partitions) -> partition."""

    def __init__(self, function: Callable[[str, bytes | None, bytes | None, int], int]) -> None:
        self._function = function

    def choose(self, among: TopicPartitions, key: bytes | None, value: bytes | None) -> int:
        """Ask the function, and hold it to the partitions there are."""
        partition = self._function(among.topic, key, value, among.number)
        if not 0 <= partition < among.number:
            raise ValueError(
                f"the partitioner chose {partition}, but {among.topic!r} has partitions 0 to "
                f"{among.number - 1}"
            )
        return partition

    def appended(self, _topic: str, _key: bytes | None, _size_bytes: int) -> None:
        """Nothing to count."""

    def reason(self, _key: bytes | None) -> str:
        """Say why."""
        return "custom partitioner"
