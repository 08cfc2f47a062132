"""Changes of tables of PostgreSQL: first the rows that are there, then each change, with the row before and
after.

The slot is made before the rows are read. Transactions that the rows contain already are left out of the
stream, by the numbers of transactions that were visible to the read. That ends where the log was when the
rows were read: numbers come again after 2^32 transactions. All rows are one transaction of the producer, and
so is each transaction of the database. Its records have the position behind it, which is confirmed to the
server when they are in the topic. So each change is in the topic exactly once, whatever dies in between.
"""

import asyncio
import datetime
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ottla.connect.configs.keys import Kind, parse
from ottla.connect.connectors.sql.column_rules import ColumnRules, column_errors
from ottla.connect.connectors.sql.debezium_options import NEEDLESS, UNSUPPORTED
from ottla.connect.connectors.sql.heartbeats import Heartbeats
from ottla.connect.connectors.sql.pgoutput import Message, Relation, decode
from ottla.connect.connectors.sql.postgres_catalog import Catalog, Table, quoted_name
from ottla.connect.connectors.sql.postgres_changes_keys import KEYS
from ottla.connect.connectors.sql.postgres_records import Moment, RecordColumn, TableRecords
from ottla.connect.connectors.sql.postgres_transactions import (
    Progress,
    Transactions,
    is_position,
    split_at_begin,
)
from ottla.connect.connectors.sql.postgres_values import MODIFIER_BASE, Decimals, Precision, schema_of
from ottla.connect.connectors.sql.replication_stream import ReadTo
from ottla.connect.data.record import Record
from ottla.connect.data.schema import STRING, optional, to_ms
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config, ConnectorPlugin, Offset, PluginKind
from ottla.connect.running.task import SourceContext, SourceTask

_logger = logging.getLogger(__name__)
_TEXTS_WITH_LENGTH: Final = (1042, 1043)
_INITIAL_ONLY: Final = "initial_only"
_SLOT_FREE_TRIES: Final = 40
_SLOT_FREE_PAUSE_S: Final = 0.25
_TLS: Final = ("sslmode", "sslcert", "sslkey", "sslrootcert", "sslpassword")


