"""Changes of rows as records of Debezium's form: with the row before and after, and where they come from."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.connect.connectors.sql.column_rules import Change as ColumnChange
from ottla.connect.connectors.sql.database import named_row
from ottla.connect.connectors.sql.pgoutput import UNCHANGED, Cell, Change, Unchanged
from ottla.connect.connectors.sql.postgres_catalog import Table
from ottla.connect.connectors.sql.postgres_values import from_text
from ottla.connect.data.record import Header, Record
from ottla.connect.data.schema import INT64, STRING, Schema, Type, optional, struct, to_ms
from ottla.connect.errors import DataError

_UNAVAILABLE: Final = "__debezium_unavailable_value"
_NEW_KEY: Final = "__debezium.newkey"
_OLD_KEY: Final = "__debezium.oldkey"
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
_Row = dict[str, Any]


class RecordColumn(NamedTuple):
    """A column of a table, and how its values are shown."""

    name: str
    schema: Schema
    is_key: bool = False
    is_shown: bool = True
    """Whether rows have it. Keys have it in any case."""
    change: ColumnChange | None = None
    """What is done to its values."""


class Moment(NamedTuple):
    """Where and when something was read, and the position behind it."""

    lsn: int
    xid: int | None
    when_ms: int
    offset: Mapping[str, Any]


class TableRecords:
    """Makes the records of one table."""

    def __init__(
        self,
        prefix: str,
        database: str,
        table: Table,
        columns: Iterable[RecordColumn],
        *,
        adds_tombstones: bool,
    ) -> None:
        self._prefix = prefix
        self._database = database
        self._table = table
        self._adds_tombstones = adds_tombstones
        self._partition = {"server": prefix}
        self.topic = f"{prefix}.{table}"
        self._listed = list(columns)
        self._declare()

    def _declare(self) -> None:
        listed = self._listed
        self._columns = [(item.name, item.schema) for item in listed]
        self._required = [item.name for item in listed if not item.schema.is_optional]
        self.keys = [item.name for item in listed if item.is_key]
        self._changes = {item.name: item.change for item in listed if item.change is not None}
        self._hidden = [item.name for item in listed if not item.is_shown]
        shown = {item.name: item.schema for item in listed if item.is_shown}
        row = struct(shown, name=f"{self.topic}.Value", is_optional=True)
        key = {item.name: item.schema for item in listed if item.is_key}
        self._key_schema = struct(key, name=f"{self.topic}.Key") if self.keys else None
        self._envelope = struct(
            {
                "before": _all_optional(row),
                "after": row,
                "source": _SOURCE,
                "op": STRING,
                "ts_ms": optional(INT64),
            },
            name=f"{self.topic}.Envelope",
        )

    def _admit_nulls(self, row: _Row) -> None:
        """Take note that columns may be empty. The catalog says of now that they may not, and a row of the
        log can be older, or of a value that the log does not have.
        """
        if any(row[name] is None for name in self._required):
            self._listed = [
                item._replace(schema=optional(item.schema)) if row[item.name] is None else item
                for item in self._listed
            ]
            self._declare()

    def of_row(self, cells: Sequence[str | None], at: Moment) -> Record:
        """Return the record of a row that was there."""
        try:
            after = self._row(cells, None)
        except DataError as error:
            return self._unmade(error, at)
        return self._record("r", None, after, at)

    def of_truncate(self, at: Moment) -> Record:
        """Return the record of an emptied table."""
        return self._record("t", None, None, at)

    def of_change(self, change: Change, at: Moment) -> list[Record]:
        """Return the records of a change. Another key for a row ends the old row and begins a new one."""
        try:
            before, after = self._images(change)
        except DataError as error:
            return [self._unmade(error, at)]
        if change.kind == "d":
            return self._deletion(before, at)
        if change.kind == "u" and before is not None and self.keys and self._key(before) != self._key(after):
            moved_to = Header(_NEW_KEY, self._key_schema, self._key(after))
            moved_from = Header(_OLD_KEY, self._key_schema, self._key(before))
            return [
                *self._deletion(before, at, moved_to),
                self._record("c", None, after, at, moved_from),
            ]
        return [self._record(change.kind, before, after, at)]

    def _images(self, change: Change) -> tuple[_Row | None, _Row | None]:
        """Return the row before and after a change, as far as the log has them."""
        before = None
        if change.before is not None and change.is_key_only:
            # The other cells are empty there, whatever they were.
            empty = [
                cell if name in self.keys else None
                for (name, _), cell in zip(self._columns, change.before, strict=True)
            ]
            before = self._row(empty, None)
        elif change.before is not None:
            before = self._row(change.before, None)
        after = None if change.after is None else self._row(change.after, before)
        return before, after

    def _row(self, cells: Sequence[Cell], before: _Row | None) -> _Row:
        def typed(schema: Schema, cell: Cell) -> Any:
            if cell is None or isinstance(cell, Unchanged):
                return cell
            return from_text(schema, cell)

        if self._hidden:
            # What nobody sees need not be converted, and is named in no error.
            needed = [name in self.keys or name not in self._hidden for name, _ in self._columns]
            cells = [cell if is_needed else None for cell, is_needed in zip(cells, needed, strict=True)]
        row = named_row(str(self._table), self._columns, cells, self.keys, typed)
        for name, schema in self._columns:
            if row[name] is UNCHANGED:
                known = None if before is None else before.get(name)
                row[name] = known if known is not None else _unavailable(schema)
            elif (change := self._changes.get(name)) is not None:
                row[name] = change(row[name])
        return row

    def _shown(self, row: _Row | None) -> _Row | None:
        if row is None or not self._hidden:
            return row
        return {name: value for name, value in row.items() if name not in self._hidden}

    def _key(self, row: _Row | None) -> _Row | None:
        return {name: (row or {}).get(name) for name in self.keys} if self.keys else None

    def _deletion(self, before: _Row | None, at: Moment, *headers: Header) -> list[Record]:
        records = [self._record("d", before, None, at, *headers)]
        if self._adds_tombstones:
            key = records[0].key
            records.append(
                Record(
                    self.topic,
                    None,
                    self._key_schema,
                    key,
                    None,
                    None,
                    at.when_ms,
                    headers,
                    source_partition=self._partition,
                    source_offset=at.offset,
                )
            )
        return records

    def _record(
        self, kind: str, before: _Row | None, after: _Row | None, at: Moment, *headers: Header
    ) -> Record:
        if after is not None:
            self._admit_nulls(after)
        source = {
            "connector": "postgresql",
            "name": self._prefix,
            "ts_ms": at.when_ms,
            "snapshot": "true" if kind == "r" else "false",
            "db": self._database,
            "schema": self._table.schema,
            "table": self._table.name,
            "txId": at.xid,
            "lsn": at.lsn,
        }
        now_ms = to_ms(datetime.datetime.now(datetime.UTC))
        value = {
            "before": self._shown(before),
            "after": self._shown(after),
            "source": source,
            "op": kind,
            "ts_ms": now_ms,
        }
        key = None if kind == "t" else self._key(after if after is not None else before)
        return Record(
            self.topic,
            None,
            None if key is None else self._key_schema,
            key,
            self._envelope,
            value,
            at.when_ms,
            headers,
            source_partition=self._partition,
            source_offset=at.offset,
        )

    def _unmade(self, error: DataError, at: Moment) -> Record:
        return Record(
            self.topic,
            None,
            None,
            None,
            None,
            None,
            at.when_ms,
            source_partition=self._partition,
            source_offset=at.offset,
            problem=error,
        )


def _all_optional(row: Schema) -> Schema:
    """Return the schema of a row before a change, of which the log may have only the key."""
    fields = {item.name: optional(item.schema) for item in row.fields}
    # Another schema has to have another name.
    return struct(fields, name=f"{row.name}.Before", is_optional=True)


def _unavailable(schema: Schema) -> Any:
    if schema.type is Type.STRING:
        return _UNAVAILABLE
    return _UNAVAILABLE.encode() if schema.type is Type.BYTES else None
