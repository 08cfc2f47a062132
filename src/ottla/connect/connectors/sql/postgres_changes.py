"""Changes of tables of PostgreSQL: first the rows that are there, then each change, with the row before and
after.

The slot is made before the rows are read. Transactions that the rows contain already are left out of the
stream, by the numbers of transactions that were visible to the read. That ends where the log was when the
rows were read: numbers come again after 2^32 transactions. All rows are one transaction of the producer. A
change is read from the slot without moving it, written with its position, and only then the slot moves on. So
each change is in the topic exactly once, whatever dies in between.
"""

import asyncio
import datetime
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.connect.configs.keys import Importance, Key, Kind, all_patterns, at_least, one_of, parse
from ottla.connect.connectors.sql.debezium_options import NEEDLESS, UNSUPPORTED
from ottla.connect.connectors.sql.pgoutput import (
    Begin,
    Change,
    Commit,
    Relation,
    Truncate,
    decode,
)
from ottla.connect.connectors.sql.postgres_catalog import Catalog, Table, quoted_name
from ottla.connect.connectors.sql.postgres_records import Moment, TableRecords
from ottla.connect.connectors.sql.postgres_values import Precision, schema_of
from ottla.connect.data.record import Record
from ottla.connect.data.schema import optional, to_ms
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config, ConnectorPlugin, Offset, PluginKind
from ottla.connect.running.task import SourceContext, SourceTask