class PostgresChangesTask(SourceTask):
    """Follows the changes of one database."""

    # All rows that are there at the beginning are one transaction, and so are all changes of a large one.
    transaction_timeout_ms = None

    def __init__(self, config: Config) -> None:
        self._config = config
        self._prefix = config["topic.prefix"]
        self._slot = config.get("slot.name", "debezium")
        self._publication = config.get("publication.name", "dbz_publication")
        self._snapshot_mode = config.get("snapshot.mode", "initial")
        self._rules = ColumnRules(config)
        self._precision = Precision(config.get("time.precision.mode", Precision.ADAPTIVE))
        self._decimals = Decimals(config.get("decimal.handling.mode", Decimals.PRECISE))
        self._heartbeats = Heartbeats(config, time.monotonic())
        self._interval_s = int(config.get("poll.interval.ms", "500")) / 1000
        self._rows_at_once = int(config.get("snapshot.fetch.size", "2000"))
        self._changes_max = int(config.get("max.batch.size", "2048"))
        self._partition = {"server": self._prefix}
        self._database: Any = None
        self._catalog: Catalog | None = None
        self._rows: Any = None
        self._stream: Any = None
        self._progress = Progress()
        self._transactions: Transactions | None = None
        self._begun: list[Message | ReadTo | None] = []
        """What was read of a transaction behind the end of another one."""
        self._is_done = False

    # Opening

    async def start(self, context: SourceContext) -> None:
        """Connect, and make the publication and the slot."""
        self._database = await asyncio.to_thread(self._open)
        offset = context.position(self._partition)
        await asyncio.to_thread(self._prepare, self._database, offset)

    def _settings(self) -> dict[str, str]:
        settings = {
            "host": self._config["database.hostname"],
            "port": self._config.get("database.port", "5432"),
            "dbname": self._config["database.dbname"],
            "user": self._config["database.user"],
        }
        for name in ("password", *_TLS):
            if self._config.get(f"database.{name}"):
                settings[name] = self._config[f"database.{name}"]
        return settings

    def _open(self) -> Any:
        from ottla.connect.connectors.sql.postgres import PostgresDatabase

        return PostgresDatabase(self._settings())

    async def _follow(self) -> Any:
        from ottla.connect.connectors.sql.replication_stream import open_stream

        return await open_stream(self._settings(), self._slot, self._publication, self._progress.lsn)

    def _prepare(self, database: Any, offset: Mapping[str, Any] | None) -> None:
        is_known = is_position(offset)
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
        for table in catalog.unidentified(tables):
            _logger.warning(
                "%s has no primary key: while it is published, PostgreSQL refuses its UPDATE and DELETE. Run "
                "ALTER TABLE %s REPLICA IDENTITY FULL, or leave the table out",
                table,
                table.quoted,
            )
        has_slot = self._has_slot(database)
        if offset is not None and is_known:
            if not has_slot:
                raise ConnectError(
                    f"the replication slot {self._slot!r} is gone, and with it the changes since the last "
                    "one that was read: reset the offsets of the stopped connector to begin with all rows"
                )
            self._progress = Progress.of(offset, lambda: self._lsn_of(database, "insert"))
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
        self._progress.visible = str(database.query("SELECT pg_current_snapshot()::text")[1][0][0])
        # What the rows show was committed before this place.
        self._progress.visible_until = self._lsn_of(database, "insert")
        now_ms = to_ms(datetime.datetime.now(datetime.UTC))
        at = Moment(lsn, None, now_ms, self._progress.offset(lsn))
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
        self._progress.lsn = max(self._progress.lsn, lsn)

    def _table_records(
        self, table: Table, columns: Iterable[tuple[str, int, int, bool]], required: set[str]
    ) -> TableRecords:
        shown = [
            self._column(table, name, oid, modifier, is_key=is_key, is_required=name in required)
            for name, oid, modifier, is_key in columns
        ]
        adds_tombstones = self._config.get("tombstones.on.delete", "true").lower() == "true"
        return TableRecords(
            self._prefix, self._config["database.dbname"], table, shown, adds_tombstones=adds_tombstones
        )

    def _column(
        self, table: Table, name: str, oid: int, modifier: int, *, is_key: bool, is_required: bool
    ) -> RecordColumn:
        schema = schema_of(oid, modifier, self._precision, self._decimals)
        change = None
        if schema == STRING:
            change = self._rules.change(str(table), name, _length_max(oid, modifier))
        elif self._rules.masks(str(table), name) and self._rules.shows(str(table), name):
            raise ConnectError(
                f"column {name!r} of {table} has no text, which alone can be masked: take it out of the "
                "option, or leave it out by column.exclude.list"
            )
        if change is not None and is_key:
            raise ConnectError(
                f"column {name!r} of {table} is a part of the key, which cannot be masked or cut: take it "
                "out of the option, or choose another replica identity"
            )
        return RecordColumn(
            name,
            schema if is_required else optional(schema),
            is_key,
            self._rules.shows(str(table), name),
            change,
        )

    # Changes

    @property
    def may_commit(self) -> bool:
        """Say whether all rows that were there, and all of a transaction, have been returned."""
        return self._rows is None and not (self._transactions is not None and self._transactions.is_within)

    async def poll(self) -> Sequence[Record]:
        """Return rows that were there, and then changes."""
        if self._rows is not None:
            batch = await asyncio.to_thread(next, self._rows, None)
            if batch is not None:
                return list(batch)
            self._rows = None
            self._is_done = self._snapshot_mode == _INITIAL_ONLY
        if self._is_done:
            await asyncio.sleep(self._interval_s)
            return []
        if self._stream is None:
            skipped = parse("list", Kind.LIST, self._config.get("skipped.operations", "t"))
            self._transactions = Transactions(self._progress, skipped, self._find)
            self._stream = await self._follow()
        elif self.may_commit:
            # What nobody wants is never committed, and need not come again all the same.
            self._confirm()
        messages = await self._stream.read(self._changes_max, self._interval_s)
        records = await asyncio.to_thread(self._take, messages) if messages else []
        if self.may_commit and self._heartbeats.is_due(time.monotonic()):
            records.append(await asyncio.to_thread(self._heartbeat))
        return records

    def _heartbeat(self) -> Record:
        assert self._transactions is not None, "changes are followed"
        if self._heartbeats.query:
            self._database.query(self._heartbeats.query)
        read_to_lsn = max(self._progress.lsn, self._transactions.read_to_lsn)
        return self._heartbeats.record(self._partition, self._progress.offset(read_to_lsn))

    def _take(self, messages: Iterable[Any]) -> list[Record]:
        assert self._transactions is not None, "changes are followed"
        decoded = [decode(item) if isinstance(item, bytes) else item for item in messages]
        complete, self._begun = split_at_begin([*self._begun, *decoded])
        records: list[Record] = []
        for message in complete:
            records += self._transactions.take(message)
        return records

    def _find(self, relation: Relation) -> TableRecords | None:
        """Return how the records of a table are made, as the log has it. None: it is not followed."""
        assert self._catalog is not None, "it was started"
        table = self._catalog.root_of(relation.oid) or Table(relation.schema, relation.table)
        if not self._catalog.is_chosen(table):
            # The publication may have more: tables that were followed once, or that others follow.
            return None
        now = self._catalog.columns(relation.oid)
        if relation.identity in "di":
            keys = {item.name for item in relation.columns if item.is_key}
        else:
            keys = {item.name for item in now if item.is_key}
        return self._table_records(
            table,
            [(item.name, item.type_oid, item.modifier, item.name in keys) for item in relation.columns],
            keys | {item.name for item in now if item.is_required},
        )

    async def committed(self) -> None:
        """Let PostgreSQL forget the changes that are in the topic."""
        if self._stream is not None:
            self._confirm()

    def _confirm(self) -> None:
        assert self._transactions is not None, "changes are followed"
        self._stream.confirm(self._transactions.read_to_lsn)

    async def stop(self) -> None:
        """Close the connections."""
        if self._stream is not None:
            self._stream.close()
        if self._database is not None:
            await asyncio.to_thread(self._close)

    def _close(self) -> None:
        drops = self._config.get("slot.drop.on.stop", "false").lower() == "true"
        if drops and self._has_slot(self._database):
            self._drop_slot()
        self._database.close()

    def _drop_slot(self) -> None:
        """Drop the slot, when the server has noticed that nobody reads it any more."""
        in_use = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
        for _ in range(_SLOT_FREE_TRIES):
            if not self._database.query(in_use, (self._slot,))[1]:
                break
            time.sleep(_SLOT_FREE_PAUSE_S)
        self._database.query("SELECT pg_drop_replication_slot(%s)", (self._slot,))


