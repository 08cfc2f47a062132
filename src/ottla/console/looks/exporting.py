"""Records as files: JSON lines, CSV or Parquet, from a place in the topic on, partition after partition.

Lines are made while they are sent, so memory does not grow with their number. Parquet is written in groups of
rows, and needs the package pyarrow.
"""

import csv
import io
import json
from collections.abc import AsyncIterator, Collection
from typing import Any, Final

from ottla.client.cluster import Cluster
from ottla.client.fetching import FetchLimits, IsolationLevel, read_range
from ottla.client.list_offsets import list_offsets
from ottla.console.looks.records import StoredRecord, bounds, find_partitions, open_batches
from ottla.model.ids import TopicPartition
from ottla.records.json_records import tell, tell_header

FORMS: Final = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
COUNT_MAX: Final = 1_000_000
_LIMITS: Final = FetchLimits(partition_max_bytes=1024 * 1024)
_GROUP: Final = 5_000
_COLUMNS: Final = ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")


async def read_records(
    cluster: Cluster,
    topic: str,
    *,
    partitions: Collection[int] = (),
    since_ms: int | None = None,
    until_ms: int | None = None,
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    count: int = COUNT_MAX,
) -> AsyncIterator[list[StoredRecord]]:
    """Read records from the oldest on, a batch at a time, up to where partitions end now."""
    wheres = [TopicPartition(topic, number) for number in await find_partitions(cluster, topic, partitions)]
    starts, ends = await bounds(cluster, wheres, isolation)
    if since_ms is not None:
        found = await list_offsets(cluster, dict.fromkeys(ends, since_ms), isolation)
        starts |= {where: found[where].offset if where in found else ends[where] for where in ends}
    left = count
    for where in wheres:
        if where not in ends or starts[where] >= ends[where]:
            continue
        first, stop = starts[where], ends[where]
        async for fetched in read_range(cluster, where, first, stop, isolation=isolation, limits=_LIMITS):
            records, _ = open_batches(fetched, isolation, first, stop)
            kept = [one for one in records if until_ms is None or one.timestamp_ms < until_ms][:left]
            left -= len(kept)
            yield kept
            if left <= 0:
                return


def record_row(found: StoredRecord) -> dict[str, Any]:
    """Return a record as commands print it."""
    key, key_encoding = tell(found.key)
    value, value_encoding = tell(found.value)
    row: dict[str, Any] = {
        "topic": found.where.topic,
        "partition": found.where.partition,
        "offset": found.offset,
        "timestamp_ms": found.timestamp_ms,
        "key": key,
        "value": value,
        "headers": [tell_header(*header) for header in found.headers],
    }
    if key_encoding is not None:
        row["key_encoding"] = key_encoding
    if value_encoding is not None:
        row["value_encoding"] = value_encoding
    return row


async def as_json_lines(batches: AsyncIterator[list[StoredRecord]]) -> AsyncIterator[bytes]:
    """Write records as `ottla consume --json` prints them."""
    async for records in batches:
        yield b"".join(json.dumps(record_row(one)).encode() + b"\n" for one in records)


async def as_csv(batches: AsyncIterator[list[StoredRecord]]) -> AsyncIterator[bytes]:
    """Write a line for each record. What is not text is in base64, as in JSON."""
    yield (",".join(_COLUMNS) + "\r\n").encode()
    async for records in batches:
        lines = io.StringIO()
        writer = csv.writer(lines)
        for record in records:
            row = record_row(record)
            writer.writerow([*(_cell(row[name]) for name in _COLUMNS[:-1]), json.dumps(row["headers"])])
        yield lines.getvalue().encode()


def _cell(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


async def as_parquet(batches: AsyncIterator[list[StoredRecord]]) -> AsyncIterator[bytes]:
    """Write groups of rows, with keys and values as they are. Raises ImportError without pyarrow."""
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        [
            ("topic", pyarrow.string()),
            ("partition", pyarrow.int32()),
            ("offset", pyarrow.int64()),
            ("timestamp", pyarrow.timestamp("ms", tz="UTC")),
            ("key", pyarrow.binary()),
            ("value", pyarrow.binary()),
            (
                "headers",
                pyarrow.list_(pyarrow.struct([("name", pyarrow.string()), ("value", pyarrow.binary())])),
            ),
        ]
    )
    sink = io.BytesIO()

    def taken() -> bytes:
        written = sink.getvalue()
        sink.seek(0)
        sink.truncate()
        return written

    class _Sink(io.RawIOBase):
        """Counts what went through, since the file says where its parts are."""

        at = 0

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            size = sink.write(data)
            self.at += size
            return size

        def tell(self) -> int:
            return self.at

    with pyarrow.parquet.ParquetWriter(pyarrow.PythonFile(_Sink(), mode="w"), schema) as writer:
        rows: list[StoredRecord] = []
        async for records in batches:
            rows += records
            if len(rows) >= _GROUP:
                writer.write_table(pyarrow.Table.from_pylist(_parquet_rows(rows), schema))
                rows = []
                yield taken()
        if rows:
            writer.write_table(pyarrow.Table.from_pylist(_parquet_rows(rows), schema))
    yield taken()


def _parquet_rows(records: list[StoredRecord]) -> list[dict[str, Any]]:
    return [
        {
            "topic": record.where.topic,
            "partition": record.where.partition,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "key": record.key,
            "value": record.value,
            "headers": [
                {"name": name.encode(errors="replace").decode(), "value": value}
                for name, value in record.headers
            ],
        }
        for record in records
    ]
