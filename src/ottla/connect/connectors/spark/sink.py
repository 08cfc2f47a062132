"""Records to any format that Spark writes.

Files on local disks are written exactly once. A batch is written to a hidden directory together with the
offsets behind it, and then renamed: that is its commit. A task that starts looks into the directories, and
goes on after the last batch. Other targets are appended to, at least once.
"""

import asyncio
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ottla.connect.configs.keys import Importance, Key, Kind, at_least
from ottla.connect.connectors.file_batches import BATCH, Batches
from ottla.connect.connectors.spark.shared_session import shared_session
from ottla.connect.data.record import Record
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config, ConnectorPlugin, PluginKind
from ottla.connect.running.task import SinkContext
from ottla.model.ids import TopicPartition

FILE_FORMATS: Final = ("parquet", "orc", "csv", "json", "text", "avro", "xml")
_STAGING: Final = "_ottla-staging-"

SPARK_KEYS: Final = (
    Key(
        "spark.format",
        Kind.STRING,
        "The format, as Spark calls it: parquet, csv, json, orc, jdbc, delta, ...",
    ),
    Key("spark.path", Kind.STRING, "The directory or address, if the format has one.", ""),
    Key(
        "spark.master",
        Kind.STRING,
        "Where Spark runs. The first connector of a worker decides for all.",
        "local[*]",
        Importance.LOW,
    ),
)
_KEYS: Final = (
    *SPARK_KEYS,
    Key(
        "batch.max.rows",
        Kind.INT,
        "How many rows are written at once. Fewer are written when offsets are committed.",
        50_000,
        Importance.MEDIUM,
        check=at_least(1),
    ),
    Key(
        "spark.files.per.batch", Kind.INT, "How many files a batch has.", 1, Importance.LOW, check=at_least(1)
    ),
)


def options_of(config: Config) -> dict[str, str]:
    """Return the options of the format: `spark.option.header` is its option `header`."""
    prefix = "spark.option."
    return {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}


def local_path(config: Config) -> Path | None:
    """Return the directory, if the format is one of files and it is on a local disk."""
    path = config.get("spark.path", "")
    if config["spark.format"].lower() not in FILE_FORMATS or not path:
        return None
    if path.startswith("file:"):
        return Path(path.removeprefix("file:"))
    return None if "://" in path else Path(path)


class SparkSinkTask:
    """Collects records, and has Spark write them."""

    commit_interval_s = None

    def __init__(self, config: Config) -> None:
        self._config = config
        self._format = config["spark.format"]
        self._rows_max = int(config.get("batch.max.rows", "50000"))
        self._files = int(config.get("spark.files.per.batch", "1"))
        self._directory = local_path(config)
        self._records: list[Record] = []
        self._batches = 0
        self._stored: Batches | None = None
        self._context: SinkContext | None = None
        self._session: Any = None

    async def start(self, context: SinkContext) -> None:
        """Open the session, and remove what an earlier life left unfinished."""
        self._context = context
        self._session = await asyncio.to_thread(shared_session, self._config)
        if self._directory is not None:
            await asyncio.to_thread(self._prepare, self._directory)

    def _prepare(self, directory: Path) -> None:
        assert self._context is not None, "it was started"
        directory.mkdir(parents=True, exist_ok=True)
        self._stored = Batches(directory, self._context.connector)
        for left in directory.glob(f"{_STAGING}{self._name}-*"):
            shutil.rmtree(left, ignore_errors=True)
        mine = [path.name for path in directory.glob(f"{BATCH}{self._name}-*")]
        self._batches = max((int(name.rpartition("-")[2]) for name in mine), default=0)

    @property
    def _name(self) -> str:
        assert self._context is not None, "it was started"
        return f"{self._context.connector}-{self._context.task}"

    async def opened(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        """Return from where to read, as the directories say."""
        if self._stored is None:
            return {}
        found = await asyncio.to_thread(self._stored.offsets)
        return {where: offset for where, offset in found.items() if where in partitions}

    async def closed(self, partitions: frozenset[TopicPartition]) -> None:
        """Forget what was collected of partitions that others have now."""
        self._records = [
            record
            for record in self._records
            if record.origin is None or record.origin.where not in partitions
        ]

    async def put(self, records: Sequence[Record]) -> None:
        """Collect records."""
        self._records += records
        if len(self._records) >= self._rows_max:
            await self.flush()

    async def flush(self) -> None:
        """Write what was collected."""
        records, self._records = self._records, []
        if records:
            await asyncio.to_thread(self._write, records)

    def _write(self, records: Sequence[Record]) -> None:
        from ottla.connect.data.arrow import to_tables

        tables = to_tables([record for record in records if record.value is not None])
        if self._directory is None:
            for table in tables:
                self._save(table, self._config.get("spark.path") or None)
            return
        staging = self._directory / f"{_STAGING}{self._name}-{uuid.uuid4().hex}"
        staging.mkdir()
        for table in tables:
            self._save(table, str(staging))
        self._commit(staging, records)

    def _save(self, table: Any, path: str | None) -> None:
        frame = self._session.createDataFrame(table).coalesce(self._files)
        writer = frame.write.format(self._format).options(**options_of(self._config)).mode("append")
        if path is None:
            writer.save()
        else:
            writer.save(path)

    def _commit(self, staging: Path, records: Sequence[Record]) -> None:
        offsets = [
            (record.origin.where, record.origin.offset) for record in records if record.origin is not None
        ]
        assert self._stored is not None, "only files are committed"
        self._stored.commit(staging, f"{self._name}-{self._batches + 1:09}", offsets)
        self._batches += 1

    async def stop(self) -> None:
        """The session stays for other connectors."""


def _alter_offsets(
    _connector: str, config: Config, _offsets: Mapping[TopicPartition, int | None] | None
) -> None:
    if local_path(config) is not None:
        raise ConnectError(
            "the offsets of this connector are in its files: choose another spark.path, or remove the files"
        )


def _task_configs(config: Config, tasks_max: int) -> list[dict[str, str]]:
    return [dict(config) for _ in range(tasks_max)]


PLUGINS: Final = (
    ConnectorPlugin(
        "ottla.connect.SparkSinkConnector",
        PluginKind.SINK,
        SparkSinkTask,
        _KEYS,
        doc="Records to any format of Spark. Options of the format are `spark.option.NAME`, settings of "
        "Spark `spark.conf.NAME`. Files are in a directory for each batch, so a reader gets the column "
        "`ottla_batch`.",
        delivery="exactly once for files on local disks, at least once otherwise",
        task_class="ottla.connect.SparkSinkTask",
        task_configs=_task_configs,
        alter_sink_offsets=_alter_offsets,
        open_prefixes=("spark.option.", "spark.conf."),
    ),
)
