"""Rows on their way out: what their columns mean, and which of them cannot become records.

A row has a value, and perhaps a key, a topic, a partition and headers, as Spark's Kafka sink has them. A row
that no record can be made of is a dead letter: it goes to a topic of its own with the reason in a header, or,
where there is no such topic, ends the task. It is never left out silently.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ottla.pipelines.columns.encode import encoded_sizes_max

REASON: Final = "ottla.reason"
ORIGINAL_TOPIC: Final = "ottla.topic"
# A value that is too large for its own topic is too large for the other one as well.
_KEPT_BYTES: Final = 65_536


class Undeliverable(Exception):
    """A row that no record can be made of, and no topic for dead letters."""


@dataclass(frozen=True, slots=True)
class OutgoingRows:
    """Columns of rows. `topics` is None where all go to the sink's one topic."""

    keys: Any
    values: Any
    topics: Any | None
    partitions: Any | None
    headers: Any | None

    def take(self, rows: Any) -> "OutgoingRows":
        """Return some of the rows."""
        columns = (self.keys, self.values, self.topics, self.partitions, self.headers)
        return OutgoingRows(*(None if column is None else column.take(rows) for column in columns))

    def __len__(self) -> int:
        return len(self.values)


class DeadLetter(NamedTuple):
    """A row that cannot be delivered, and why."""

    key: bytes | None
    value: bytes | None
    topic: str | None
    reason: str

    def headers(self) -> list[dict[str, Any]]:
        """Return the headers that go with it."""
        found = [{"key": REASON, "value": self.reason.encode()}]
        if self.topic is not None:
            found.append({"key": ORIGINAL_TOPIC, "value": self.topic.encode()})
        return found


def outgoing(batch: Any, topic: str | None) -> OutgoingRows:
    """Read the columns of an Arrow batch. The option, where given, wins over the column, as in Spark."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    values = columns["value"].cast(pa.binary())
    keys = columns["key"].cast(pa.binary()) if "key" in columns else pa.nulls(len(values), pa.binary())
    partitions = columns["partition"].cast(pa.int32()) if "partition" in columns else None
    topics = columns["topic"].cast(pa.string()) if topic is None else None
    return OutgoingRows(keys, values, topics, partitions, columns.get("headers"))


def refuse(rows: OutgoingRows, record_bytes_max: int) -> tuple[OutgoingRows, list[DeadLetter]]:
    """Separate the rows that no record can be made of, whatever the topics are."""
    reasons: dict[int, str] = {}
    sizes = encoded_sizes_max(rows.keys, rows.values)
    for row in np.nonzero(sizes > record_bytes_max)[0].tolist():
        reasons[row] = (
            f"a record of {sizes[row]} bytes is larger than max.request.size ({record_bytes_max}); its value "
            f"is cut off after {_KEPT_BYTES} bytes"
        )
    if rows.topics is not None and rows.topics.null_count:
        for row in np.nonzero(np.asarray(rows.topics.is_null()))[0].tolist():
            reasons[row] = "the row names no topic"
    return _separate(rows, reasons)


def refuse_partitions(rows: OutgoingRows, topic: str, count: int) -> tuple[OutgoingRows, list[DeadLetter]]:
    """Separate the rows that name a partition which their topic has not."""
    if rows.partitions is None:
        return rows, []
    wanted = np.asarray(rows.partitions.fill_null(0))
    reasons = {
        row: f"{topic!r} has no partition {wanted[row]}, only 0 to {count - 1}"
        for row in np.nonzero((wanted < 0) | (wanted >= count))[0].tolist()
    }
    return _separate(rows, reasons)


def _separate(rows: OutgoingRows, reasons: dict[int, str]) -> tuple[OutgoingRows, list[DeadLetter]]:
    if not reasons:
        return rows, []
    letters = [
        DeadLetter(
            _cut(rows.keys[row].as_py()),
            _cut(rows.values[row].as_py()),
            None if rows.topics is None else rows.topics[row].as_py(),
            reason,
        )
        for row, reason in sorted(reasons.items())
    ]
    kept = np.setdiff1d(np.arange(len(rows)), np.array(list(reasons)))
    return rows.take(pa.array(kept)), letters


def _cut(content: bytes | None) -> bytes | None:
    return None if content is None else content[:_KEPT_BYTES]
