"""`ottla.read`: the records of a topic that are there now, as columns for a notebook or a script.

    ottla.read("payments", since="2 hours").to_pandas()

It needs no Spark. What was read is all in memory, and ends where the topic ended when it was asked.
"""

import datetime
import html
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, Final

import pyarrow as pa

from ottla.client.fetching import IsolationLevel
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.model.ids import TopicPartition
from ottla.pipelines.columns.decode import HEADERS_TYPE
from ottla.pipelines.columns.json_values import JsonColumns
from ottla.pipelines.columns.misfits import decode_rows
from ottla.pipelines.link import Link
from ottla.pipelines.source.offsets import find_offsets
from ottla.pipelines.source.plan import OffsetRange, Offsets
from ottla.pipelines.source.read import Decode, ReadTerms, read_rows

Moment = datetime.datetime | datetime.timedelta | str | Mapping[int, int] | None
_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(second|minute|hour|day|week|s|m|min|h|d|w)s?", re.IGNORECASE)
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_RECORD: Final = (
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", "UTC")),
    ("timestampType", pa.int32()),
)
_POLL_TIMEOUT_MS: Final = 60_000
_FETCH_BYTES: Final = 4 * 1024 * 1024
_ROWS_SHOWN: Final = 20


class CannotRead(ValueError):
    """What was asked for cannot be read: the sentence says what to change."""


class Records:
    """Records of a topic as columns. Whatever takes Arrow's streams takes these as they are."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def to_arrow(self) -> Any:
        """Return a table of Arrow."""
        return self._table

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas, whose columns are those of Arrow, so that no number changes."""
        import pandas as pd

        return self._table.to_pandas(types_mapper=pd.ArrowDtype)

    def to_polars(self) -> Any:
        """Return a DataFrame of polars."""
        return _package("polars").from_arrow(self._table)

    def to_duckdb(self) -> Any:
        """Return a relation of DuckDB."""
        return _package("duckdb").from_arrow(self._table)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        return f"{len(self):,} records: {', '.join(self._table.column_names)}"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        names = self._table.column_names
        shown = self._table.slice(0, _ROWS_SHOWN).to_pylist()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(row[name]))}</td>" for name in names) + "</tr>"
            for row in shown
        )
        more = len(self) - len(shown)
        note = f"<p>{more:,} more records</p>" if more else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{note}"


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise CannotRead(f"{name} is not installed: pip install {name}") from error


def read(
    topic: str,
    since: Moment = None,
    until: Moment = None,
    *,
    bootstrap_servers: str = "127.0.0.1:9092",
    properties: Mapping[str, str] | None = None,
    schema: Any = None,
    registry: str | None = None,
    values: str = "text",
    headers: bool = False,
) -> Records:
    """Read the records of a topic that are there now, between two moments.

    `since` and `until` are times (a datetime, or a text in ISO 8601), a duration before now ("2 hours", or a
    timedelta), or offsets by partition (`{0: 100}`). They are found as Kafka finds them: a partition is read
    from its first record at or after `since` to before its first record at or after `until`.

    With `registry`, the URL of a schema registry, or `schema`, one of Arrow for values that are JSON, the
    fields of the values are columns, and the others begin with an underscore. Values that do not fit are
    null, with the reason in `_fault`. Without, `values` says whether keys and values are "text" or "bytes".
    """
    client = {"bootstrap.servers": bootstrap_servers, **(properties or {})}

    def work() -> Records:
        link = Link(client, creates_topics=False)
        try:
            now = datetime.datetime.now(datetime.UTC)
            begin, end = _position(since, now), _position(until, now)
            return read_records(
                link, topic, begin, end, decode=_decode(topic, schema, registry), values=values,
                with_headers=headers,
            )  # fmt: skip
        finally:
            link.close()

    # A notebook has a loop of its own in this thread, and a thread has only one.
    with ThreadPoolExecutor(1) as worker:
        return worker.submit(work).result()


def read_records(
    link: Link,
    topic: str,
    begin: int | Mapping[int, int] | None,
    end: int | Mapping[int, int] | None,
    *,
    decode: tuple[Any, Any] | None = None,
    values: str = "text",
    with_headers: bool = False,
) -> Records:
    """Read between two positions: times in milliseconds, or offsets by partition. None: all there is."""
    if values not in ("text", "bytes"):
        raise CannotRead(f"unknown values {values!r}: use 'text' or 'bytes'")
    pieces = link.run(_pieces(link, topic, begin, end))
    terms = ReadTerms(IsolationLevel.READ_COMMITTED, with_headers, False, _POLL_TIMEOUT_MS, _FETCH_BYTES)
    fields = [*_RECORD, *([("headers", HEADERS_TYPE)] if with_headers else [])]
    add: Decode | None = None
    if decode is not None:
        kind, decode_column = decode
        fields += [("_decoded", kind), ("_fault", pa.string())]

        def add(column: Any) -> list[Any]:
            found = decode_column(column)
            return [column, found.field("value"), found.field("fault")]

    schema = pa.schema(fields)
    batches = [batch for piece in pieces for batch in read_rows(link, piece, terms, schema, add)]
    table = pa.Table.from_batches(batches, schema)
    return Records(_with_fields(table) if decode is not None else _as_asked(table, topic, values))


