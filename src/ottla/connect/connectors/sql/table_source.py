"""Rows of tables to topics, by an increasing column, by a time, by both, or all rows each time.

A read can be repeated as long as rows that were read are not changed, so what was read by an increasing
column is in the topic exactly once. Reading by an increasing column misses rows of transactions that are
committed after one with a higher number was read. Reading by time waits `timestamp.delay.interval.ms` for
such transactions.
"""

import asyncio
import datetime
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ottla.connect.configs.keys import Importance, Key, Kind, all_patterns, at_least, one_of, parse
from ottla.connect.connectors.sql.database import (
    OFFSETS_TABLE,
    Column,
    Database,
    Row,
    as_datetime,
    check_url,
    named_row,
    open_database,
    quoted,
)
from ottla.connect.connectors.sql.jdbc_options import SOURCE_NEEDLESS, SOURCE_UNSUPPORTED
from ottla.connect.data.record import Record
from ottla.connect.data.schema import Field, Schema, Type, to_ms
from ottla.connect.errors import ConnectError, DataError
from ottla.connect.plugins import Config, ConnectorPlugin, Offset, PluginKind
from ottla.connect.running.task import SourceContext, SourceTask
from ottla.model.patterns import compile_pattern

_INCREMENTING: Final = "incrementing"
_TIMESTAMP: Final = "timestamp"
_NANOS: Final = "timestamp_nanos"
_RAW: Final = "timestamp_text"
"""The time as the database has it, if that is text: texts are compared, and not times."""
_MODES: Final = ("bulk", "incrementing", "timestamp", "timestamp+incrementing")
_LOW: Final = Importance.LOW

CONNECTION_KEYS: Final = (
    Key(
        "connection.url",
        Kind.STRING,
        "The database: `jdbc:sqlite:FILE` or `jdbc:postgresql://HOST:PORT/NAME`.",
    ),
    Key("connection.user", Kind.STRING, "The user of the database.", None),
    Key("connection.password", Kind.PASSWORD, "The password of the user.", None),
)
_KEYS: Final = (
    *CONNECTION_KEYS,
    Key("mode", Kind.STRING, f"How new rows are found: {', '.join(_MODES)}.", check=one_of(*_MODES)),
    Key(
        "incrementing.column.name",
        Kind.STRING,
        "The column whose values increase. Empty: the key of the table.",
        "",
    ),
    Key("timestamp.column.name", Kind.STRING, "The column with the time of the last change.", ""),
    Key("table.whitelist", Kind.LIST, "The tables to read. Empty: all.", []),
    Key("table.blacklist", Kind.LIST, "Tables not to read.", []),
    Key(
        "table.include.list",
        Kind.LIST,
        "Patterns of tables to read, as schema.table.",
        [],
        check=all_patterns,
    ),
    Key(
        "table.exclude.list",
        Kind.LIST,
        "Patterns of tables not to read, as schema.table.",
        [],
        check=all_patterns,
    ),
    Key(
        "table.poll.interval.ms",
        Kind.LONG,
        "How often to look for tables that are new or gone.",
        60_000,
        _LOW,
        check=at_least(1),
    ),
    Key("query", Kind.STRING, "A query to read instead of tables.", ""),
    Key("query.masked", Kind.PASSWORD, "A query that is not shown, instead of `query`.", ""),
    Key("topic.prefix", Kind.STRING, "The topic of a table is this and its name. Of a query: this alone."),
    Key(
        "poll.interval.ms",
        Kind.INT,
        "How long to wait when there was nothing new.",
        5000,
        check=at_least(1),
    ),
    Key(
        "batch.max.rows",
        Kind.INT,
        "The maximum number of rows in one transaction.",
        1000,
        _LOW,
        check=at_least(1),
    ),
    Key(
        "timestamp.delay.interval.ms",
        Kind.LONG,
        "How old a time must be before its rows are read.",
        0,
        check=at_least(0),
    ),
    Key(
        "timestamp.initial",
        Kind.LONG,
        "Where to begin by time, in milliseconds since 1970. -1: now. Without it: at the first row.",
        None,
        _LOW,
        check=at_least(-1),
    ),
)


@dataclass
class _Reading:
    """One table or query, and how far it was read."""

    partition: dict[str, str]
    topic: str
    select: str
    columns: list[Column]
    schema: Schema | None
    incrementing: str | None
    timestamp: str | None
    offset: dict[str, Any]
    next_s: float = 0.0