def _length_max(oid: int, modifier: int) -> int | None:
    """Return how many characters a column takes."""
    return modifier - MODIFIER_BASE if oid in _TEXTS_WITH_LENGTH and modifier >= MODIFIER_BASE else None


def _lsn(text: Any) -> int:
    high, _, low = str(text).partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def _errors(config: Config) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, text in column_errors(config):
        found.setdefault(name, []).append(text)
    return found


def _check_offsets(_config: Config, offsets: Iterable[Offset]) -> None:
    for partition, offset in offsets:
        if "server" not in partition:
            raise ConnectError("Partition objects should contain the key 'server'")
        if offset is not None and not is_position(offset):
            raise ConnectError("Offset objects should either be null or contain a number for the key 'lsn'")


PLUGINS: Final = (
    ConnectorPlugin(
        "io.debezium.connector.postgresql.PostgresConnector",
        PluginKind.SOURCE,
        PostgresChangesTask,
        KEYS,
        doc="Changes of tables by logical decoding, with the row before and after. A partitioned table is "
        "one, whatever its partitions. Decimals are those of Connect's own types. The row before a change is "
        "complete with REPLICA IDENTITY FULL; otherwise it has the key of a deleted row.",
        delivery="exactly once",
        alias="PostgresChanges",
        task_class="io.debezium.connector.postgresql.PostgresConnectorTask",
        errors=_errors,
        check_offsets=_check_offsets,
        open_prefixes=("column.truncate.", "column.mask."),
        unsupported=UNSUPPORTED,
        needless=NEEDLESS,
    ),
)
