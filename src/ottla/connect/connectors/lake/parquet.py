"""Directories of Parquet files, with the positions of each batch beside its files."""

import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from ottla.connect.connectors.file_batches import Batches
from ottla.connect.connectors.lake.target import Batch, Layout, Positions, check_begins
from ottla.connect.errors import ConnectError
from ottla.connect.running.task import RetryLater
from ottla.model.ids import TopicPartition

_STAGING: Final = "_ottla-staging-"


class ParquetTarget:
    """A directory on a local disk. Each batch is a directory in it, which is renamed when it is complete."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._directory = Path(layout.location)
        self._batches = Batches(self._directory, layout.connector)

    def positions(self, partitions: Iterable[TopicPartition]) -> Positions:
        """Return how far the files are in those of the partitions that they have something of."""
        wanted = set(partitions)
        return {where: end for where, end in self._batches.offsets().items() if where in wanted}

    def schema(self) -> Any:
        """Each batch has columns of its own: there is nothing to fit into."""
        return None

    def commit(self, batch: Batch) -> None:
        """Write a directory of files, and have it count."""
        if batch.keys:
            raise ConnectError(
                "files of Parquet are only added to: use delta or iceberg for rows that change"
            )
        check_begins(self.positions(batch.begins), batch)
        name = uuid.uuid4().hex
        staging = self._directory / f"{_STAGING}{name}"
        try:
            staging.mkdir(parents=True)
            columns = [item.name for item in self._layout.partitioning]
            kinds = pa.schema([batch.rows.schema.field(column) for column in columns])
            ds.write_dataset(
                batch.rows,
                staging,
                format="parquet",
                partitioning=ds.partitioning(kinds, flavor="hive") if columns else None,
            )
            # Each batch says which offsets it has: the first ones must not be there already.
            begins = [(where, begin) for where, begin in batch.begins.items()]
            self._batches.commit(staging, name, [*begins, *((w, end - 1) for w, end in batch.ends.items())])
        except OSError as error:
            raise RetryLater(f"{self._directory} cannot be written: {error}") from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def compact(self) -> None:
        """Files stay as they are."""
