"""Limits on replication: how fast replicas that are not in sync may be sent and copied.

They keep a reassignment from taking all of the network. A topic names the replicas that are limited, and a
broker the bytes per second, for what it sends as a leader and for what it copies as a follower. Replicas that
are in sync are never held back, but all bytes of limited replicas count.
"""

from collections.abc import Collection

from ottla.broker.limits.rate import Rate

ALL_REPLICAS = "*"


class Throttle:
    """One direction: what is sent, or what is copied."""

    def __init__(self, samples_max: int, sample_ms: int) -> None:
        self._rate = Rate(samples_max, sample_ms)
        self.bytes_per_second: float = float("inf")

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count bytes of replicas that are limited."""
        self._rate.record(size_bytes, now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        """Say whether more has come than the limit allows."""
        return self._rate.per_second(now_ms) > self.bytes_per_second


def is_limited(replicas: Collection[str], number: int, node_id: int) -> bool:
    """Say whether a topic's list of limited replicas names this node's replica of a partition."""
    return ALL_REPLICAS in replicas or f"{number}:{node_id}" in replicas
