"""Tables of Iceberg.

How far the table is in a partition of the topic is a property of the table. It is changed together with the
rows, in one commit of the catalog, which refuses it if the table was changed since it was read.

Without another catalog, one is kept in a file of SQLite beside the tables.
"""

import contextlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions import And, BooleanExpression, In, Reference
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform, MonthTransform, YearTransform

from ottla.connect.connectors.lake.target import Batch, Conflict, Layout, Positions, check_begins
from ottla.connect.running.task import RetryLater
from ottla.model.ids import TopicPartition

_RETRIES: Final = "commit.retry.num-retries"
_TRANSFORMS: Final[Mapping[str | None, Any]] = {
    None: IdentityTransform,
    "year": YearTransform,
    "month": MonthTransform,
    "day": DayTransform,
    "hour": HourTransform,
}


class IcebergTarget:
    """One table of Iceberg."""

    def __init__(self, layout: Layout, name: str) -> None:
        self._layout = layout
        self._name = name
        self._open: Catalog | None = None
        self._table: Any = None

    @property
    def _catalog(self) -> Catalog:
        if self._open is None:
            options = dict(self._layout.options)
            if "type" not in options and "uri" not in options:
                directory = Path(self._layout.location).absolute()
                directory.mkdir(parents=True, exist_ok=True)
                options |= {"type": "sql", "uri": f"sqlite:///{directory}/catalog.db"}
                options.setdefault("warehouse", directory.as_uri())
            self._open = load_catalog("ottla", **options)
        return self._open

    def _read(self) -> Any:
        """Return the table as it is now. None: there is none."""
        try:
            if self._table is None:
                self._table = self._catalog.load_table(self._name)
            else:
                self._table.refresh()
        except (NoSuchTableError, NoSuchNamespaceError):
            self._table = None
        except OSError as error:
            raise RetryLater(f"the table {self._name} cannot be read: {error}") from error
        return self._table

    def positions(self, partitions: Iterable[TopicPartition]) -> Positions:
        """Return how far the table is in those of the partitions that it has something of."""
        table = self._read()
        if table is None:
            return {}
        named = {where: table.properties.get(self._property(where)) for where in partitions}
        return {where: int(text) for where, text in named.items() if text is not None}

    def _property(self, where: TopicPartition) -> str:
        return f"ottla.offset.{self._layout.connector}.{where.topic}.{where.partition}"

    def schema(self) -> Any:
        """Return the columns, or None."""
        table = self._read()
        return None if table is None else table.schema().as_arrow()

    def commit(self, batch: Batch) -> None:
        """Write rows and positions in one commit of the catalog."""
        found = self.positions(batch.begins)
        check_begins(found, batch)
        table = self._table
        if table is None:
            if batch.rows is None:
                return
            table = self._create(batch.rows.schema)
        # A commit that is tried again on top of another change would write the rows twice. Only here: the
        # properties of the table itself stay as they are.
        table.properties[_RETRIES] = "0"
        ends = {self._property(where): str(end) for where, end in batch.ends.items()}
        try:
            with table.transaction() as transaction:
                self._write(transaction, batch)
                transaction.set_properties(ends)
        except CommitFailedException as error:
            self._table = None
            raise Conflict(f"another writer has changed {self._name}: {error}") from error
        except OSError as error:
            self._table = None
            raise RetryLater(f"the table {self._name} cannot be written: {error}") from error

    def _create(self, columns: pa.Schema) -> Any:
        namespace, _, _ = self._name.rpartition(".")
        with contextlib.suppress(NamespaceAlreadyExistsError):
            self._catalog.create_namespace(namespace)
        try:
            # At once: a table that is not divided yet would stay so after a crash.
            with (
                self._catalog.create_table_transaction(self._name, schema=columns) as creation,
                creation.update_spec() as spec,
            ):
                for item in self._layout.partitioning:
                    spec.add_field(item.column, _TRANSFORMS[item.unit](), item.name)
        except (TableAlreadyExistsError, CommitFailedException) as error:
            raise Conflict(f"another task has made {self._name}") from error
        self._table = self._catalog.load_table(self._name)
        return self._table

    def _write(self, transaction: Any, batch: Batch) -> None:
        rows = batch.rows
        if rows is not None:
            with transaction.update_schema() as columns:
                columns.union_by_name(rows.schema)
        names = list(batch.keys)
        if keys := _keys_of(names, rows) | _keys_of(names, batch.deleted) if names else None:
            self._delete(transaction, names, keys)
        if rows is not None and rows.num_rows:
            transaction.append(rows)

    def _delete(self, transaction: Any, names: Sequence[str], keys: set[tuple[Any, ...]]) -> None:
        """Remove the rows that have one of the keys."""
        lists = [
            In(term=Reference(name), values=set(cells))
            for name, cells in zip(names, zip(*keys, strict=True), strict=True)
        ]
        which: BooleanExpression = And(*lists) if len(lists) > 1 else lists[0]
        kept = None
        if len(lists) > 1:
            # An expression for each key would be too large. This one has more rows: they are written again.
            found = self._table.scan(row_filter=which).to_arrow()
            there = [tuple(row.values()) for row in found.select(names).to_pylist()]
            kept = found.filter(pa.array([key not in keys for key in there], pa.bool_()))
        with warnings.catch_warnings():
            # That there is no such row yet is as it should be.
            warnings.simplefilter("ignore", UserWarning)
            transaction.delete(which)
        if kept is not None and kept.num_rows:
            transaction.append(kept)

    def compact(self) -> None:
        """Iceberg's own programs do this, with their snapshots: nothing is done here."""


def _keys_of(names: Sequence[str], rows: Any) -> set[tuple[Any, ...]]:
    return set() if rows is None else {tuple(row.values()) for row in rows.select(names).to_pylist()}