class TableSourceTask(SourceTask):
    """Polls tables, one after the other."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._mode = config["mode"]
        self._prefix = config["topic.prefix"]
        self._interval_s = int(config.get("poll.interval.ms", "5000")) / 1000
        self._rows_max = int(config.get("batch.max.rows", "1000"))
        self._delay = datetime.timedelta(milliseconds=int(config.get("timestamp.delay.interval.ms", "0")))
        self._database: Database | None = None
        self._readings: list[_Reading] = []
        self._turn = 0

    async def start(self, context: SourceContext) -> None:
        """Open the database, and find where to go on in each table."""
        self._database = await asyncio.to_thread(open_database, self._config)
        self._readings = await asyncio.to_thread(self._find_readings, self._database)
        for reading in self._readings:
            reading.offset = context.position(reading.partition) or self._beginning(reading)

    def _beginning(self, reading: _Reading) -> dict[str, Any]:
        initial = self._config.get("timestamp.initial")
        if initial is None or reading.timestamp is None:
            return {}
        now_ms = to_ms(datetime.datetime.now(datetime.UTC))
        offset = {_TIMESTAMP: now_ms if initial.strip() == "-1" else int(initial), _NANOS: 0}
        return offset if reading.incrementing is None else {**offset, _INCREMENTING: -1}

    def _find_readings(self, database: Database) -> list[_Reading]:
        query = _query(self._config).strip().rstrip(";")
        if query:
            incrementing, timestamp = self._columns_of(None, "the query")
            inner = f"SELECT * FROM ({query}) AS q"  # noqa: S608 - the query is the configuration
            return [_Reading({"query": "query"}, self._prefix, inner, [], None, incrementing, timestamp, {})]
        readings = []
        for table in parse("tables", Kind.LIST, self._config.get("tables", "")) or _tables(
            database, self._config
        ):
            columns = database.columns(table)
            if not columns:
                raise ConnectError(f"the database has no table {table!r}")
            schema = _row_schema(columns, table)
            incrementing, timestamp = self._columns_of(columns, table)
            select = f"SELECT {', '.join(quoted_column(item.name) for item in columns)} FROM {quoted(table)}"  # noqa: S608
            partition = {"protocol": "1", "table": table}
            topic = f"{self._prefix}{table.rpartition('.')[2]}"
            readings.append(_Reading(partition, topic, select, columns, schema, incrementing, timestamp, {}))
        return readings

    def _columns_of(self, columns: list[Column] | None, what: str) -> tuple[str | None, str | None]:
        """Return the columns by which new rows are found."""
        incrementing = self._config.get("incrementing.column.name", "") or None
        timestamp = self._config.get("timestamp.column.name", "") or None
        if _INCREMENTING in self._mode and incrementing is None:
            keys = [item.name for item in columns or () if item.is_key]
            if len(keys) != 1:
                raise ConnectError(f"incrementing.column.name is missing: {what} has no key of one column")
            incrementing = keys[0]
        if _TIMESTAMP in self._mode and timestamp is None:
            raise ConnectError("timestamp.column.name is missing: name the column with the time of a change")
        for name in (incrementing, timestamp):
            if name is not None and columns is not None and name not in {item.name for item in columns}:
                raise ConnectError(f"{what} has no column {name!r}")
        return (
            incrementing if _INCREMENTING in self._mode else None,
            timestamp if _TIMESTAMP in self._mode else None,
        )

    async def poll(self) -> Sequence[Record]:
        """Return the new rows of the next table that has some."""
        assert self._database is not None, "it was started"
        now_s = asyncio.get_running_loop().time()
        for _ in self._readings:
            reading = self._readings[self._turn]
            self._turn = (self._turn + 1) % len(self._readings)
            if now_s < reading.next_s:
                continue
            columns, rows = await asyncio.to_thread(self._read, self._database, reading)
            is_more = len(rows) >= self._rows_max and self._mode != "bulk"
            reading.next_s = now_s if is_more else now_s + self._interval_s
            if rows:
                return self._records(reading, columns, rows)
        await asyncio.sleep(min(0.2, self._interval_s))
        return []

    def _read(self, database: Database, reading: _Reading) -> tuple[list[Column], Sequence[Row]]:
        if self._mode == "bulk":
            columns, rows = database.read(reading.select)
            return reading.columns or columns, rows
        where, parameters = self._condition(database, reading)
        columns, rows = database.read(f"{reading.select} {where} LIMIT {self._rows_max}", parameters)
        if self._mode == _TIMESTAMP and len(rows) >= self._rows_max:
            rows = self._whole_times(database, reading, columns, rows)
        return reading.columns or columns, rows

    def _condition(self, database: Database, reading: _Reading) -> tuple[str, list[Any]]:
        mark, seen = database.placeholder, reading.offset
        parts, parameters = [], []
        if reading.timestamp is not None:
            time = quoted_column(reading.timestamp)
            last = database.to_parameter(None, _last_time(seen))
            if last is not None and reading.incrementing is not None:
                number = quoted_column(reading.incrementing)
                parts.append(f"({time} > {mark} OR ({time} = {mark} AND {number} > {mark}))")
                parameters += [last, last, seen[_INCREMENTING]]
            elif last is not None:
                parts.append(f"{time} > {mark}")
                parameters.append(last)
            if self._delay:
                parts.append(f"{time} <= {mark}")
                before = datetime.datetime.now(datetime.UTC) - self._delay
                parameters.append(database.to_parameter(None, before))
            parts.append(f"{time} IS NOT NULL")
        elif reading.incrementing is not None and _INCREMENTING in seen:
            parts.append(f"{quoted_column(reading.incrementing)} > {mark}")
            parameters.append(seen[_INCREMENTING])
        order = ", ".join(quoted_column(name) for name in (reading.timestamp, reading.incrementing) if name)
        where = f"WHERE {' AND '.join(parts)} " if parts else ""
        return f"{where}ORDER BY {order}", parameters

    def _whole_times(
        self, database: Database, reading: _Reading, columns: list[Column], rows: Sequence[Row]
    ) -> Sequence[Row]:
        """Return rows so that all of the last time are among them: the next read begins after that time."""
        assert reading.timestamp is not None, "only rows that are found by time are"
        place = [item.name for item in columns].index(reading.timestamp)
        last = rows[-1][place]
        before = [row for row in rows if row[place] != last]
        where = f"WHERE {quoted_column(reading.timestamp)} = {database.placeholder}"
        return [*before, *database.read(f"{reading.select} {where}", [last])[1]]

    def _records(self, reading: _Reading, columns: list[Column], rows: Sequence[Row]) -> list[Record]:
        assert self._database is not None, "it was started"
        schema = reading.schema or _row_schema(columns, "query")
        fields = [(item.name, item.schema) for item in columns]
        keys = {item.name for item in columns if item.is_key} or {reading.incrementing or ""}
        table = reading.partition.get("table", "the query")
        records = []
        for row in rows:
            value: dict[str, Any] | None = None
            problem = None
            try:
                value = named_row(table, fields, row, keys, self._database.typed)
            except DataError as error:
                problem = error
            raw = dict(zip((name for name, _ in fields), row, strict=True))
            reading.offset = self._offset_after(reading, value or {}, raw)
            records.append(
                Record(
                    reading.topic,
                    None,
                    None,
                    None,
                    schema,
                    value,
                    source_partition=reading.partition,
                    source_offset=reading.offset,
                    problem=problem,
                )
            )
        return records

    def _offset_after(
        self, reading: _Reading, typed: Mapping[str, Any], raw: Mapping[str, Any]
    ) -> dict[str, Any]:
        offset: dict[str, Any] = {}
        if reading.timestamp is not None:
            value = typed.get(reading.timestamp)
            if not isinstance(value, datetime.datetime):
                value = raw[reading.timestamp]
            try:
                when = as_datetime(value)
            except ConnectError:
                if typed:
                    raise
                # Nothing comes after it. It is met again, since it cannot be passed.
                return reading.offset
            offset[_TIMESTAMP] = to_ms(when)
            offset[_NANOS] = when.microsecond * 1000
            if not isinstance(value, datetime.datetime):
                offset[_RAW] = value
        if reading.incrementing is not None:
            offset[_INCREMENTING] = int(raw[reading.incrementing])
        return offset

    async def stop(self) -> None:
        """Close the database."""
        if self._database is not None:
            await asyncio.to_thread(self._database.close)


def _last_time(offset: Mapping[str, Any]) -> Any:
    if _RAW in offset:
        return offset[_RAW]
    if _TIMESTAMP not in offset:
        return None
    seconds = datetime.datetime.fromtimestamp(offset[_TIMESTAMP] // 1000, datetime.UTC)
    return seconds.replace(microsecond=int(offset.get(_NANOS, 0)) // 1000)


def quoted_column(name: str) -> str:
    """Return the name of a column as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def _row_schema(columns: Iterable[Column], name: str) -> Schema:
    return Schema(Type.STRUCT, name=name, fields=tuple(Field(item.name, item.schema) for item in columns))


