"""Rows of any format that Spark reads, and files that appear in a directory.

A file is read once, when it has not changed for a while, and is one transaction: its position says that it
was read. Other formats are read by an increasing column, or as a whole each time.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from ottla.connect.configs.keys import Importance, Key, Kind, at_least
from ottla.connect.connectors.spark.shared_session import shared_session
from ottla.connect.connectors.spark.sink import SPARK_KEYS, local_path, options_of
from ottla.connect.data.record import Record
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config, ConnectorPlugin, Offset, PluginKind
from ottla.connect.running.task import SourceContext, SourceTask

_INCREMENTING: Final = "incrementing"
_MODIFIED: Final = "modified_ns"
_KEYS: Final = (
    *SPARK_KEYS,
    Key("topic", Kind.STRING, "The topic to write to."),
    Key(
        "incrementing.column.name",
        Kind.STRING,
        "For formats that are not files: the column whose values increase. Empty: all rows each time.",
        "",
    ),
    Key(
        "poll.interval.ms", Kind.INT, "How long to wait when there was nothing new.", 1000, check=at_least(1)
    ),
    Key(
        "file.min.age.ms",
        Kind.INT,
        "How long a file must not have changed before it is read.",
        1000,
        Importance.MEDIUM,
        check=at_least(0),
    ),
    Key("batch.max.rows", Kind.INT, "The maximum number of rows of one read, other than of files.", 10_000),
)


class SparkSourceTask(SourceTask):
    """Reads files as they appear, or rows by an increasing column."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._topic = config["topic"]
        self._format = config["spark.format"]
        self._path = config.get("spark.path", "")
        self._directory = local_path(config)
        self._column = config.get("incrementing.column.name", "")
        self._interval_s = int(config.get("poll.interval.ms", "1000")) / 1000
        self._min_age_ns = int(config.get("file.min.age.ms", "1000")) * 1_000_000
        self._rows_max = int(config.get("batch.max.rows", "10000"))
        self._session: Any = None
        self._context: SourceContext | None = None
        self._read: set[str] = set()
        self._last: Any = None

    async def start(self, context: SourceContext) -> None:
        """Open the session, and find where to go on."""
        self._context = context
        self._session = await asyncio.to_thread(shared_session, self._config)
        found = context.position(self._partition)
        self._last = None if found is None else found.get(_INCREMENTING)

    @property
    def _partition(self) -> dict[str, Any]:
        return {"format": self._format, "path": self._path}

    async def poll(self) -> Sequence[Record]:
        """Return the rows of the next file, or the next rows."""
        records = await asyncio.to_thread(self._next)
        if not records:
            await asyncio.sleep(self._interval_s)
        return records

    def _next(self) -> list[Record]:
        if self._directory is not None:
            for path in self._new_files(self._directory):
                records = self._read_file(path)
                self._read.add(str(path))
                if records:
                    return records
            return []
        return self._read_rows()

    def _new_files(self, directory: Path) -> list[Path]:
        assert self._context is not None, "it was started"
        old_ns = time.time_ns() - self._min_age_ns
        found = []
        for path in directory.rglob("*") if directory.is_dir() else [directory]:
            hidden = any(part.startswith(("_", ".")) for part in path.relative_to(directory).parts)
            if hidden or str(path) in self._read or not path.is_file():
                continue
            if self._context.position({"file": str(path)}) is not None:
                self._read.add(str(path))
            elif path.stat().st_mtime_ns <= old_ns:
                found.append(path)
        return sorted(found, key=lambda path: (path.stat().st_mtime_ns, str(path)))

    def _read_file(self, path: Path) -> list[Record]:
        frame = self._session.read.format(self._format).options(**options_of(self._config)).load(str(path))
        offset = {_MODIFIED: path.stat().st_mtime_ns}
        return self._records(frame, {"file": str(path)}, lambda _row: offset)

    def _read_rows(self) -> list[Record]:
        reader = self._session.read.format(self._format).options(**options_of(self._config))
        frame = reader.load(self._path) if self._path else reader.load()
        if not self._column:
            return self._records(frame, self._partition, lambda _row: {"read_ns": time.time_ns()})
        from pyspark.sql.functions import col, lit

        if self._last is not None:
            frame = frame.filter(col(self._column) > lit(self._last))
        rows = self._records(
            frame.orderBy(self._column).limit(self._rows_max),
            self._partition,
            lambda row: {_INCREMENTING: row[self._column]},
        )
        if rows:
            assert rows[-1].source_offset is not None, "each row has its position"
            self._last = rows[-1].source_offset[_INCREMENTING]
        return rows

    def _records(self, frame: Any, partition: dict[str, Any], offset: Any) -> list[Record]:
        from ottla.connect.data.arrow import row_schema

        table = frame.toArrow()
        schema = row_schema(table.schema)
        return [
            Record(
                self._topic,
                None,
                None,
                None,
                schema,
                row,
                source_partition=partition,
                source_offset=offset(row),
            )
            for row in table.to_pylist()
        ]

    async def stop(self) -> None:
        """The session stays for other connectors."""


def _check_offsets(_config: Config, offsets: Iterable[Offset]) -> None:
    for partition, _offset in offsets:
        if "file" not in partition and "format" not in partition:
            raise ConnectError("Partition objects should contain the key 'file' or 'format'")


PLUGINS: Final = (
    ConnectorPlugin(
        "ottla.connect.SparkSourceConnector",
        PluginKind.SOURCE,
        SparkSourceTask,
        _KEYS,
        doc="Rows of any format of Spark. Files of a directory are read as they appear. Options of the "
        "format are `spark.option.NAME`, settings of Spark `spark.conf.NAME`.",
        delivery="exactly once for files that do not change, and by an increasing column",
        task_class="ottla.connect.SparkSourceTask",
        check_offsets=_check_offsets,
        open_prefixes=("spark.option.", "spark.conf."),
    ),
)
