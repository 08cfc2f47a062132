"""A fetch that waits for records of some partitions: see `ottla.broker.fetch.parked_fetches`."""

from collections.abc import Sequence
from typing import Protocol

from ottla.world.scheduler import Timer


class FetchAttempt(Protocol):
    """A fetch, as it is tried."""

    def retry(self) -> int:
        """Read again, and answer if there is enough. Return how many bytes are missing, 0 when answered."""

    def give_up(self) -> None:
        """Answer with what there is: the time is over."""


class Awaited(Protocol):
    """A partition, as far as fetches wait for it."""

    parked: dict["ParkedFetch", None]
    parked_replicas: dict["ParkedFetch", None]


class ParkedFetch:
    """One fetch that waits."""

    __slots__ = ("attempt", "is_due", "missing_bytes", "partitions", "timer")

    def __init__(self, attempt: FetchAttempt, partitions: Sequence[Awaited], missing_bytes: int) -> None:
        self.attempt = attempt
        self.partitions = partitions
        self.missing_bytes = missing_bytes
        self.is_due = False
        self.timer: Timer | None = None