def _query(config: Config) -> str:
    return config.get("query", "") or config.get("query.masked", "")


def _tables(database: Database, config: Config) -> list[str]:
    def listed(name: str) -> list[str]:
        return list(parse(name, Kind.LIST, config.get(name, "")))

    wanted, refused = listed("table.whitelist"), listed("table.blacklist")
    if wanted:
        return wanted
    included, excluded = listed("table.include.list"), listed("table.exclude.list")
    return [
        table
        for table in database.tables()
        if table != OFFSETS_TABLE
        and not any(fnmatch.fnmatch(table, item) for item in refused)
        and (not included or _matches(table, included))
        and not _matches(table, excluded)
    ]


def _matches(table: str, patterns: Iterable[str]) -> bool:
    # Tables of the schema public have no schema in their names here.
    names = (table, f"public.{table}") if "." not in table else (table,)
    return any(compile_pattern(pattern).fullmatch(name) for pattern in patterns for name in names)


def _refresh_ms(config: Config) -> int | None:
    """Say how often to look for tables, if that can change anything."""
    if _query(config) or config.get("table.whitelist"):
        return None
    return int(config.get("table.poll.interval.ms", "60000"))


def _task_configs(config: Config, tasks_max: int) -> list[dict[str, str]]:
    """Divide the tables among tasks. A query is one task."""
    if _query(config):
        return [dict(config)]
    database = open_database(config)
    try:
        tables = _tables(database, config)
    finally:
        database.close()
    if not tables:
        raise ConnectError("the database has no table to read")
    count = min(tasks_max, len(tables))
    return [{**config, "tables": ",".join(tables[number::count])} for number in range(count)]


