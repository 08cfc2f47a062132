"""What tasks of connectors do. They are written against this, and know nothing of topics and offsets of
Kafka.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ottla.connect.data.record import Record
from ottla.model.ids import TopicPartition


@dataclass(frozen=True)
class SourceContext:
    """What a source can ask its worker."""

    connector: str
    task: int
    position: Callable[[Mapping[str, Any]], dict[str, Any] | None]
    """Where to go on in a partition of the source, as the last committed transaction left it."""


class SourceTask(ABC):
    """Reads records. It must be able to read again from any position that it gave a record."""

    transaction_timeout_ms: int | None = 60_000
    """How long a transaction may take. None: as long as the brokers allow."""

    @abstractmethod
    async def start(self, context: SourceContext) -> None:
        """Open the source."""

    @abstractmethod
    async def poll(self) -> Sequence[Record]:
        """Return the next records, or none after a short wait."""

    @property
    def may_commit(self) -> bool:
        """Say whether a transaction may end after the last poll. Otherwise it goes on with the next."""
        return True

    async def committed(self) -> None:
        """Take note that all records so far, and their positions, are committed."""
        return

    @abstractmethod
    async def stop(self) -> None:
        """Close the source."""


async def _settled() -> None:
    """Everything is written."""


async def _no_ids(_topics: Collection[str]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class SinkContext:
    """What a sink can ask its worker."""

    connector: str
    task: int
    report: Callable[[Record, Exception], None]
    """Reports a record that the target does not take. Raises if that is not tolerated."""
    settle: Callable[[], Awaitable[None]] = _settled
    """Waits until what was reported is written. A target that keeps its position waits before it goes on."""
    topic_ids: Callable[[Collection[str]], Awaitable[Mapping[str, str]]] = _no_ids
    """Returns the ids of topics, as far as the cluster knows some. One that was made again has another id."""


class SinkTask(Protocol):
    """Writes records."""

    commit_interval_s: float | None
    """How often what was put is made durable. None: as the worker says, and whenever nothing waits."""

    async def start(self, context: SinkContext) -> None:
        """Open the target."""

    async def opened(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        """Take on partitions, beside those it has. Returns from where to read those whose position the
        target keeps.
        """

    async def closed(self, partitions: frozenset[TopicPartition]) -> None:
        """Give partitions up. What was put of them and is not durable is forgotten: others read it again."""

    async def put(self, records: Sequence[Record]) -> None:
        """Write records. Raises RetryLater or ConnectError."""

    async def flush(self) -> None:
        """Make what was put durable: its offsets are committed next."""

    async def stop(self) -> None:
        """Close the target."""


class RetryLater(Exception):
    """A target that cannot be reached now. What is left of the same records is put again later."""

    def __init__(self, message: str, *, done: int = 0, after_s: float | None = None) -> None:
        super().__init__(message)
        self.done = done
        """How many of the records, from the first on, need not be put again."""
        self.after_s = after_s
        """How long the target wants to be left alone. None: it did not say."""
