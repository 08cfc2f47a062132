"""How long things took, counted in powers of two: cheap enough for whatever happens often."""

from typing import Final

BUCKETS: Final = 32


class Durations:
    """A histogram of microseconds. Bucket k counts what took below 2^k, and not below 2^(k-1)."""

    __slots__ = ("buckets", "total_ns")

    def __init__(self) -> None:
        self.buckets = [0] * BUCKETS
        self.total_ns = 0

    def add(self, took_ns: int) -> None:
        """Count one."""
        self.total_ns += took_ns
        bucket = (took_ns // 1000).bit_length()
        self.buckets[bucket if bucket < BUCKETS else BUCKETS - 1] += 1
