"""Changes of tables of PostgreSQL: first the rows that are there, then each change, with the row before and
after.

The slot is made before the rows are read. Transactions that the rows contain already are left out of the
stream, by the numbers of transactions that were visible to the read. All rows are one transaction of the
producer. A change is read from the slot without moving it, written with its position, and only then the slot
moves on. So each change is in the topic exactly once, whatever dies in between.
"""

import asyncio
import datetime
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from ottla.connect.configs.keys import Importance, Key, Kind, at_least, one_of, parse
from ottla.connect.connectors.sql.database import Column, Row, quoted
from ottla.connect.connectors.sql.debezium_options import NEEDLESS, UNSUPPORTED
from ottla.connect.connectors.sql.pgoutput import (
    UNCHANGED,
    Begin,
    Cell,
    Change,
    Commit,
    Relation,
    RelationColumn,
    Truncate,
    decode,
)
from ottla.connect.data.record import Record
from ottla.connect.data.schema import (
    INT64,
    STRING,
    Schema,
    Type,
    optional,
    struct,
    to_ms,
)
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config, ConnectorPlugin, Offset, PluginKind
from ottla.connect.running.task import SourceContext, SourceTask

_LOW, _MEDIUM = Importance.LOW, Importance.MEDIUM
_LSN: Final = "lsn"
_SNAPSHOT: Final = "snapshot_txns"
_POSTGRES_EPOCH: Final = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_UNAVAILABLE: Final = "__debezium_unavailable_value"
_ADVANCE_S: Final = 10.0
_BATCHES_AT_ONCE_MAX: Final = 16

_KEYS: Final = (
    Key("database.hostname", Kind.STRING, "The host of the server."),
    Key("database.port", Kind.INT, "The port of the server.", 5432),
    Key("database.user", Kind.STRING, "A user who may use logical decoding."),
    Key("database.password", Kind.PASSWORD, "The password of the user.", None),
    Key("database.dbname", Kind.STRING, "The database."),
    Key("database.sslmode", Kind.STRING, "Whether to use TLS, by the names of PostgreSQL.", "", _MEDIUM),
    Key("database.sslcert", Kind.STRING, "The certificate of the client, as PEM.", "", _MEDIUM),
    Key("database.sslkey", Kind.STRING, "The key of the certificate, as PEM.", "", _MEDIUM),
    Key("database.sslpassword", Kind.PASSWORD, "The password of the key.", None, _MEDIUM),
    Key("database.sslrootcert", Kind.STRING, "The authorities of the server, as PEM.", "", _MEDIUM),
    Key("topic.prefix", Kind.STRING, "The topic of a table is this, its schema and its name, with dots."),
    Key("table.include.list", Kind.LIST, "Patterns of tables, as schema.table. Empty: all.", []),
    Key("table.exclude.list", Kind.LIST, "Patterns of tables not to follow.", []),
    Key("schema.include.list", Kind.LIST, "Patterns of schemas. Empty: all.", []),
    Key("schema.exclude.list", Kind.LIST, "Patterns of schemas not to follow.", []),
    Key("slot.name", Kind.STRING, "The replication slot. It is made if it is not there.", "debezium"),
    Key(
        "slot.drop.on.stop",
        Kind.BOOLEAN,
        "Whether the slot is dropped when the task stops. Changes are lost then: only for tests.",
        False,
        _LOW,
    ),
    Key(
        "publication.name", Kind.STRING, "The publication. It is made if it is not there.", "dbz_publication"
    ),
    Key(
        "publication.autocreate.mode",
        Kind.STRING,
        "filtered: the publication gets the tables that are followed. disabled: it must have them.",
        "filtered",
        _MEDIUM,
        check=one_of("filtered", "disabled"),
    ),
    Key(
        "skipped.operations",
        Kind.LIST,
        "Changes that are left out: c, u, d, or t for TRUNCATE. Without t a TRUNCATE stops the task, since "
        "its rows go without a change for each.",
        [],
        _MEDIUM,
    ),
    Key(
        "snapshot.fetch.size",
        Kind.INT,
        "How many of the rows that are there are read at once.",
        2000,
        _MEDIUM,
        check=at_least(1),
    ),
    Key(
        "plugin.name",
        Kind.STRING,
        "The plugin of logical decoding: pgoutput, which PostgreSQL has from version 10 on.",
        "pgoutput",
        _MEDIUM,
        check=one_of("pgoutput"),
    ),
    Key(
        "snapshot.mode",
        Kind.STRING,
        "initial: the rows that are there, then changes. no_data or never: only changes. initial_only: only "
        "the rows that are there.",
        "initial",
        _MEDIUM,
        check=one_of("initial", "no_data", "never", "initial_only"),
    ),
    Key(
        "tombstones.on.delete",
        Kind.BOOLEAN,
        "Whether a deletion is followed by a record without a value, for compaction.",
        True,
        _MEDIUM,
    ),
    Key(
        "poll.interval.ms",
        Kind.LONG,
        "How long to wait when there was nothing new.",
        500,
        _LOW,
        check=at_least(1),
    ),
    Key(
        "max.batch.size",
        Kind.INT,
        "How many changes are read at once, up to 16 times as many if it is behind. Transactions are never "
        "divided.",
        2048,
        _LOW,
        check=at_least(1),
    ),
)
_TLS: Final = ("sslmode", "sslcert", "sslkey", "sslrootcert", "sslpassword")


