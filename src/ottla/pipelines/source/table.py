"""A topic as a table: the latest record of each key, kept up to date in the process that needs it.

Spark asks for a table at each batch. Reading all of the topic each time, and planning that, costs more than
most batches do. Here a worker keeps what it has read, and reads on from there. Spark keeps its workers, so
that mostly the same process is asked again; one that is new reads everything once.
"""

import os
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ottla.client.list_offsets import EARLIEST, LATEST
from ottla.pipelines.link import Link, shared_link
from ottla.pipelines.source.decoding import DECODED, FAULT, make_decode
from ottla.pipelines.source.offsets import find_offsets, subscribed_partitions
from ottla.pipelines.source.options import SourceOptions
from ottla.pipelines.source.plan import OffsetRange, Offsets
from ottla.pipelines.source.read import ReadTerms, read_rows

# A table is kept by one worker and sent to all tasks. Larger ones are read by many tasks, as any topic is.
KEPT_RECORDS_MAX: Final = 100_000


class Entry(NamedTuple):
    """The latest record of a key. One that is later in time is later; of one time, the larger offset is."""

    timestamp: Any
    offset: int
    partition: int
    value: bytes | None
    timestamp_type: int


def count_records(link: Link, options: SourceOptions) -> int:
    """Return how many records a table's topic has at most."""
    return sum(piece.size for piece in link.run(_unread(link, options, {}))[0])


async def _unread(
    link: Link, options: SourceOptions, positions: Offsets
) -> tuple[list[OffsetRange], Offsets]:
    """Return what was not read yet, and where each partition begins."""
    places = await subscribed_partitions(link.cluster, options)
    starts = await find_offsets(link.cluster, places, EARLIEST, options.isolation)
    ends = await find_offsets(link.cluster, places, LATEST, options.isolation)
    begins = {where: max(positions.get(where, 0), starts[where]) for where in places}
    return [OffsetRange(where, begins[where], ends[where]) for where in places], starts


class KeptTable:
    """The latest record of each key of a topic, as far as it was read."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        self._options = options
        self._schema = schema
        self._decode = make_decode(schema, options.decoding)
        # What is kept are records. They are decoded together, when something has changed.
        self._raw_schema = pa.schema([field for field in schema if field.name not in (DECODED, FAULT)])
        self._entries: dict[bytes | None, Entry] = {}
        self._positions: Offsets = {}
        self._topic_ids: dict[str, Any] = {}
        self._rows: Any = None

    def read(self, link: Link) -> Any:
        """Read what is new, and return all rows that have a value as one Arrow batch."""
        pieces, starts = link.run(_unread(link, self._options, self._positions))
        if self._is_another_topic(link, pieces):
            self._entries.clear()
            self._positions.clear()
            pieces, starts = link.run(_unread(link, self._options, {}))
        has_changed = self._rows is None or self._drop_deleted(starts)
        for piece in pieces:
            if piece.size > 0:
                has_changed = True
                self._take(link, piece)
            self._positions[piece.where] = piece.stop_offset
        if has_changed:
            self._rows = self._to_arrow()
        return self._rows

    def _is_another_topic(self, link: Link, pieces: list[OffsetRange]) -> bool:
        """Say whether the topic was deleted and made again since the last time."""
        topics = link.cluster.topology.topics
        ids = {piece.where.topic: topics[piece.where.topic].topic_id for piece in pieces}
        before, self._topic_ids = self._topic_ids, ids
        return bool(before) and (before != ids or any(piece.size < 0 for piece in pieces))

    def _drop_deleted(self, starts: Offsets) -> bool:
        """Forget what retention has deleted: somebody who reads the topic now would not find it."""
        begins = {where.partition: offset for where, offset in starts.items()}
        gone = [key for key, entry in self._entries.items() if entry.offset < begins.get(entry.partition, 0)]
        for key in gone:
            del self._entries[key]
        return bool(gone)

    def _take(self, link: Link, piece: OffsetRange) -> None:
        options = self._options
        terms = ReadTerms(
            options.isolation,
            include_headers=False,
            fail_on_data_loss=False,
            poll_timeout_ms=options.poll_timeout_ms,
            partition_fetch_bytes=options.partition_fetch_bytes,
        )
        for batch in read_rows(link, piece, terms, self._raw_schema):
            columns = (batch.column(name).to_pylist() for name in ("key", "timestamp", "offset", "value"))
            types = batch.column("timestampType").to_pylist()
            for key, timestamp, offset, value, kind in zip(*columns, types, strict=True):
                entry = Entry(timestamp, offset, piece.where.partition, value, kind)
                before = self._entries.get(key)
                if before is None or before[:2] <= entry[:2]:
                    self._entries[key] = entry

    def _to_arrow(self) -> Any:
        # A null is a tombstone: its key is gone.
        found = [(key, entry) for key, entry in self._entries.items() if entry.value is not None]
        (topic,) = self._options.subscription.topics
        columns = {
            "key": [key for key, _ in found],
            "value": [entry.value for _, entry in found],
            "topic": [topic] * len(found),
            "partition": [entry.partition for _, entry in found],
            "offset": [entry.offset for _, entry in found],
            "timestamp": [entry.timestamp for _, entry in found],
            "timestampType": [entry.timestamp_type for _, entry in found],
        }
        rows = pa.RecordBatch.from_pydict(columns, schema=self._raw_schema)
        if self._decode is None:
            return rows
        values, *decoded = self._decode(rows.column("value"))
        arrays = [values if name == "value" else rows.column(name) for name in self._raw_schema.names]
        return pa.RecordBatch.from_arrays([*arrays, *decoded], schema=self._schema)


_kept: dict[tuple[int, Any, Any, tuple[tuple[str, str], ...]], KeptTable] = {}


def read_table(options: SourceOptions, schema: Any) -> Iterator[Any]:
    """Yield the rows of a table now. This process keeps it for the next time."""
    link = shared_link(options.properties)
    kind = (options.decoding, str(schema))
    key = (os.getpid(), options.subscription, kind, tuple(sorted(options.properties.items())))
    table = _kept.get(key)
    if table is None:
        table = _kept[key] = KeptTable(options, schema)
    try:
        yield table.read(link)
    except Exception:
        # What is half read must not be taken for the whole.
        del _kept[key]
        raise
