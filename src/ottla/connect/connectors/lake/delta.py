"""Tables of Delta Lake.

How far the table is in a partition of the topic is a transaction of an application in Delta's log. Delta
refuses a commit if such a transaction was added since the writer has read the log. So of two tasks that write
the same records only one is accepted.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from ottla.connect.connectors.lake.target import Batch, Conflict, Layout, Positions, check_begins
from ottla.connect.running.task import RetryLater
from ottla.model.ids import TopicPartition

_APPLICATION: Final = "ottla"
_GONE: Final = "ottla_is_deleted"
_SOURCE, _TARGET = "source", "target"


class DeltaTarget:
    """One table of Delta Lake."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._options = dict(layout.options)
        self._table: DeltaTable | None = None

    def _read(self) -> DeltaTable | None:
        """Return the table as it is now. None: there is none."""
        try:
            if self._table is None:
                self._table = DeltaTable(self._layout.location, storage_options=self._options or None)
            else:
                self._table.update_incremental()
        except TableNotFoundError:
            self._table = None
        except (DeltaError, OSError) as error:
            raise RetryLater(f"the table {self._layout.location} cannot be read: {error}") from error
        return self._table

    def positions(self, partitions: Iterable[TopicPartition]) -> Positions:
        """Return how far the table is in those of the partitions that it has something of."""
        table = self._read()
        if table is None:
            return {}
        found = {where: table.transaction_version(self._application(where)) for where in partitions}
        return {where: version for where, version in found.items() if version is not None}

    def _application(self, where: TopicPartition) -> str:
        return f"{_APPLICATION}/{self._layout.connector}/{where.topic}/{where.partition}"

    def schema(self) -> Any:
        """Return the columns, or None."""
        table = self._read()
        return None if table is None else pa.schema(table.schema().to_arrow())

    def commit(self, batch: Batch) -> None:
        """Write rows and positions in one commit of Delta's log."""
        check_begins(self.positions(batch.begins), batch)
        # The commit is refused if one of these was added since then.
        table = self._table
        properties = CommitProperties(
            app_transactions=[
                Transaction(self._application(where), end) for where, end in batch.ends.items()
            ],
            custom_metadata={"ottla.connector": self._layout.connector},
        )
        try:
            if batch.keys and table is not None:
                self._merge(table, batch, properties)
            else:
                self._append(table, batch, properties)
        except CommitFailedError as error:
            raise Conflict(f"another writer has changed {self._layout.location}: {error}") from error
        except (DeltaError, OSError) as error:
            raise RetryLater(f"the table {self._layout.location} cannot be written: {error}") from error

    def _append(self, table: DeltaTable | None, batch: Batch, properties: CommitProperties) -> None:
        rows = batch.rows
        if table is None:
            if rows is None:
                return
            table = self._create(rows.schema)
        if rows is None:
            rows = pa.schema(table.schema().to_arrow()).empty_table()
        write_deltalake(
            table,
            rows,
            mode="append",
            schema_mode="merge",
            partition_by=[item.name for item in self._layout.partitioning] or None,
            storage_options=self._options or None,
            commit_properties=properties,
        )

    def _create(self, columns: Any) -> DeltaTable:
        """Make the table, without rows. Otherwise a commit to one that another task has made since would not
        be refused.
        """
        if "://" not in self._layout.location:
            Path(self._layout.location).mkdir(parents=True, exist_ok=True)
        try:
            self._table = DeltaTable.create(
                self._layout.location,
                columns,
                partition_by=[item.name for item in self._layout.partitioning] or None,
                storage_options=self._options or None,
            )
        except DeltaError as error:
            if self._read() is None:
                raise
            raise Conflict(f"another task has made {self._layout.location}") from error
        return self._table

    def _merge(self, table: DeltaTable, batch: Batch, properties: CommitProperties) -> None:
        changes = _with_marks(batch)
        if changes is None:
            self._append(table, Batch(None, batch.begins, batch.ends), properties)
            return
        for item in pa.schema(table.schema().to_arrow()):
            if item.name not in changes.schema.names:
                # A row is replaced: nothing of the earlier one stays.
                changes = changes.append_column(item.name, pa.nulls(changes.num_rows, item.type))
        names = [name for name in changes.schema.names if name != _GONE]
        same = " AND ".join(f'{_TARGET}."{key}" = {_SOURCE}."{key}"' for key in batch.keys)
        gone = f'{_SOURCE}."{_GONE}"'
        written = {f'"{name}"': f'{_SOURCE}."{name}"' for name in names}
        (
            table.merge(
                changes,
                same,
                source_alias=_SOURCE,
                target_alias=_TARGET,
                merge_schema=True,
                commit_properties=properties,
            )
            .when_matched_delete(gone)
            .when_matched_update(written)
            .when_not_matched_insert(written, f"NOT {gone}")
            .execute()
        )

    def compact(self) -> None:
        """Make few large files of many small ones. Old ones stay for a week, for those who read them."""
        table = self._read()
        if table is None:
            return
        try:
            table.optimize.compact()
            table.vacuum(dry_run=False)
        except (DeltaError, OSError) as error:
            raise RetryLater(f"the table {self._layout.location} cannot be compacted: {error}") from error


def _with_marks(batch: Batch) -> Any:
    """Return rows that are written and keys that are gone as one table."""
    parts = []
    for rows, is_gone in ((batch.rows, False), (batch.deleted, True)):
        if rows is not None and rows.num_rows:
            marks = pa.array([is_gone] * rows.num_rows, pa.bool_())
            parts.append(rows.append_column(_GONE, marks))
    return pa.concat_tables(parts, promote_options="permissive") if parts else None
