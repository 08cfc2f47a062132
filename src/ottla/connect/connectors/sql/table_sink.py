"""Records to rows of a table, with their offsets in the same transaction.

The table `ottla_connect_offsets` has the offset to go on from for each connector and partition. A task reads
it before it reads records, so a row is written exactly once, also by plain inserts.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ottla.connect.configs.keys import Importance, Key, Kind, one_of, parse
from ottla.connect.connectors.sql.database import (
    OFFSETS_TABLE,
    Database,
    DatabaseError,
    DatabaseGone,
    RowRefused,
    check_url,
    open_database,
    quoted,
)
from ottla.connect.connectors.sql.jdbc_options import SINK_NEEDLESS, SINK_UNSUPPORTED
from ottla.connect.connectors.sql.table_source import CONNECTION_KEYS, quoted_column
from ottla.connect.data.record import Record
from ottla.connect.data.schema import INT32, INT64, STRING, Schema, Type, infer
from ottla.connect.errors import RECORD_ERRORS, ConnectError, DataError
from ottla.connect.plugins import Config, ConnectorPlugin, PluginKind
from ottla.connect.running.task import RetryLater, SinkContext
from ottla.model.ids import TopicPartition

_UNKNOWN: Final = -1
_MEDIUM: Final = Importance.MEDIUM
_KAFKA_FIELDS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")
_KEYS: Final = (
    *CONNECTION_KEYS,
    Key(
        "insert.mode",
        Kind.STRING,
        "insert, upsert (needs a key) or update (only rows that exist).",
        "insert",
        check=one_of("insert", "upsert", "update"),
    ),
    Key(
        "pk.mode",
        Kind.STRING,
        "Where the key of a row is: none, kafka (topic, partition, offset), record_key or record_value.",
        "none",
        check=one_of("none", "kafka", "record_key", "record_value"),
    ),
    Key("pk.fields", Kind.LIST, "The columns of the key. Empty: all fields of a struct key.", []),
    Key("table.name.format", Kind.STRING, "The table, in which ${topic} is replaced.", "${topic}"),
    Key("fields.whitelist", Kind.LIST, "The fields of the value to write. Empty: all.", [], _MEDIUM),
    Key("delete.enabled", Kind.BOOLEAN, "Whether a record without a value deletes its row.", False, _MEDIUM),
    Key("auto.create", Kind.BOOLEAN, "Whether a missing table is created.", False, _MEDIUM),
    Key("auto.evolve", Kind.BOOLEAN, "Whether missing columns are added.", False, _MEDIUM),
    Key("batch.size", Kind.INT, "The maximum number of rows in one statement.", 3000, _MEDIUM),
)


class TableSinkTask:
    """Writes records to tables."""

    commit_interval_s = None

    def __init__(self, config: Config) -> None:
        self._config = config
        self._mode = config.get("insert.mode", "insert")
        self._key_mode = config.get("pk.mode", "none")
        self._key_fields = parse("pk.fields", Kind.LIST, config.get("pk.fields", ""))
        self._format = config.get("table.name.format", "${topic}")
        self._fields = parse("fields.whitelist", Kind.LIST, config.get("fields.whitelist", ""))
        self._deletes = config.get("delete.enabled", "false").lower() == "true"
        self._creates = config.get("auto.create", "false").lower() == "true"
        self._evolves = config.get("auto.evolve", "false").lower() == "true"
        self._database: Database | None = None
        self._context: SinkContext | None = None
        self._known: dict[str, set[str]] = {}

    async def start(self, context: SinkContext) -> None:
        """Open the database."""
        self._context = context
        self._database = await asyncio.to_thread(open_database, self._config)
        await asyncio.to_thread(create_offsets, self._database)

    async def opened(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        """Return from where to read, as the database says."""
        assert self._database is not None, "it was started"
        assert self._context is not None, "it was started"
        await asyncio.to_thread(add_offsets, self._database, self._context.connector, partitions)
        found = await asyncio.to_thread(read_offsets, self._database, self._context.connector)
        return {where: offset for where, offset in found.items() if where in partitions}

    async def closed(self, partitions: frozenset[TopicPartition]) -> None:
        """Each put is in the database."""

    async def put(self, records: Sequence[Record]) -> None:
        """Write rows and offsets in one transaction. Rows that are refused are reported one by one."""
        try:
            await asyncio.to_thread(self._write, records)
        except DatabaseGone as error:
            raise RetryLater(str(error)) from error
        except (RowRefused, *RECORD_ERRORS) as error:
            assert self._context is not None, "it was started"
            if len(records) == 1:
                self._context.report(records[0], error)
                # Rows behind it move the position in the database: nothing would read this one again.
                await self._context.settle()
                return
            # Some row is wrong: find it, and write the others.
            middle = len(records) // 2
            await self.put(records[:middle])
            try:
                await self.put(records[middle:])
            except RetryLater as away:
                # What is written, or reported, is not put again.
                away.done += middle
                raise

    async def flush(self) -> None:
        """Each put is durable."""

    async def stop(self) -> None:
        """Close the database."""
        if self._database is not None:
            await asyncio.to_thread(self._database.close)

    def _write(self, records: Sequence[Record]) -> None:
        assert self._database is not None, "it was started"
        assert self._context is not None, "it was started"
        statements: list[tuple[str, list[Sequence[Any]]]] = []
        offsets: dict[TopicPartition, int] = {}
        for record in records:
            statement, row = self._statement(self._database, record)
            # Statements keep the order of the records: a row may be written and then deleted.
            if statements and statements[-1][0] == statement:
                statements[-1][1].append(row)
            else:
                statements.append((statement, [row]))
            if record.origin is not None:
                offsets[record.origin.where] = record.origin.offset + 1
        statements.append(offset_statement(self._database, self._context.connector, offsets))
        self._database.transact(statements, lambda: self._check_positions(records))

    def _check_positions(self, records: Sequence[Record]) -> None:
        """Refuse to write what another task has written, which has taken over while this one was away."""
        assert self._database is not None, "it was started"
        assert self._context is not None, "it was started"
        stored = read_offsets(self._database, self._context.connector, for_update=True)
        for record in records:
            if record.origin is not None and record.origin.offset < stored.get(record.origin.where, 0):
                raise ConnectError(
                    f"another task has written offset {record.origin.offset} of {record.origin.where}: "
                    "this task has lost the partition"
                )

    def _statement(self, database: Database, record: Record) -> tuple[str, Sequence[Any]]:
        table = self._format.replace("${topic}", record.topic)
        if table.rpartition(".")[2].lower() == OFFSETS_TABLE:
            # Who writes to a topic of this name would decide where all connectors go on.
            raise DataError(f"the table {table!r} is for offsets: choose another with table.name.format")
        key = self._key_of(record)
        if record.value is None:
            if not self._deletes or self._key_mode != "record_key":
                raise DataError(
                    "a record without a value deletes a row: set delete.enabled=true and pk.mode=record_key"
                )
            self._prepare(database, table, key, {})
            where = " AND ".join(f"{quoted_column(name)} = {database.placeholder}" for name in key)
            return f"DELETE FROM {quoted(table)} WHERE {where}", _parameters(database, key)  # noqa: S608
        value = self._value_of(record)
        self._prepare(database, table, key, value)
        return self._write_statement(database, table, key, {**value, **key})

    def _write_statement(
        self, database: Database, table: str, key: "_Fields", fields: "_Fields"
    ) -> tuple[str, Sequence[Any]]:
        mark, name = database.placeholder, quoted(table)
        if self._mode == "update":
            changed = {item: cell for item, cell in fields.items() if item not in key}
            setters = ", ".join(f"{quoted_column(item)} = {mark}" for item in changed)
            where = " AND ".join(f"{quoted_column(item)} = {mark}" for item in key)
            statement = f"UPDATE {name} SET {setters} WHERE {where}"  # noqa: S608
            return statement, [*_parameters(database, changed), *_parameters(database, key)]
        if not fields:
            raise DataError("the record has no fields for a row")
        columns = ", ".join(map(quoted_column, fields))
        marks = ", ".join([mark] * len(fields))
        statement = f"INSERT INTO {name} ({columns}) VALUES ({marks})"  # noqa: S608
        if self._mode == "upsert":
            rest = [item for item in fields if item not in key]
            setters = ", ".join(f"{quoted_column(item)} = EXCLUDED.{quoted_column(item)}" for item in rest)
            action = f"UPDATE SET {setters}" if rest else "NOTHING"
            statement += f" ON CONFLICT ({', '.join(map(quoted_column, key))}) DO {action}"
        return statement, _parameters(database, fields)

    def _key_of(self, record: Record) -> "_Fields":
        match self._key_mode:
            case "none":
                return {}
            case "kafka":
                assert record.origin is not None, "a sink's records come from topics"
                names = self._key_fields or _KAFKA_FIELDS
                cells = (record.origin.topic, record.origin.partition, record.origin.offset)
                return dict(zip(names, zip((STRING, INT32, INT64), cells, strict=True), strict=True))
            case "record_key":
                return self._record_key(record)
        value = self._all_fields(record.value_schema, record.value)
        missing = [name for name in self._key_fields if name not in value]
        if missing or not self._key_fields:
            raise DataError(f"pk.fields names {missing or 'nothing'}: the value does not have it")
        return {name: value[name] for name in self._key_fields}

    def _record_key(self, record: Record) -> "_Fields":
        if record.key is None:
            raise DataError("pk.mode is record_key, and the record has no key")
        if isinstance(record.key, Mapping):
            fields = self._all_fields(record.key_schema, record.key)
            missing = [name for name in self._key_fields if name not in fields]
            if missing or not fields:
                raise DataError(f"the key has no {missing or 'fields'}: a row needs all that pk.fields names")
            return {name: fields[name] for name in self._key_fields or fields}
        if len(self._key_fields) != 1:
            raise DataError("the key is a single value: name one column for it in pk.fields")
        return {self._key_fields[0]: (record.key_schema or infer(record.key), record.key)}

    def _value_of(self, record: Record) -> "_Fields":
        fields = self._all_fields(record.value_schema, record.value)
        return {name: fields[name] for name in fields if not self._fields or name in self._fields}

    def _all_fields(self, schema: Schema | None, value: Any) -> "_Fields":
        if not isinstance(value, Mapping):
            raise DataError("the value is not a struct: choose a converter with fields, or use HoistField")
        if schema is None or schema.type is not Type.STRUCT:
            return {str(name): (infer(cell), cell) for name, cell in value.items()}
        return {item.name: (item.schema, value.get(item.name)) for item in schema.fields}

    def _prepare(self, database: Database, table: str, key: "_Fields", value: "_Fields") -> None:
        """See that the table has all columns, if it may be changed."""
        wanted = {**value, **key}
        if wanted.keys() <= self._known.get(table, set()):
            return
        there = {item.name for item in database.columns(table)}
        missing = {name: cell for name, cell in wanted.items() if name not in there}
        if missing and (self._evolves if there else self._creates):
            try:
                _change_table(database, table, key, missing, is_new=not there)
            except DatabaseGone:
                raise
            except DatabaseError as error:
                raise DataError(f"table {table!r} cannot have the columns of the record: {error}") from error
        elif missing:
            what = f"columns {', '.join(missing)}" if there else "such table"
            advice = "auto.evolve" if there else "auto.create"
            raise ConnectError(f"table {table!r} has no {what}: add them, or set {advice}=true")
        self._known[table] = self._known.get(table, set()) | there | wanted.keys()


_Fields = dict[str, tuple[Schema, Any]]


def _parameters(database: Database, fields: _Fields) -> list[Any]:
    return [database.to_parameter(schema, _plain(cell)) for schema, cell in fields.values()]


def _plain(cell: Any) -> Any:
    if isinstance(cell, Mapping | list):
        from ottla.connect.converters.plain import text_of

        return text_of(None, cell)
    return cell


def _change_table(database: Database, table: str, key: _Fields, missing: _Fields, *, is_new: bool) -> None:
    """Give a table the columns that it lacks."""
    if is_new:
        _create(database, table, key, missing)
        return
    for name, (schema, _) in missing.items():
        kind = database.type_name(schema)
        database.transact([(f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted_column(name)} {kind}", [()])])


def _create(database: Database, table: str, key: _Fields, fields: _Fields) -> None:
    columns = [
        f"{quoted_column(name)} {database.type_name(schema)}"
        + ("" if schema.is_optional and name not in key else " NOT NULL")
        for name, (schema, _) in fields.items()
    ]
    if key:
        columns.append(f"PRIMARY KEY ({', '.join(map(quoted_column, key))})")
    database.transact([(f"CREATE TABLE IF NOT EXISTS {quoted(table)} ({', '.join(columns)})", [()])])


def create_offsets(database: Database) -> None:
    """Create the table of offsets."""
    statement = (
        f"CREATE TABLE IF NOT EXISTS {OFFSETS_TABLE} (connector VARCHAR(500) NOT NULL, "
        "topic VARCHAR(500) NOT NULL, kafka_partition INT NOT NULL, next_offset BIGINT NOT NULL, "
        "PRIMARY KEY (connector, topic, kafka_partition))"
    )
    database.transact([(statement, [()])])


def add_offsets(database: Database, connector: str, partitions: Iterable[TopicPartition]) -> None:
    """See that there is a row to lock for each partition, also before the first record."""
    marks = ", ".join([database.placeholder] * 4)
    rows = [(connector, where.topic, where.partition, _UNKNOWN) for where in partitions]
    if rows:
        statement = f"INSERT INTO {OFFSETS_TABLE} VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608
        database.transact([(statement, rows)])


def read_offsets(
    database: Database, connector: str, *, for_update: bool = False
) -> dict[TopicPartition, int]:
    """Return from where a connector goes on, in the partitions where that is known."""
    statement = (
        f"SELECT topic, kafka_partition, next_offset FROM {OFFSETS_TABLE} "  # noqa: S608
        f"WHERE connector = {database.placeholder} AND next_offset > {_UNKNOWN}"
    )
    if for_update:
        statement = f"{statement.rpartition(' AND ')[0]} {database.for_update}"
    rows = database.query(statement, (connector,))[1]
    return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in rows}


def offset_statement(
    database: Database, connector: str, offsets: Mapping[TopicPartition, int]
) -> tuple[str, list[Sequence[Any]]]:
    """Return the statement that keeps offsets."""
    marks = ", ".join([database.placeholder] * 4)
    statement = (
        f"INSERT INTO {OFFSETS_TABLE} VALUES ({marks}) ON CONFLICT (connector, topic, kafka_partition) "  # noqa: S608
        "DO UPDATE SET next_offset = EXCLUDED.next_offset"
    )
    return statement, [(connector, where.topic, where.partition, offset) for where, offset in offsets.items()]


def _alter_offsets(
    connector: str, config: Config, offsets: Mapping[TopicPartition, int | None] | None
) -> None:
    """Change the offsets that the database keeps. None for all: the connector begins at the beginning."""
    database = open_database(config)
    try:
        create_offsets(database)
        mark = database.placeholder
        forget = f"DELETE FROM {OFFSETS_TABLE} WHERE connector = {mark}"  # noqa: S608
        if offsets is None:
            database.transact([(forget, [(connector,)])])
            return
        kept = {where: offset for where, offset in offsets.items() if offset is not None}
        removed = [(connector, where.topic, where.partition) for where in offsets if where not in kept]
        statements: list[tuple[str, Sequence[Sequence[Any]]]] = []
        if removed:
            statements.append((f"{forget} AND topic = {mark} AND kafka_partition = {mark}", removed))
        if kept:
            statements.append(offset_statement(database, connector, kept))
        database.transact(statements)
    finally:
        database.close()


def _errors(config: Config) -> dict[str, list[str]]:
    errors = check_url(config)
    if config.get("insert.mode", "insert") != "insert" and config.get("pk.mode", "none") == "none":
        errors["pk.mode"] = ["upsert and update need to know the key of a row: set pk.mode"]
    if config.get("delete.enabled", "false").lower() == "true" and config.get("pk.mode") != "record_key":
        errors["delete.enabled"] = ["Deletes are only supported with pk.mode=record_key"]
    return errors


def _task_configs(config: Config, tasks_max: int) -> list[dict[str, str]]:
    """Let as many tasks share the partitions as there may be; the group divides them."""
    return [dict(config) for _ in range(tasks_max)]


PLUGINS: Final = (
    ConnectorPlugin(
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        PluginKind.SINK,
        TableSinkTask,
        _KEYS,
        doc="Records to rows, by insert, upsert or update. Offsets are kept in the table "
        f"`{OFFSETS_TABLE}` of the same database.",
        delivery="exactly once",
        task_class="io.confluent.connect.jdbc.sink.JdbcSinkTask",
        task_configs=_task_configs,
        errors=_errors,
        alter_sink_offsets=_alter_offsets,
        unsupported=SINK_UNSUPPORTED,
        needless=SINK_NEEDLESS,
    ),
)
