"""Rows that are still to be committed to a table."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa

from ottla.connect.connectors.lake.rows import Columns, with_key
from ottla.connect.data.arrow import to_tables
from ottla.connect.data.record import Record
from ottla.connect.errors import DataError
from ottla.model.ids import TopicPartition


class Pending(Protocol):
    """What was put of the partitions of a topic."""

    @property
    def count(self) -> int:
        """About how many rows there are."""

    def add(self, where: TopicPartition, records: Sequence[Record]) -> None:
        """Take records on. Raises DataError, and takes none of them, if one does not fit."""

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions."""

    def rows(self) -> tuple[Any, tuple[str, ...], Any]:
        """Return the rows to write, the columns of the key, and the keys of rows that are gone."""

    def clear(self) -> None:
        """Forget everything: it was committed."""


class AppendedRows:
    """Each record is a row. A record without a value is none."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._tables: dict[TopicPartition, list[Any]] = {}
        self._count = 0

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self._count

    def add(self, where: TopicPartition, records: Sequence[Record]) -> None:
        """Take records on."""
        with_value = [record for record in records if record.value is not None]
        if not with_value:
            return
        rows = self._columns.rows(with_value)
        self._columns.learn(rows)
        self._tables.setdefault(where, []).append(rows)
        self._count += rows.num_rows

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions."""
        for where in partitions:
            self._count -= sum(rows.num_rows for rows in self._tables.pop(where, ()))

    def rows(self) -> tuple[Any, tuple[str, ...], Any]:
        """Return all rows as one table."""
        tables = [rows for listed in self._tables.values() for rows in listed]
        return (pa.concat_tables(tables, promote_options="permissive") if tables else None), (), None

    def clear(self) -> None:
        """Forget everything."""
        self._tables.clear()
        self._count = 0


class ReplacedRows:
    """Each key has one row: that of its last record. A record without a value removes it."""

    def __init__(self, columns: Columns, keys: Sequence[str]) -> None:
        self._columns = columns
        self._named = tuple(keys)
        self._keys: tuple[str, ...] = self._named
        self._last: dict[TopicPartition, dict[tuple[Any, ...], tuple[int, Record]]] = {}
        """The last record of each key, and how many came before it: partitions may share a key."""
        self._taken = 0

    @property
    def count(self) -> int:
        """How many keys there are."""
        return sum(map(len, self._last.values()))

    def add(self, where: TopicPartition, records: Sequence[Record]) -> None:
        """Take records on."""
        keyed = [(self._key(record), record) for record in records]
        rows = [with_key(record, key) for key, record in keyed if record.value is not None]
        if rows:
            self._columns.learn(self._columns.rows(rows))
        last = self._last.setdefault(where, {})
        for key, record in keyed:
            cells = tuple(key.values())
            last[cells] = self._taken, record
            self._taken += 1
            self._keys = tuple(key)

    def _key(self, record: Record) -> Mapping[str, Any]:
        """Return the cells of the key of a record."""
        key = record.key if isinstance(record.key, Mapping) else {}
        row = record.value if isinstance(record.value, Mapping) else {}
        names = self._named or tuple(key)
        if not names:
            raise DataError("the key of the record has no fields: name the columns in table.key.columns")
        if self._keys and names != self._keys and not self._named and self._last:
            raise DataError(f"the key has the fields {', '.join(names)}, and had {', '.join(self._keys)}")
        cells = {name: row.get(name, key.get(name)) for name in names}
        missing = [name for name, cell in cells.items() if cell is None]
        if missing:
            raise DataError(f"the record has no value for {', '.join(missing)}, of which its key consists")
        try:
            hash(tuple(cells.values()))
        except TypeError as error:
            raise DataError(f"{', '.join(cells)} cannot be a key: a list or a map is none") from error
        return cells

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions."""
        for where in partitions:
            self._last.pop(where, None)

    def rows(self) -> tuple[Any, tuple[str, ...], Any]:
        """Return the last row of each key, and the keys without one."""
        written, gone = [], []
        # The order of rows is that of the last changes.
        in_order = sorted((item for last in self._last.values() for item in last.items()), key=_number)
        for record in {cells: record for cells, (_, record) in in_order}.values():
            key = self._key(record)
            if record.value is not None:
                written.append(with_key(record, key))
            else:
                gone.append(replace(record, value_schema=None, value=dict(key)))
        rows = self._columns.rows(written) if written else None
        deleted = pa.concat_tables(to_tables(gone), promote_options="permissive") if gone else None
        return rows, self._keys, deleted

    def clear(self) -> None:
        """Forget everything."""
        self._last.clear()


def _number(item: tuple[Any, tuple[int, Record]]) -> int:
    return item[1][0]
