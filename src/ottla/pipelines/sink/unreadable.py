"""Dead letters of an input: the records of a batch whose values could not be read, by their offsets.

They are fetched again, one by one or in runs, and written in a transaction of their own with an entry in the
ledger `<pipeline>.unreadable`. A batch that runs again finds the entry, and nothing is written twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ottla.client.fetching import DEFAULT_LIMITS, IsolationLevel, read_range, visible_batches
from ottla.model.ids import TopicPartition
from ottla.pipelines.columns.decode import HEADERS_TYPE
from ottla.pipelines.link import Link
from ottla.pipelines.sink.batch import TaskIdentity, commit_batch
from ottla.pipelines.sink.ledger import ledger_of_write
from ottla.pipelines.sink.options import UNREADABLE, SinkOptions
from ottla.pipelines.sink.rows import ORIGINAL_TOPIC, REASON
from ottla.pipelines.sink.task import write_rows
from ottla.pipelines.source.plan import OffsetRange
from ottla.records.batch_records import iter_batch_records

# Records this near to each other are in one batch more often than not: fetching them together costs less.
_GAP_MAX: Final = 100
_ROWS_MAX: Final = 1_000


class UnreadableInput(NamedTuple):
    """The records of one topic that a batch could not read, and why."""

    topic: str
    offsets: Mapping[int, Sequence[int]]
    """By partition, in order."""
    explain: Callable[[bytes | None], str]
    """Says of a value why it could not be read."""


def ledger_of(pipeline: str) -> str:
    """Return the name of the ledger for what a pipeline cannot read."""
    return ledger_of_write(pipeline, UNREADABLE)


def parse_places(text: str) -> dict[int, list[int]]:
    """Read `partition:offset,...`. A task that ran twice has told its offsets twice."""
    found: dict[int, set[int]] = {}
    for place in text.split(",") if text else ():
        partition, _, offset = place.partition(":")
        found.setdefault(int(partition), set()).add(int(offset))
    return {partition: sorted(offsets) for partition, offsets in sorted(found.items())}


def ranges_around(where: TopicPartition, offsets: Sequence[int]) -> list[OffsetRange]:
    """Cover offsets by ranges to fetch: near ones together, far ones apart."""
    if not offsets:
        return []
    edges = [0, *(at for at, (a, b) in enumerate(pairwise(offsets), 1) if b - a > _GAP_MAX), len(offsets)]
    return [OffsetRange(where, offsets[start], offsets[stop - 1] + 1) for start, stop in pairwise(edges)]


def bury_unreadable(
    link: Link,
    sink: SinkOptions,
    query_id: str,
    batch_id: int,
    inputs: Sequence[UnreadableInput],
    now_ms: Callable[[], int],
) -> None:
    """Deliver the dead letters of a batch, unless an earlier attempt has."""
    assert sink.pipeline is not None, "dead letters belong to a pipeline"
    identity = TaskIdentity(ledger_of(sink.pipeline), query_id, batch_id, 0) if sink.is_exactly_once else None
    letters = (letter for item in inputs for letter in _letters(link, item))
    outcome = write_rows(link, sink, identity, _in_batches(letters), now_ms)
    commit_batch(link, [outcome])


def _letters(link: Link, item: UnreadableInput) -> Iterator[dict[str, Any]]:
    for partition, offsets in item.offsets.items():
        where = TopicPartition(item.topic, partition)
        wanted = set(offsets)
        for piece in ranges_around(where, offsets):
            for record in link.run(_fetch(link, piece, wanted)):
                notes = {REASON: item.explain(record.value), ORIGINAL_TOPIC: item.topic}
                notes |= {"ottla.partition": str(partition), "ottla.offset": str(record.offset)}
                headers = [{"key": name, "value": text.encode()} for name, text in notes.items()]
                yield {"key": record.key, "value": record.value, "headers": headers}


async def _fetch(link: Link, piece: OffsetRange, wanted: set[int]) -> list[Any]:
    """Return the records of a range that are wanted. Spark has read them, so they are committed."""
    found = []
    pieces = read_range(
        link.cluster, piece.where, piece.start_offset, piece.stop_offset, limits=DEFAULT_LIMITS
    )
    async for fetched in pieces:
        for batch in visible_batches(fetched, IsolationLevel.READ_UNCOMMITTED):
            found += [
                record
                for record in iter_batch_records(batch)
                if record.offset in wanted and piece.start_offset <= record.offset < piece.stop_offset
            ]
    return found


def _in_batches(letters: Iterable[dict[str, Any]]) -> Iterator[Any]:
    rows: list[dict[str, Any]] = []
    for letter in letters:
        rows.append(letter)
        if len(rows) == _ROWS_MAX:
            yield _to_arrow(rows)
            rows = []
    if rows:
        yield _to_arrow(rows)


def _to_arrow(rows: Sequence[Mapping[str, Any]]) -> Any:
    schema = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS_TYPE)])
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)
