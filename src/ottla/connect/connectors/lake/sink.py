"""Topics that are tables, in Delta Lake, Iceberg or plain Parquet.

Rows are collected, and committed together with the offsets behind them to the table's own log. A task that
starts goes on from there. So what a table has and what is still to come are never in doubt, whatever dies.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ottla.connect.configs.keys import Importance, Key, Kind, at_least, one_of, parse
from ottla.connect.configs.shared_keys import TOPICS
from ottla.connect.connectors.lake.target import (
    Batch,
    Conflict,
    Layout,
    Partitioning,
    TableTarget,
    parse_partitioning,
)
from ottla.connect.data.record import Record
from ottla.connect.errors import ConnectError, DataError
from ottla.connect.plugins import Config, ConnectorPlugin, PluginKind
from ottla.connect.running.task import RetryLater, SinkContext
from ottla.model.ids import TopicPartition

_DELTA, _ICEBERG, _PARQUET = "delta", "iceberg", "parquet"
_APPEND, _UPSERT = "append", "upsert"
_logger = logging.getLogger(__name__)
_STORE: Final = "table.store."
_TOPIC: Final = "${topic}"
_ATTEMPTS: Final = 5
_LOW, _MEDIUM = Importance.LOW, Importance.MEDIUM

KEYS: Final = (
    Key("table.format", Kind.STRING, "delta, iceberg or parquet.", check=one_of(_DELTA, _ICEBERG, _PARQUET)),
    Key(
        "table.location",
        Kind.STRING,
        "The directory or address (s3://...) of the table. ${topic} is replaced. For iceberg without a "
        "catalog of its own: the directory of all tables and of a catalog in SQLite.",
    ),
    Key(
        "table.mode",
        Kind.STRING,
        "append: each record is a row. upsert: each key has one row, which later records replace and a "
        "record without a value removes.",
        _APPEND,
        check=one_of(_APPEND, _UPSERT),
    ),
    Key(
        "table.key.columns",
        Kind.LIST,
        "The columns of the key, for upsert. Empty: the fields of the record's key.",
        [],
        _MEDIUM,
    ),
    Key(
        "table.partition.by",
        Kind.LIST,
        "What divides the table: columns, or parts of times: year(at), month(at), day(at), hour(at).",
        [],
        _MEDIUM,
    ),
    Key(
        "table.kafka.columns",
        Kind.BOOLEAN,
        "Whether rows say where their records are: kafka_topic, kafka_partition, kafka_offset, "
        "kafka_timestamp, kafka_key.",
        False,
        _MEDIUM,
    ),
    Key(
        "table.commit.interval.ms",
        Kind.LONG,
        "How often rows are committed. More often makes more and smaller files.",
        10_000,
        _MEDIUM,
        check=at_least(1),
    ),
    Key(
        "table.commit.rows",
        Kind.INT,
        "How many rows are committed at once at the most.",
        100_000,
        _LOW,
        check=at_least(1),
    ),
    Key(
        "table.compact.interval.ms",
        Kind.LONG,
        "How often small files are made one, in delta. 0: never.",
        3_600_000,
        _LOW,
        check=at_least(0),
    ),
    Key(
        "table.name", Kind.STRING, "The name of an Iceberg table, with its namespace.", "ottla.${topic}", _LOW
    ),
)


def partitioning_of(config: Config) -> tuple[Partitioning, ...]:
    """Return what divides a table. Raises ValueError."""
    return parse_partitioning(parse("list", Kind.LIST, config.get("table.partition.by", "")))


def open_target(config: Config, connector: str, topic: str) -> TableTarget:
    """Return the table of a topic."""
    options = {name.removeprefix(_STORE): value for name, value in config.items() if name.startswith(_STORE)}
    location = config["table.location"].replace(_TOPIC, topic).removeprefix("file://")
    layout = Layout(location, connector, partitioning_of(config), options)
    if config["table.format"] == _DELTA:
        from ottla.connect.connectors.lake.delta import DeltaTarget

        return DeltaTarget(layout)
    if config["table.format"] == _ICEBERG:
        from ottla.connect.connectors.lake.iceberg import IcebergTarget

        plain = topic.replace(".", "_").replace("-", "_")
        return IcebergTarget(layout, config.get("table.name", "ottla.${topic}").replace(_TOPIC, plain))
    from ottla.connect.connectors.lake.parquet import ParquetTarget

    return ParquetTarget(layout)


class _TopicTable:
    """The table of one topic, and what is still to be committed to it."""

    def __init__(self, config: Config, name: str, topic: str) -> None:
        from ottla.connect.connectors.lake.pending import AppendedRows, Pending, ReplacedRows
        from ottla.connect.connectors.lake.rows import Columns

        self.target = open_target(config, name, topic)
        # Iceberg has the parts of times itself.
        derives = config["table.format"] != _ICEBERG
        columns = Columns(self.target.schema(), partitioning_of(config) if derives else ())
        self._pending: Pending = (
            ReplacedRows(columns, parse("list", Kind.LIST, config.get("table.key.columns", "")))
            if config.get("table.mode", _APPEND) == _UPSERT
            else AppendedRows(columns)
        )
        self._has_facts = config.get("table.kafka.columns", "false").lower() == "true"
        self._committed: dict[TopicPartition, int] = {}
        """What the table had of each partition when that was opened, or has got since."""
        self._ends: dict[TopicPartition, int] = {}

    @property
    def pending_rows(self) -> int:
        """About how many rows are still to be committed."""
        return self._pending.count

    def open(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Take partitions on, and return how far the table is in them."""
        found: dict[TopicPartition, int] = self.target.positions(partitions)
        self._committed |= {where: found.get(where, 0) for where in partitions}
        return found

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Give partitions up."""
        self._pending.drop(partitions)
        for where in partitions:
            self._committed.pop(where, None)
            self._ends.pop(where, None)

    def add(self, where: TopicPartition, records: Sequence[Record], context: SinkContext) -> None:
        """Take records of a partition on. Those that do not fit are reported."""
        first = records[0].origin
        assert first is not None, "a sink's records come from topics"
        if first.offset < self._ends.get(where, self._committed[where]):
            raise ConnectError(f"the topic {where.topic} was made again: the task starts over with it")
        try:
            self._add(where, records)
        except DataError:
            for record in records:
                try:
                    self._add(where, [record])
                except DataError as error:
                    context.report(record, error)
        last = records[-1].origin
        assert last is not None, "a sink's records come from topics"
        self._ends[where] = last.offset + 1

    def _add(self, where: TopicPartition, records: Sequence[Record]) -> None:
        from ottla.connect.connectors.lake.rows import with_facts

        if self._has_facts:
            records = [record if record.value is None else with_facts(record) for record in records]
        self._pending.add(where, records)

    def commit(self) -> None:
        """Write what is pending, with the offsets behind it."""
        rows, keys, deleted = self._pending.rows()
        if rows is None and deleted is None:
            # Offsets without rows wait for the next ones: those may be read again.
            return
        begins = {where: self._committed[where] for where in self._ends}
        self._write(Batch(rows, begins, dict(self._ends), keys, deleted))
        self._committed |= self._ends
        self._ends.clear()
        self._pending.clear()

    def _write(self, batch: Batch) -> None:
        """Commit, also while others write the same table: each attempt checks again where the table is."""
        for _ in range(_ATTEMPTS - 1):
            try:
                self.target.commit(batch)
            except Conflict as error:
                _logger.info("a commit is tried again: %s", error)
            else:
                return
        self.target.commit(batch)


class LakeSinkTask:
    """Collects records, and commits them to tables."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._rows_max = int(config.get("table.commit.rows", "100000"))
        self.commit_interval_s = int(config.get("table.commit.interval.ms", "10000")) / 1000
        self._compact_s = int(config.get("table.compact.interval.ms", "3600000")) / 1000
        self._compacted_s = time.monotonic()
        self._begins_at_the_end = config.get("consumer.override.auto.offset.reset") == "latest"
        self._tables: dict[str, _TopicTable] = {}
        self._context: SinkContext | None = None

    async def start(self, context: SinkContext) -> None:
        """Tables are opened with their partitions."""
        self._context = context

    async def opened(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        """Return from where to read, as the tables say."""
        assert self._context is not None, "it was started"
        new = {where.topic for where in partitions} - self._tables.keys()
        ids = await self._context.topic_ids(new) if new else {}
        return await asyncio.to_thread(self._open, partitions, ids)

    def _open(
        self, partitions: Collection[TopicPartition], ids: Mapping[str, str]
    ) -> dict[TopicPartition, int]:
        assert self._context is not None, "it was started"
        # What the group has committed is of another table, if this one has nothing.
        found = {} if self._begins_at_the_end else dict.fromkeys(partitions, 0)
        for topic, listed in _by_topic(partitions).items():
            if topic not in self._tables:
                # Positions in a topic that was deleted say nothing of another one with its name.
                name = "/".join((self._context.connector, *([ids[topic]] if topic in ids else ())))
                self._tables[topic] = _TopicTable(self._config, name, topic)
            found |= self._tables[topic].open(listed)
        return found

    async def closed(self, partitions: frozenset[TopicPartition]) -> None:
        """Forget what was collected of partitions that others have now."""
        for topic, listed in _by_topic(partitions).items():
            if topic in self._tables:
                self._tables[topic].close(listed)

    async def put(self, records: Sequence[Record]) -> None:
        """Collect records."""
        assert self._context is not None, "it was started"
        await asyncio.to_thread(self._put, records)
        if sum(table.pending_rows for table in self._tables.values()) < self._rows_max:
            return
        # The tables go on behind what was reported: nothing would read that again.
        await self._context.settle()
        try:
            await self.flush()
        except RetryLater as error:
            # The records are collected: put again, they would be rows twice.
            error.done = len(records)
            raise

    def _put(self, records: Sequence[Record]) -> None:
        assert self._context is not None, "it was started"
        listed: dict[TopicPartition, list[Record]] = {}
        for record in records:
            assert record.origin is not None, "a sink's records come from topics"
            listed.setdefault(record.origin.where, []).append(record)
        for where, of_partition in listed.items():
            self._tables[where.topic].add(where, of_partition, self._context)

    async def flush(self) -> None:
        """Commit what was collected."""
        await asyncio.to_thread(self._commit)

    def _commit(self) -> None:
        assert self._context is not None, "it was started"
        for table in self._tables.values():
            table.commit()
        now_s = time.monotonic()
        if self._compact_s and self._context.task == 0 and now_s - self._compacted_s >= self._compact_s:
            self._compacted_s = now_s
            for table in self._tables.values():
                _compact(table.target)

    async def stop(self) -> None:
        """Tables need not be closed."""


def _compact(target: Any) -> None:
    try:
        target.compact()
    except (ConnectError, RetryLater) as error:
        # Somebody else wrote meanwhile, or the store was away. The files stay as they are until next time.
        _logger.warning("a table was not compacted: %s", error)


def _by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for where in partitions:
        found.setdefault(where.topic, []).append(where)
    return found


def _errors(config: Config) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    several = len(parse(TOPICS, Kind.LIST, config.get(TOPICS, ""))) != 1
    one_place = _TOPIC not in config["table.location"] and config["table.format"] != _ICEBERG
    if several and one_place:
        errors["table.location"] = [
            "several topics need ${topic} in table.location: each is a table of its own"
        ]
    try:
        partitioning_of(config)
    except ValueError as error:
        errors["table.partition.by"] = [str(error)]
    if config["table.format"] == _PARQUET:
        if config.get("table.mode", _APPEND) == _UPSERT:
            errors["table.mode"] = ["files of Parquet are only added to: use delta or iceberg for upsert"]
        if "://" in config["table.location"].removeprefix("file://"):
            errors["table.location"] = ["files of Parquet are written to local disks: use delta or iceberg"]
    return errors


def _alter_offsets(
    _connector: str, _config: Config, _offsets: Mapping[TopicPartition, int | None] | None
) -> None:
    raise ConnectError(
        "the offsets of this connector are in its table: choose another table.location, or remove the table"
    )


def _task_configs(config: Config, tasks_max: int) -> list[dict[str, str]]:
    return [dict(config) for _ in range(tasks_max)]


PLUGINS: Final = (
    ConnectorPlugin(
        "ottla.connect.TableSinkConnector",
        PluginKind.SINK,
        LakeSinkTask,
        KEYS,
        doc="A topic as a table of Delta Lake, Iceberg or Parquet, with columns that follow the schema of "
        "its records. `table.store.NAME` is passed on to the store or the catalog.",
        delivery="exactly once",
        alias="LakeSink",
        task_class="ottla.connect.TableSinkTask",
        task_configs=_task_configs,
        errors=_errors,
        alter_sink_offsets=_alter_offsets,
        open_prefixes=(_STORE,),
    ),
)