_LOW, _MEDIUM = Importance.LOW, Importance.MEDIUM
_LSN: Final = "lsn"
_SNAPSHOT: Final = "snapshot_txns"
_SNAPSHOT_END: Final = "snapshot_end_lsn"
_INITIAL_ONLY: Final = "initial_only"
_POSTGRES_EPOCH: Final = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
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
    Key(
        "table.include.list",
        Kind.LIST,
        "Patterns of tables, as schema.table. Empty: all.",
        [],
        check=all_patterns,
    ),
    Key("table.exclude.list", Kind.LIST, "Patterns of tables not to follow.", [], check=all_patterns),
    Key("schema.include.list", Kind.LIST, "Patterns of schemas. Empty: all.", [], check=all_patterns),
    Key("schema.exclude.list", Kind.LIST, "Patterns of schemas not to follow.", [], check=all_patterns),
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
        "Changes that are left out: c, u, d, or t for TRUNCATE. none: all changes are records.",
        ["t"],
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
        "time.precision.mode",
        Kind.STRING,
        "adaptive: times are numbers, with microseconds if the column has them. adaptive_time_microseconds: "
        "the same, with times of a day always in microseconds. connect: times are Connect's own types, in "
        "milliseconds.",
        Precision.ADAPTIVE.value,
        _MEDIUM,
        check=one_of(*(item.value for item in Precision)),
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
        self._precision = Precision(config.get("time.precision.mode", Precision.ADAPTIVE))
        self._interval_s = int(config.get("poll.interval.ms", "500")) / 1000
        self._skipped = set(parse("list", Kind.LIST, config.get("skipped.operations", "t")))
        self._rows_at_once = int(config.get("snapshot.fetch.size", "2000"))
        self._changes_max = int(config.get("max.batch.size", "2048"))
        self._partition = {"server": self._prefix}
        self._batches_at_once = 1
        self._database: Any = None
        self._catalog: Catalog | None = None
        self._seen_lsn = 0
        self._visible_text: str | None = None
        self._visible_until = 0
        """From here on in the log the rows that were read have no transaction."""
        self._rows: Any = None
        self._relations: dict[int, Relation] = {}
        self._tables: dict[int, TableRecords | None] = {}
        """By the number of the table. None: it is not followed."""
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
        is_known = offset is not None and _LSN in offset
        self._is_done = is_known and self._snapshot_mode == _INITIAL_ONLY
        if self._is_done:
            return
        catalog = self._catalog = Catalog(database, self._config)
        tables = catalog.chosen()
        # Changes of tables that are gone meanwhile are delivered all the same.
        if not tables and not is_known:
            raise ConnectError("no table matches table.include.list: create it first, or change the list")
        if self._snapshot_mode == _INITIAL_ONLY:
            # A slot that nobody moves would keep the server's log for ever.
            self._rows = self._read_all_rows(database, tables, self._lsn_of(database, "insert"))
            return
        level = database.query("SHOW wal_level")[1][0][0]
        if level != "logical":
            raise ConnectError(
                f"wal_level of PostgreSQL is {level}: set it to logical, and restart the server"
            )
        if tables:
            catalog.publish(tables)
        has_slot = self._has_slot(database)
        if offset is not None and is_known:
            if not has_slot:
                raise ConnectError(
                    f"the replication slot {self._slot!r} is gone, and with it the changes since the last "
                    "one that was read: reset the offsets of the stopped connector to begin with all rows"
                )
            self._seen_lsn = int(offset[_LSN])
            self._visible_text = offset.get(_SNAPSHOT)
            if self._visible_text is not None:
                # The end was not always kept. What the rows have was committed before now in any case.
                self._visible_until = int(offset.get(_SNAPSHOT_END) or self._lsn_of(database, "insert"))
            return
        if not has_slot:
            database.query("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (self._slot,))
        if self._snapshot_mode == "initial":
            lsn = database.query(
                "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s", (self._slot,)
            )[1][0][0]
            self._rows = self._read_all_rows(database, tables, _lsn(lsn))

    def _has_slot(self, database: Any) -> bool:
        statement = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
        return bool(database.query(statement, (self._slot,))[1])

    def _lsn_of(self, database: Any, which: str) -> int:
        return _lsn(database.query(f"SELECT pg_current_wal_{which}_lsn()")[1][0][0])

    # Rows that are there

    def _read_all_rows(self, database: Any, tables: list[Table], lsn: int) -> Any:
        """Yield the rows of all tables, as one moment shows them."""
        assert self._catalog is not None, "it was started"
        database.query("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        self._visible_text = str(database.query("SELECT pg_current_snapshot()::text")[1][0][0])
        # What the rows show was committed before this place.
        self._visible_until = self._lsn_of(database, "insert")
        now_ms = to_ms(datetime.datetime.now(datetime.UTC))
        at = Moment(lsn, None, now_ms, self._offset(lsn))
        for number, table in enumerate(tables):
            columns = self._catalog.columns(table)
            records = self._table_records(
                table,
                [(item.name, item.type_oid, item.modifier, item.is_key) for item in columns],
                {item.name for item in columns if item.is_required},
            )
            cursor = f"ottla_{number}"
            names = ", ".join(quoted_name(item.name) for item in columns)
            # A table that others inherit from has rows of its own. A partitioned one has none.
            whose = table.quoted if table.is_partitioned else f"ONLY {table.quoted}"
            database.query(f"DECLARE {cursor} NO SCROLL CURSOR FOR SELECT {names} FROM {whose}")  # noqa: S608
            while rows := database.texts(f"FETCH {self._rows_at_once} FROM {cursor}")[1]:
                yield [records.of_row(row, at) for row in rows]
        database.query("COMMIT")
        self._seen_lsn = max(self._seen_lsn, lsn)

    def _table_records(
        self, table: Table, columns: Iterable[tuple[str, int, int, bool]], required: set[str]
    ) -> TableRecords:
        typed = []
        for name, oid, modifier, is_key in columns:
            schema = schema_of(oid, modifier, self._precision)
            typed.append((name, schema if name in required else optional(schema), is_key))
        adds_tombstones = self._config.get("tombstones.on.delete", "true").lower() == "true"
        return TableRecords(
            self._prefix, self._config["database.dbname"], table, typed, adds_tombstones=adds_tombstones
        )

    def _offset(self, lsn: int, xid: int | None = None) -> dict[str, Any]:
        offset: dict[str, Any] = {_LSN: lsn}
        if xid is not None:
            offset["txId"] = xid
        if self._visible_text is not None:
            offset |= {_SNAPSHOT: self._visible_text, _SNAPSHOT_END: self._visible_until}
        return offset

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
            self._is_done = self._snapshot_mode == _INITIAL_ONLY
        records = [] if self._is_done else await asyncio.to_thread(self._read_changes)
        if not records:
            await asyncio.sleep(self._interval_s)
        return records

    def _read_changes(self) -> list[Record]:
        # What is written and not flushed yet is not decoded yet either: the slot must not pass it.
        flushed = self._lsn_of(self._database, "flush")
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
        changes: list[tuple[TableRecords, Change | None]] = []
        for row in rows:
            message = decode(bytes(row[0]))
            match message:
                case Relation():
                    self._learn(message)
                case Begin():
                    begin, changes = message, []
                case Change() if message.kind not in self._skipped:
                    changes += self._of_followed([message.relation_oid], message)
                case Truncate() if "t" not in self._skipped:
                    changes += self._of_followed(message.relation_oids, None)
                case Commit() if begin is not None:
                    records += self._records_of(begin, message, changes)
                    self._advance_to = message.end_lsn
        if not rows:
            self._advance_to = max(self._advance_to, flushed)
        if not records:
            self._maybe_advance()
        return records

    def _of_followed(
        self, oids: Iterable[int], change: Change | None
    ) -> list[tuple[TableRecords, Change | None]]:
        """Return a change with its tables; None stands for TRUNCATE."""
        found = [self._tables.get(oid) for oid in oids]
        return [(table, change) for table in found if table is not None]

    def _learn(self, relation: Relation) -> None:
        """Take note of a table, as the server has decoded it: it may have changed since, or be gone."""
        if self._relations.get(relation.oid) == relation:
            return
        assert self._catalog is not None, "it was started"
        self._relations[relation.oid] = relation
        table = self._catalog.root_of(relation.oid) or Table(relation.schema, relation.table)
        if not self._catalog.is_chosen(table):
            # The publication may have more: tables that were followed once, or that others follow.
            self._tables[relation.oid] = None
            return
        now = self._catalog.columns(relation.oid)
        if relation.identity in "di":
            keys = {item.name for item in relation.columns if item.is_key}
        else:
            keys = {item.name for item in now if item.is_key}
        self._tables[relation.oid] = self._table_records(
            table,
            [(item.name, item.type_oid, item.modifier, item.name in keys) for item in relation.columns],
            keys | {item.name for item in now if item.is_required},
        )

    def _records_of(
        self, begin: Begin, commit: Commit, changes: Sequence[tuple[TableRecords, Change | None]]
    ) -> list[Record]:
        """Return the records of a transaction, or none if the topic has them already."""
        if begin.commit_lsn < self._seen_lsn or self._is_in_rows(begin):
            return []
        self._seen_lsn = commit.end_lsn
        when_ms = to_ms(_POSTGRES_EPOCH + datetime.timedelta(microseconds=begin.commit_us))
        at = Moment(begin.commit_lsn, begin.xid, when_ms, self._offset(commit.end_lsn, begin.xid))
        records: list[Record] = []
        for table, change in changes:
            records += [table.of_truncate(at)] if change is None else table.of_change(change, at)
        return records

    def _is_in_rows(self, begin: Begin) -> bool:
        """Say whether the rows that were read have a transaction already."""
        if self._visible_text is not None and begin.commit_lsn >= self._visible_until:
            # Transactions come in the order of their commits. No later one can be.
            self._visible_text = None
        return self._visible_text is not None and _Visible.parse(self._visible_text).has(begin.xid)

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
        drops = self._config.get("slot.drop.on.stop", "false").lower() == "true"
        if drops and self._has_slot(self._database):
            self._database.query("SELECT pg_drop_replication_slot(%s)", (self._slot,))
        self._database.close()


def _lsn(text: Any) -> int:
    high, _, low = str(text).partition("/")
    return (int(high, 16) << 32) | int(low, 16)


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
        doc="Changes of tables by logical decoding, with the row before and after. A partitioned table is "
        "one, whatever its partitions. Decimals are those of Connect's own types. The row before a change is "
        "complete with REPLICA IDENTITY FULL; otherwise it has the key of a deleted row.",
        delivery="exactly once",
        alias="PostgresChanges",
        task_class="io.debezium.connector.postgresql.PostgresConnectorTask",
        check_offsets=_check_offsets,
        unsupported=UNSUPPORTED,
        needless=NEEDLESS,
    ),
)