async def _pieces(
    link: Link, topic: str, begin: int | Mapping[int, int] | None, end: int | Mapping[int, int] | None
) -> list[OffsetRange]:
    view = (await link.cluster.refresh([topic])).topics.get(topic)
    if view is None or not view.partitions:
        raise CannotRead(f"there is no topic {topic!r}: `ottla topics list` shows which there are")
    places = [TopicPartition(topic, number) for number in sorted(view.partitions)]
    first = await find_offsets(link.cluster, places, EARLIEST, IsolationLevel.READ_COMMITTED)
    last = await find_offsets(link.cluster, places, LATEST, IsolationLevel.READ_COMMITTED)
    starts = {**first, **await _offsets(link, places, begin, last)}
    stops = {**last, **await _offsets(link, places, end, last)}
    ranges = (
        OffsetRange(where, max(starts[where], first[where]), min(stops[where], last[where]))
        for where in places
    )
    return [piece for piece in ranges if piece.size > 0]


async def _offsets(
    link: Link, places: list[TopicPartition], position: int | Mapping[int, int] | None, last: Offsets
) -> Offsets:
    if position is None:
        return {}
    if isinstance(position, Mapping):
        unknown = sorted(position.keys() - {where.partition for where in places})
        if unknown:
            raise CannotRead(f"the topic has no partition {unknown[0]}, only 0 to {len(places) - 1}")
        return {where: position[where.partition] for where in places if where.partition in position}
    found = await list_offsets(link.cluster, dict.fromkeys(places, position), IsolationLevel.READ_COMMITTED)
    # Where nothing is as late as that, a partition ends before it.
    return {where: found[where].offset if where in found else last[where] for where in places}


def _position(moment: Moment, now: datetime.datetime) -> int | Mapping[int, int] | None:
    """Return a moment as milliseconds since 1970, or offsets as they are."""
    if moment is None or isinstance(moment, Mapping):
        return moment
    if isinstance(moment, str):
        ago = _AGO.fullmatch(moment.strip())
        try:
            moment = (
                datetime.timedelta(seconds=float(ago[1]) * _UNITS_S[ago[2][0].lower()])
                if ago
                else datetime.datetime.fromisoformat(moment)
            )
        except ValueError as error:
            raise CannotRead(
                f"{moment!r} is no moment: write a time such as '2026-01-31T12:00:00Z', or how long ago, "
                "such as '2 hours'"
            ) from error
    if isinstance(moment, datetime.timedelta):
        moment = now - moment
    return int(moment.timestamp() * 1000)


def _decode(topic: str, schema: Any, registry: str | None) -> tuple[Any, Any] | None:
    """Return the type of decoded values, and what decodes a column of them."""
    if schema is not None:
        kind = pa.struct(list(schema))
        columns = JsonColumns(kind)
        return kind, lambda values: decode_rows(kind, columns.row, values)
    if registry is None:
        return None
    from ottla.pipelines.columns.values import decode_values, find_source, value_type

    source = find_source(registry, f"{topic}-value")
    if source is None:
        raise CannotRead(f"the registry at {registry} has no schema for topic {topic!r}: leave out registry=")
    return value_type(source), lambda values: decode_values(source, values)


def _with_fields(table: Any) -> Any:
    """Put the fields of the values first, and all else behind them, under names that no field has."""
    decoded = table.column("_decoded").combine_chunks()
    names = [field.name for field in decoded.type]
    arrays = decoded.flatten() if table.num_rows else [pa.array([], field.type) for field in decoded.type]
    others = [
        name for name in table.column_names if name not in ("_decoded", "value", "topic", "timestampType")
    ]
    columns = [_text(table.column(name)) if name == "key" else table.column(name) for name in others]
    own = [name if name.startswith("_") else f"_{name}" for name in others]
    return pa.table([*arrays, *columns], names=[*names, *own])


def _as_asked(table: Any, topic: str, values: str) -> Any:
    columns = {
        name: table.column(name) for name in table.column_names if name not in ("topic", "timestampType")
    }
    if values == "text":
        try:
            columns |= {name: columns[name].cast(pa.string()) for name in ("key", "value")}
        except pa.ArrowInvalid as error:
            raise CannotRead(f"topic {topic!r} has values that are no text: use values='bytes'") from error
    return pa.table(columns)


def _text(keys: Any) -> Any:
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return keys


def _shown(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _CHARACTERS_SHOWN else f"{text[:_CHARACTERS_SHOWN]}..."


_CHARACTERS_SHOWN: Final = 100