def _errors(config: Config) -> dict[str, list[str]]:
    errors = check_url(config)
    if "," in config.get("timestamp.column.name", ""):
        errors["timestamp.column.name"] = [
            "several columns in timestamp.column.name are not supported: use a query with COALESCE"
        ]
    if _query(config) and config.get("table.whitelist"):
        errors["query"] = ["query and table.whitelist are mutually exclusive options, but both are set."]
    if _TIMESTAMP in config["mode"] and not config.get("timestamp.column.name"):
        errors["timestamp.column.name"] = ["timestamp.column.name is required in this mode"]
    if _INCREMENTING in config["mode"] and _query(config) and not config.get("incrementing.column.name"):
        errors["incrementing.column.name"] = ["incrementing.column.name is required for a query"]
    return errors


def _check_offsets(_config: Config, offsets: Iterable[Offset]) -> None:
    for partition, offset in offsets:
        if "table" not in partition and "query" not in partition:
            raise ConnectError("Partition objects should contain the key 'table' or 'query'")
        for name, value in (offset or {}).items():
            if name not in (_INCREMENTING, _TIMESTAMP, _NANOS, _RAW):
                raise ConnectError(f"Offset objects should not contain the key '{name}'")
            if name != _RAW and not isinstance(value, int):
                raise ConnectError(f"The value for the '{name}' key in the offset should be a whole number")


PLUGINS: Final = (
    ConnectorPlugin(
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        PluginKind.SOURCE,
        TableSourceTask,
        _KEYS,
        doc="Rows of tables or of a query, found by an increasing column, a time, or both.",
        delivery="exactly once, if rows stay as they were read; with mode=bulk all rows each time",
        task_class="io.confluent.connect.jdbc.source.JdbcSourceTask",
        task_configs=_task_configs,
        errors=_errors,
        check_offsets=_check_offsets,
        unsupported=SOURCE_UNSUPPORTED,
        needless=SOURCE_NEEDLESS,
        refresh_ms=_refresh_ms,
    ),
)
