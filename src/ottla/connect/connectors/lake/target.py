"""A table in a lake, as the sink sees it. All calls block: the sink makes them in a thread.

A commit is one change of the table's own log. It has rows, and how far the table is in each partition of the
topic. So what the table has and where it goes on cannot disagree, whatever dies.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from ottla.connect.errors import ConnectError
from ottla.connect.running.task import RetryLater
from ottla.model.ids import TopicPartition

_UNITS: Final = ("year", "month", "day", "hour")
Positions = dict[TopicPartition, int]


@dataclass(frozen=True)
class Batch:
    """What is committed at once."""

    rows: Any
    """A table of Arrow, or None."""
    begins: Mapping[TopicPartition, int]
    """Where the table must be in each partition: otherwise another task has written."""
    ends: Mapping[TopicPartition, int]
    """Where it is afterwards."""
    keys: Sequence[str] = ()
    """The columns of the key, if rows replace those with the same key."""
    deleted: Any = None
    """A table of Arrow with the keys of rows that are gone, or None."""


class Partitioning(NamedTuple):
    """A column that divides the table into directories."""

    column: str
    unit: str | None = None
    """year, month, day or hour of a time. None: the value itself."""

    @property
    def name(self) -> str:
        """The name of the column that has the part of a time."""
        return self.column if self.unit is None else f"{self.column}_{self.unit}"


def parse_partitioning(texts: Sequence[str]) -> tuple[Partitioning, ...]:
    """Read columns and parts of times: region, day(at). Raises ValueError."""
    found = []
    for text in texts:
        unit, is_part, rest = text.partition("(")
        if not is_part:
            found.append(Partitioning(text))
            continue
        if unit not in _UNITS or not rest.endswith(")") or not rest.removesuffix(")"):
            raise ValueError(
                f"{text} is no part of a time: use {', '.join(f'{name}(COLUMN)' for name in _UNITS)}"
            )
        found.append(Partitioning(rest.removesuffix(")"), unit))
    return tuple(found)


@dataclass(frozen=True)
class Layout:
    """Where a table is, and what it looks like."""

    location: str
    connector: str
    partitioning: tuple[Partitioning, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    """What is passed on to the store or the catalog."""


class Conflict(RetryLater):
    """Another writer has changed the table meanwhile. Nothing was written."""


class TableTarget(Protocol):
    """An open table. Raises ConnectError, RetryLater for a store that cannot be reached."""

    def positions(self, partitions: Iterable[TopicPartition]) -> Positions:
        """Return how far the table is in those of the partitions that it has something of."""

    def schema(self) -> Any:
        """Return the columns as Arrow has them. None: there is no table yet."""

    def commit(self, batch: Batch) -> None:
        """Write rows and positions, or nothing at all."""

    def compact(self) -> None:
        """Make few large files of many small ones."""


def check_begins(found: Mapping[TopicPartition, int], batch: Batch) -> None:
    """Raise ConnectError if the table is not where the batch begins."""
    for where, begin in batch.begins.items():
        if found.get(where, 0) != begin:
            raise ConnectError(
                f"another task has written {where} up to offset {found.get(where, 0)}, and this one expected "
                f"{begin}: it has lost the partition"
            )