class _Visible(NamedTuple):
    """Which transactions the rows that were read contain."""

    lowest: int
    highest: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> "_Visible":
        lowest, highest, running = text.split(":")
        return cls(int(lowest), int(highest), frozenset(int(part) for part in running.split(",") if part))

    def has(self, xid: int) -> bool:
        """Say whether a transaction was committed before the rows were read. The log has 32 bits of it."""
        full = self.highest + ((xid - self.highest + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
        return full < self.lowest or (full < self.highest and full not in self.running)


class PostgresChangesTask(SourceTask):
    """Follows the changes of one database."""

    # All rows that are there at the beginning are one transaction.
    transaction_timeout_ms = None

    def __init__(self, config: Config) -> None:
        self._config = config
        self._prefix = config["topic.prefix"]
        self._slot = config.get("slot.name", "debezium")
        self._publication = config.get("publication.name", "dbz_publication")
        self._snapshot_mode = config.get("snapshot.mode", "initial")
        self._adds_tombstones = config.get("tombstones.on.delete", "true").lower() == "true"
        self._interval_s = int(config.get("poll.interval.ms", "500")) / 1000
        self._skipped = set(parse("list", Kind.LIST, config.get("skipped.operations", "")))
        self._rows_at_once = int(config.get("snapshot.fetch.size", "2000"))
        self._changes_max = int(config.get("max.batch.size", "2048"))
        self._partition = {"server": self._prefix}
        self._batches_at_once = 1
        self._database: Any = None
        self._seen_lsn = 0
        self._visible_text: str | None = None
        self._rows: Any = None
        self._relations: dict[int, Relation] = {}
        self._types: dict[int, _TableTypes] = {}
        self._advance_to = 0
        self._advanced_s = 0.0
        self._is_done = False

    # Opening

    async def start(self, context: SourceContext) -> None:
        """Connect, and make the publication and the slot."""
        self._database = await asyncio.to_thread(self._open)
        offset = context.position(self._partition)
        await asyncio.to_thread(self._prepare, self._database, offset)

    def _open(self) -> Any:
        from ottla.connect.connectors.sql.postgres import PostgresDatabase

        settings = {
            "host": self._config["database.hostname"],
            "port": self._config.get("database.port", "5432"),
            "dbname": self._config["database.dbname"],
            "user": self._config["database.user"],
        }
        for name in ("password", *_TLS):
            if self._config.get(f"database.{name}"):
                settings[name] = self._config[f"database.{name}"]
        return PostgresDatabase(settings)

    def _prepare(self, database: Any, offset: Mapping[str, Any] | None) -> None:
        level = database.query("SHOW wal_level")[1][0][0]
        if level != "logical":
            raise ConnectError(
                f"wal_level of PostgreSQL is {level}: set it to logical, and restart the server"
            )
        tables = self._tables(database)
        if not tables:
            raise ConnectError("no table matches table.include.list: create it first, or change the list")
        self._publish(database, tables)
        has_slot = bool(
            database.query("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", (self._slot,))[1]
        )
        if offset is not None and _LSN in offset:
            if not has_slot:
                raise ConnectError(
                    f"the replication slot {self._slot!r} is gone, and with it the changes since the last "
                    "one that was read: reset the offsets of the stopped connector to begin with all rows"
                )
            self._seen_lsn = int(offset[_LSN])
            self._visible_text = offset.get(_SNAPSHOT)
            self._is_done = self._snapshot_mode == "initial_only"
            return
        if not has_slot:
            database.query("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (self._slot,))
        if self._snapshot_mode in ("initial", "initial_only"):
            self._rows = self._read_all_rows(database, tables)

    def _tables(self, database: Any) -> list[str]:
        rows = database.query(
            "SELECT schemaname, tablename FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
        )[1]
        return [
            f"{schema}.{table}"
            for schema, table in rows
            if self._is_chosen("schema", schema) and self._is_chosen("table", f"{schema}.{table}")
        ]

    def _is_chosen(self, kind: str, name: str) -> bool:
        wanted = parse("list", Kind.LIST, self._config.get(f"{kind}.include.list", ""))
        refused = parse("list", Kind.LIST, self._config.get(f"{kind}.exclude.list", ""))
        return (not wanted or _matches(name, wanted)) and not _matches(name, refused)

    def _publish(self, database: Any, tables: list[str]) -> None:
        """See that the publication has the tables, and no others if it is made here."""
        there = database.query(
            "SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = %s",
            (self._publication,),
        )[1]
        exists = database.query("SELECT 1 FROM pg_publication WHERE pubname = %s", (self._publication,))[1]
        name = '"' + self._publication.replace('"', '""') + '"'
        missing = [table for table in tables if (table,) not in [tuple(row) for row in there]]
        if missing and self._config.get("publication.autocreate.mode") == "disabled":
            raise ConnectError(
                f"the publication {self._publication!r} does not have {', '.join(missing)}: add them, or set "
                "publication.autocreate.mode=filtered"
            )
        if not exists:
            database.query(f"CREATE PUBLICATION {name} FOR TABLE {', '.join(map(quoted, tables))}")
        elif missing:
            database.query(f"ALTER PUBLICATION {name} ADD TABLE {', '.join(map(quoted, missing))}")

    # Rows that are there

    def _read_all_rows(self, database: Any, tables: list[str]) -> Any:
        """Yield the rows of all tables, as one moment shows them."""
        lsn = database.query(
            "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s", (self._slot,)
        )[1][0][0]
        database.query("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        self._visible_text = str(database.query("SELECT pg_current_snapshot()::text")[1][0][0])
        now_ms = to_ms(datetime.datetime.now(datetime.UTC))
        offset: dict[str, Any] = {_LSN: _lsn(lsn), _SNAPSHOT: self._visible_text}
        for number, table in enumerate(tables):
            columns = database.columns(table)
            types = _TableTypes(
                self._prefix, table, [(item.name, item.schema, item.is_key) for item in columns]
            )
            cursor = f"ottla_{number}"
            names = ", ".join(
                quoted(item.name) if "." not in item.name else f'"{item.name}"' for item in columns
            )
            database.query(f"DECLARE {cursor} NO SCROLL CURSOR FOR SELECT {names} FROM {quoted(table)}")  # noqa: S608
            while rows := database.query(f"FETCH {self._rows_at_once} FROM {cursor}")[1]:
                yield [self._read_record(types, columns, row, now_ms, offset) for row in rows]
        database.query("COMMIT")
        self._seen_lsn = max(self._seen_lsn, int(offset[_LSN]))

    def _read_record(
        self, types: "_TableTypes", columns: list[Column], row: Row, now_ms: int, offset: Mapping[str, Any]
    ) -> Record:
        from ottla.connect.connectors.sql.postgres import typed

        after = {item.name: typed(item.schema, cell) for item, cell in zip(columns, row, strict=True)}
        source = self._source(types, int(offset[_LSN]), None, now_ms, is_snapshot=True)
        return self._record(types, "r", None, after, source, now_ms, offset)

    # Changes

    @property
    def may_commit(self) -> bool:
        """Say whether all rows that were there have been returned."""
        return self._rows is None

    async def poll(self) -> Sequence[Record]:
        """Return rows that were there, and then changes, whole transactions at a time."""
        if self._rows is not None:
            batch = await asyncio.to_thread(next, self._rows, None)
            if batch is not None:
                return list(batch)
            self._rows = None
            self._is_done = self._snapshot_mode == "initial_only"
        records = [] if self._is_done else await asyncio.to_thread(self._read_changes)
        if not records:
            await asyncio.sleep(self._interval_s)
        return records

    def _read_changes(self) -> list[Record]:
        now = self._database.query("SELECT pg_current_wal_lsn()")[1][0][0]
        limit = self._changes_max * self._batches_at_once
        rows = self._database.query(
            "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s, 'proto_version', '1', "
            "'publication_names', %s)",
            (self._slot, limit, self._publication),
        )[1]
        # The server decodes its log from an earlier place for each read. So who is behind reads more at once.
        is_behind = len(rows) >= limit
        self._batches_at_once = min(self._batches_at_once * 2, _BATCHES_AT_ONCE_MAX) if is_behind else 1
        records: list[Record] = []
        begin: Begin | None = None
        changes: list[Change] = []
        for row in rows:
            message = decode(bytes(row[0]))
            match message:
                case Relation():
                    self._learn(message)
                case Begin():
                    begin, changes = message, []
                case Change():
                    if message.kind not in self._skipped:
                        changes.append(message)
                case Commit() if begin is not None:
                    records += self._records_of(begin, message, changes)
                    self._advance_to = message.end_lsn
                case Truncate() if "t" not in self._skipped:
                    _refuse_truncate(message, self._relations)
        if not rows:
            self._advance_to = max(self._advance_to, _lsn(now))
        if not records:
            self._maybe_advance()
        return records

    def _learn(self, relation: Relation) -> None:
        from ottla.connect.connectors.sql.postgres import schema_of

        if self._relations.get(relation.oid) == relation:
            return
        self._relations[relation.oid] = relation
        name = f"{relation.schema}.{relation.table}"
        required = {item.name for item in self._database.columns(name) if not item.schema.is_optional}
        keys = {item.name for item in self._database.columns(name) if item.is_key}

        def schema(column: RelationColumn) -> Schema:
            found = schema_of(column.type_oid, column.modifier)
            return found if column.name in required else optional(found)

        self._types[relation.oid] = _TableTypes(
            self._prefix, name, [(item.name, schema(item), item.name in keys) for item in relation.columns]
        )

    def _records_of(self, begin: Begin, commit: Commit, changes: list[Change]) -> list[Record]:
        """Return the records of a transaction, or none if the topic has them already."""
        if begin.commit_lsn < self._seen_lsn:
            return []
        if self._visible_text is not None and _Visible.parse(self._visible_text).has(begin.xid):
            return []
        self._seen_lsn = commit.end_lsn
        offset: dict[str, Any] = {_LSN: commit.end_lsn, "txId": begin.xid}
        if self._visible_text is not None:
            offset[_SNAPSHOT] = self._visible_text
        when_ms = to_ms(_POSTGRES_EPOCH + datetime.timedelta(microseconds=begin.commit_us))
        records = []
        for change in changes:
            types = self._types[change.relation_oid]
            source = self._source(types, begin.commit_lsn, begin.xid, when_ms, is_snapshot=False)
            before, after = types.images(change)
            records.append(self._record(types, change.kind, before, after, source, when_ms, offset))
            if change.kind == "d" and self._adds_tombstones:
                key = records[-1].key
                records.append(
                    Record(
                        types.topic,
                        None,
                        types.key_schema,
                        key,
                        None,
                        None,
                        when_ms,
                        source_partition=self._partition,
                        source_offset=offset,
                    )
                )
        return records

    def _source(
        self, types: "_TableTypes", lsn: int, xid: int | None, when_ms: int, *, is_snapshot: bool
    ) -> dict[str, Any]:
        return {
            "connector": "postgresql",
            "name": self._prefix,
            "ts_ms": when_ms,
            "snapshot": "true" if is_snapshot else "false",
            "db": self._config["database.dbname"],
            "schema": types.schema_name,
            "table": types.table,
            "txId": xid,
            "lsn": lsn,
        }

    def _record(
        self,
        types: "_TableTypes",
        kind: str,
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
        source: dict[str, Any],
        when_ms: int,
        offset: Mapping[str, Any],
    ) -> Record:
        now_ms = to_ms(datetime.datetime.now(datetime.UTC))
        value = {"before": before, "after": after, "source": source, "op": kind, "ts_ms": now_ms}
        row = after if after is not None else before or {}
        key = {name: row.get(name) for name in types.keys} if types.keys else None
        return Record(
            types.topic,
            None,
            types.key_schema if types.keys else None,
            key,
            types.envelope,
            value,
            when_ms,
            source_partition=self._partition,
            source_offset=offset,
        )

    async def committed(self) -> None:
        """Let PostgreSQL forget the changes that are in the topic."""
        await asyncio.to_thread(self._advance)

    def _maybe_advance(self) -> None:
        """Move the slot on also when nothing concerns us, so that the server need not keep its log."""
        now_s = time.monotonic()
        if self._advance_to and now_s - self._advanced_s > _ADVANCE_S:
            self._advance()

    def _advance(self) -> None:
        self._advanced_s = time.monotonic()
        if self._advance_to:
            text = f"{self._advance_to >> 32:X}/{self._advance_to & 0xFFFFFFFF:X}"
            self._database.query("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (self._slot, text))

    async def stop(self) -> None:
        """Close the connection."""
        if self._database is not None:
            await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._config.get("slot.drop.on.stop", "false").lower() == "true":
            self._database.query("SELECT pg_drop_replication_slot(%s)", (self._slot,))
        self._database.close()


class _TableTypes:
    """The schemas of a table's records."""

    def __init__(self, prefix: str, name: str, columns: Iterable[tuple[str, Schema, bool]]) -> None:
        self.schema_name, _, self.table = name.partition(".")
        self.topic = f"{prefix}.{name}"
        listed = list(columns)
        self.columns = [(column, schema) for column, schema, _ in listed]
        self.keys = [column for column, _, is_key in listed if is_key]
        row = struct(dict(self.columns), name=f"{self.topic}.Value", is_optional=True)
        key = {column: schema for column, schema, is_key in listed if is_key}
        self.key_schema = struct(key, name=f"{self.topic}.Key")
        self.envelope = struct(
            {
                "before": _all_optional(row),
                "after": row,
                "source": _SOURCE,
                "op": STRING,
                "ts_ms": optional(INT64),
            },
            name=f"{self.topic}.Envelope",
        )

    def images(self, change: Change) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Return the row before and after a change, as far as the log has them."""
        before = None if change.before is None else self._row(change.before, None)
        after = None if change.after is None else self._row(change.after, before)
        if before is not None and change.is_key_only:
            before = {name: before[name] if name in self.keys else None for name in before}
        return before, after

    def _row(self, cells: tuple[Cell, ...], before: Mapping[str, Any] | None) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for (name, schema), cell in zip(self.columns, cells, strict=True):
            if cell is UNCHANGED:
                known = None if before is None else before.get(name)
                row[name] = known if known is not None else _unavailable(schema)
            else:
                row[name] = None if cell is None else from_text(schema, str(cell))
        return row


_SOURCE: Final = struct(
    {
        "connector": STRING,
        "name": STRING,
        "ts_ms": INT64,
        "snapshot": optional(STRING),
        "db": STRING,
        "schema": STRING,
        "table": STRING,
        "txId": optional(INT64),
        "lsn": optional(INT64),
    },
    name="io.debezium.connector.postgresql.Source",
)


def _all_optional(row: Schema) -> Schema:
    """Return the schema of a row before a change, of which the log may have only the key."""
    fields = {item.name: optional(item.schema) for item in row.fields}
    # Another schema has to have another name.
    return struct(fields, name=f"{row.name}.Before", is_optional=True)


def _unavailable(schema: Schema) -> Any:
    return (
        _UNAVAILABLE
        if schema.type is Type.STRING
        else _UNAVAILABLE.encode()
        if schema.type is Type.BYTES
        else None
    )


def from_text(schema: Schema, text: str) -> Any:
    """Read a value as PostgreSQL writes it."""
    match schema.name:
        case "org.apache.kafka.connect.data.Decimal":
            return Decimal(text)
        case "org.apache.kafka.connect.data.Date":
            return datetime.date.fromisoformat(text)
        case "org.apache.kafka.connect.data.Time":
            return datetime.time.fromisoformat(text)
        case "org.apache.kafka.connect.data.Timestamp":
            when = datetime.datetime.fromisoformat(text)
            return when if when.tzinfo is not None else when.replace(tzinfo=datetime.UTC)
    match schema.type:
        case Type.BOOLEAN:
            return text == "t"
        case Type.INT16 | Type.INT32 | Type.INT64:
            return int(text)
        case Type.FLOAT32 | Type.FLOAT64:
            return float(text)
        case Type.BYTES:
            return bytes.fromhex(text.removeprefix("\\x"))
    return text


def _refuse_truncate(message: Truncate, relations: Mapping[int, Relation]) -> None:
    """Refuse to go on silently: rows have gone of which no change tells."""
    names = ", ".join(relations[oid].table for oid in message.relation_oids if oid in relations)
    raise ConnectError(
        f"TRUNCATE of {names}: the rows are gone without a change for each. Use DELETE, or publish without "
        "truncate, or set skipped.operations=t"
    )


def _lsn(text: Any) -> int:
    high, _, low = str(text).partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def _check_offsets(_config: Config, offsets: Iterable[Offset]) -> None:
    for partition, offset in offsets:
        if "server" not in partition:
            raise ConnectError("Partition objects should contain the key 'server'")
        if offset is not None and not isinstance(offset.get(_LSN), int):
            raise ConnectError(
                f"Offset objects should either be null or contain a number for the key '{_LSN}'"
            )


PLUGINS: Final = (
    ConnectorPlugin(
        "io.debezium.connector.postgresql.PostgresConnector",
        PluginKind.SOURCE,
        PostgresChangesTask,
        _KEYS,
        doc="Changes of tables by logical decoding, with the row before and after. Times and decimals are "
        "those of Connect's own types. The row before a change is complete with REPLICA IDENTITY FULL; "
        "otherwise it has the key of a deleted row.",
        delivery="exactly once",
        alias="PostgresChanges",
        task_class="io.debezium.connector.postgresql.PostgresConnectorTask",
        check_offsets=_check_offsets,
        unsupported=UNSUPPORTED,
        needless=NEEDLESS,
    ),
)
