"""Topics as tables: what is written, where a task goes on, and that nobody writes a record twice."""

import asyncio
import datetime
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from ottla.client.consumer.record import ConsumerRecord
from ottla.connect.catalog import all_plugins
from ottla.connect.configs.validation import check_config
from ottla.connect.connectors.lake.sink import LakeSinkTask, open_target
from ottla.connect.connectors.lake.target import Partitioning, parse_partitioning
from ottla.connect.data.record import Record
from ottla.connect.data.schema import (
    FLOAT64,
    INT64,
    STRING,
    TIMESTAMP_SCHEMA,
    Schema,
    Type,
    decimal_schema,
    optional,
    struct,
)
from ottla.connect.errors import ConnectError, RestError
from ottla.connect.running.task import SinkContext
from ottla.connect.settings import WorkerSettings
from ottla.model.ids import TopicPartition
from ottla.records.attributes import TimestampType

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

ZERO, ONE = TopicPartition("a.orders", 0), TopicPartition("a.orders", 1)
ROW = struct({"id": INT64, "name": optional(STRING)})
KEY = struct({"id": INT64})
FORMATS = ("delta", "iceberg", "parquet")
AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC)


def record(
    offset: int, value: Any, schema: Schema | None = ROW, where: TopicPartition = ZERO, key: Any = None
) -> Record:
    origin = ConsumerRecord(
        where.topic, where.partition, -1, TimestampType.CREATE_TIME, offset, 7, b"k", None, ()
    )
    key_schema = None if key is None else KEY
    return Record(
        where.topic, where.partition, key_schema, key, schema, value, 1_767_323_045_000, origin=origin
    )


def rows(first: int, count: int, where: TopicPartition = ZERO) -> list[Record]:
    return [record(first + n, {"id": first + n, "name": f"n{first + n}"}, where=where) for n in range(count)]


class Table:
    """A table, and the lives of tasks that write it."""

    def __init__(self, directory: Path, kind: str, **options: str) -> None:
        self.config = {"table.format": kind, "table.location": str(directory / "t"), **options}
        self.reported: list[tuple[int, str]] = []

    def task(
        self, *partitions: TopicPartition, topic_id: str = "one"
    ) -> tuple[LakeSinkTask, dict[TopicPartition, int]]:
        """Begin a life with some partitions, and return from where it goes on."""

        def report(bad: Record, error: Exception) -> None:
            assert bad.origin is not None
            self.reported.append((bad.origin.offset, str(error)))

        async def settle() -> None:
            return

        async def topic_ids(topics: Collection[str]) -> dict[str, str]:
            return dict.fromkeys(topics, topic_id)

        task = LakeSinkTask(self.config)
        asyncio.run(task.start(SinkContext("c", 0, report, settle, topic_ids)))
        return task, asyncio.run(task.opened(frozenset(partitions or (ZERO,))))

    def read(self) -> list[dict[str, Any]]:
        """Return the rows as readers that nobody here wrote see them."""
        location = self.config["table.location"]
        if self.config["table.format"] == "delta":
            from deltalake import DeltaTable

            found = DeltaTable(location).to_pyarrow_table()
        elif self.config["table.format"] == "iceberg":
            from pyiceberg.table import StaticTable

            target: Any = open_target(self.config, "c", ZERO.topic)
            found = StaticTable.from_metadata(target._read().metadata_location).scan().to_arrow()
        else:
            import pyarrow.dataset as ds

            found = ds.dataset(location, format="parquet", partitioning="hive").to_table()
        listed: list[dict[str, Any]] = found.to_pylist()
        return sorted(listed, key=lambda row: (row["id"], str(row)))


def write(task: LakeSinkTask, *batches: Sequence[Record]) -> None:
    for batch in batches:
        asyncio.run(task.put(batch))
    asyncio.run(task.flush())


def ids(table: Table) -> list[int]:
    return [row["id"] for row in table.read()]


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return Table(tmp_path, request.param)


def test_a_life_goes_on_where_the_table_ends(table: Table) -> None:
    first, begin = table.task(ZERO, ONE)
    # What its group has committed may be of another table.
    assert begin == {ZERO: 0, ONE: 0}
    write(first, rows(0, 2), rows(2, 3), rows(100, 1, ONE))
    # This one dies before its rows are committed.
    asyncio.run(first.put(rows(5, 4)))
    second, begin = table.task(ZERO, ONE)
    assert begin == {ZERO: 5, ONE: 101}
    write(second, rows(5, 1))
    assert ids(table) == [0, 1, 2, 3, 4, 5, 100]
    assert table.read()[1]["name"] == "n1"


def test_a_task_that_has_lost_a_partition_writes_nothing(table: Table) -> None:
    old, _ = table.task()
    write(old, rows(0, 2))
    asyncio.run(old.put(rows(2, 2)))
    new, begin = table.task()
    assert begin == {ZERO: 2}
    write(new, rows(2, 3))
    with pytest.raises(ConnectError, match=r"another task has written a\.orders-0 up to offset 5"):
        asyncio.run(old.flush())
    write(new, rows(5, 1))
    assert ids(table) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_of_two_commits_at_once_only_one_counts(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(tmp_path, kind)
    write(table.task()[0], rows(0, 1))
    late, _ = table.task()
    asyncio.run(late.put(rows(1, 1)))
    quick, _ = table.task()
    asyncio.run(quick.put(rows(1, 2)))
    module = __import__(f"ottla.connect.connectors.lake.{kind}", fromlist=["check_begins"])
    check = module.check_begins
    waiting = [quick]

    def look_then_wait(*args: Any) -> None:
        check(*args)
        if waiting:
            waiting.pop()._commit()

    monkeypatch.setattr(module, "check_begins", look_then_wait)
    with pytest.raises(ConnectError, match=r"another task has written a\.orders-0 up to offset 3"):
        late._commit()
    assert ids(table) == [0, 1, 2]
    assert table.task()[1] == {ZERO: 3}


def test_a_topic_that_was_made_again_is_read_from_its_beginning(table: Table) -> None:
    task, _ = table.task()
    write(task, rows(0, 3))
    with pytest.raises(ConnectError, match=r"the topic a\.orders was made again"):
        asyncio.run(task.put(rows(0, 1)))
    asyncio.run(task.flush())
    again, begin = table.task(topic_id="two")
    assert begin == {ZERO: 0}
    write(again, rows(0, 5))
    assert ids(table) == [0, 0, 1, 1, 2, 2, 3, 4]
    assert table.task(topic_id="two")[1] == {ZERO: 5}


def test_who_wants_only_what_comes_gets_no_more(table: Table) -> None:
    table.config["consumer.override.auto.offset.reset"] = "latest"
    task, begin = table.task()
    assert begin == {}
    write(task, rows(7, 1))
    assert table.task()[1] == {ZERO: 8}


def test_what_is_given_up_is_not_written(table: Table) -> None:
    task, _ = table.task(ZERO, ONE)
    asyncio.run(task.put(rows(0, 2)))
    asyncio.run(task.put(rows(100, 1, ONE)))
    asyncio.run(task.closed(frozenset((ZERO,))))
    asyncio.run(task.flush())
    assert ids(table) == [100]
    assert table.task(ZERO, ONE)[1] == {ZERO: 0, ONE: 101}


def test_a_schema_may_get_more_columns(table: Table) -> None:
    task, _ = table.task()
    inner = struct({"x": INT64}, is_optional=True)
    wide = struct({"id": INT64, "at": optional(TIMESTAMP_SCHEMA), "price": decimal_schema(2), "in": inner})
    wider = struct({"id": INT64, "in": struct({"x": INT64, "y": optional(STRING)}, is_optional=True)})
    price = __import__("decimal").Decimal("1.50")
    write(task, rows(0, 1), [record(1, {"id": 1, "at": AT, "price": price, "in": {"x": 2}}, wide)])
    write(task, [record(2, {"id": 2, "in": {"x": 3, "y": "z"}}, wider)])
    found = table.read()
    if table.config["table.format"] == "parquet":
        # A directory of files has no schema of its own.
        return
    assert [row["name"] for row in found] == ["n0", None, None]
    assert (found[1]["at"], found[1]["price"]) == (AT, price)
    assert [row["in"] for row in found] == [None, {"x": 2, "y": None}, {"x": 3, "y": "z"}]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_value_that_does_not_fit_is_reported_and_the_others_are_written(tmp_path: Path, kind: str) -> None:
    table = Table(tmp_path, kind)
    task, _ = table.task()
    write(task, rows(0, 1))
    other = struct({"id": FLOAT64, "name": STRING})
    write(
        task,
        [
            record(1, {"id": 1.0, "name": "whole"}, other),
            record(2, {"id": 2.5, "name": "no whole number"}, other),
            record(3, {"id": 3.0, "name": "also"}, other),
            record(4, None, None),
            record(5, {}, None),
        ],
    )
    assert [offset for offset, _ in table.reported] == [2, 5]
    assert "a value of 'id' does not fit into int64" in table.reported[0][1]
    assert ids(table) == [0, 1, 3]
    assert table.task()[1] == {ZERO: 6}
    # A new life knows the columns from the table.
    again, _ = table.task()
    write(again, [record(6, {"id": "x"}, struct({"id": STRING}))])
    assert table.reported[-1][0] == 6


def test_offsets_without_rows_are_read_again(table: Table) -> None:
    task, _ = table.task()
    write(task, [record(0, None, None)])
    assert table.task()[1] == {ZERO: 0}
    write(task, rows(1, 1))
    assert table.task()[1] == {ZERO: 2}


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("named", ["", "id"])
def test_each_key_has_the_row_of_its_last_record(tmp_path: Path, kind: str, named: str) -> None:
    table = Table(tmp_path, kind, **{"table.mode": "upsert", "table.key.columns": named})

    def change(offset: int, key: int, name: str | None) -> Record:
        value = None if name is None else {"id": key, "name": name}
        return record(offset, value, None if name is None else ROW, key={"id": key})

    task, _ = table.task()
    write(task, [change(0, 1, "a"), change(1, 2, "b"), change(2, 1, "c"), change(3, 9, None)])
    assert [(row["id"], row["name"]) for row in table.read()] == [(1, "c"), (2, "b")]
    write(task, [change(4, 2, None), change(5, 3, "d"), change(6, 1, "e"), change(7, 3, None)])
    assert [(row["id"], row["name"]) for row in table.read()] == [(1, "e")]
    write(task, [change(8, 1, None), change(9, 2, None), change(10, 2, "again")])
    assert [(row["id"], row["name"]) for row in table.read()] == [(2, "again")]
    assert table.task()[1] == {ZERO: 11}
    write(task, [record(11, {"id": None, "name": "x"}, ROW), record(12, {"name": "x"}, None)])
    assert [offset for offset, _ in table.reported] == [11, 12]


def test_the_key_is_a_column_if_the_value_lacks_it(tmp_path: Path) -> None:
    table = Table(tmp_path, "delta", **{"table.mode": "upsert"})
    task, _ = table.task()
    write(task, [record(0, {"name": "a"}, struct({"name": STRING}), key={"id": 4})])
    assert table.read() == [{"id": 4, "name": "a"}]


def test_rows_may_say_where_their_records_are(table: Table) -> None:
    table.config["table.kafka.columns"] = "true"
    task, _ = table.task()
    write(task, rows(3, 1))
    (row,) = table.read()
    assert (row["kafka_topic"], row["kafka_partition"], row["kafka_offset"]) == ("a.orders", 0, 3)
    assert (row["kafka_key"], row["kafka_timestamp"]) == (
        "k",
        datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
    )


@pytest.mark.parametrize(
    ("unit", "directory"),
    [("year", "2026"), ("month", "2026-01"), ("day", "2026-01-02"), ("hour", "2026-01-02-03")],
)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_is_divided_by_columns_and_parts_of_times(
    tmp_path: Path, kind: str, unit: str, directory: str
) -> None:
    table = Table(tmp_path, kind, **{"table.partition.by": f"name,{unit}(at)"})
    task, _ = table.task()
    timed = struct({"id": INT64, "name": STRING, "at": TIMESTAMP_SCHEMA})
    write(task, [record(n, {"id": n, "name": f"n{n % 2}", "at": AT}, timed) for n in range(4)])
    assert ids(table) == [0, 1, 2, 3]
    location = Path(table.config["table.location"])
    files = {str(path.parent) for path in location.rglob("*.parquet")}
    assert len(files) == 2
    assert all("name=n" in name and directory in name for name in files)
    if kind != "iceberg":
        write(task, [record(4, {"id": 4, "name": "n0"}, ROW)])
        assert table.reported == [(4, "the record has no field 'at', which divides the table")]


def test_values_without_a_schema_have_the_columns_that_they_show(table: Table) -> None:
    task, _ = table.task()
    write(task, [record(0, {"id": 0, "a": None}, None), record(1, {"id": 1, "a": [1, 2]}, None)])
    assert [(row["id"], row["a"]) for row in table.read()] == [(0, None), (1, [1, 2])]
    write(task, [record(2, {"id": 2, "value": "x"}, None)])
    assert ids(table) == [0, 1, 2]


def test_values_that_are_no_structs_are_in_one_column(tmp_path: Path) -> None:
    table = Table(tmp_path, "delta", **{"table.kafka.columns": "true"})
    task, _ = table.task()
    write(task, [record(0, "x", STRING), record(1, "y", None)])
    from deltalake import DeltaTable

    found = DeltaTable(table.config["table.location"]).to_pyarrow_table().to_pylist()
    assert sorted((row["value"], row["kafka_offset"]) for row in found) == [("x", 0), ("y", 1)]


def test_small_files_become_large_ones(tmp_path: Path) -> None:
    table = Table(tmp_path, "delta", **{"table.compact.interval.ms": "1"})
    task, _ = table.task()
    for number in range(5):
        write(task, rows(number, 1))
    from deltalake import DeltaTable

    assert len(DeltaTable(table.config["table.location"]).file_uris()) < 5
    assert ids(table) == [0, 1, 2, 3, 4]
    assert table.task()[1] == {ZERO: 5}


def test_many_rows_are_committed_at_once(tmp_path: Path) -> None:
    table = Table(tmp_path, "delta", **{"table.commit.rows": "3"})
    task, _ = table.task()
    asyncio.run(task.put(rows(0, 2)))
    assert table.task()[1] == {ZERO: 0}
    asyncio.run(task.put(rows(2, 2)))
    assert table.task()[1] == {ZERO: 4}


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"topics": "a,b"}, "several topics need ${topic} in table.location"),
        ({"table.partition.by": "week(at)"}, "week(at) is no part of a time: use year(COLUMN)"),
        ({"table.format": "parquet", "table.mode": "upsert"}, "use delta or iceberg for upsert"),
        ({"table.format": "parquet", "table.location": "s3://b/t"}, "are written to local disks"),
        ({"table.format": "orc"}, "Invalid value orc for configuration table.format"),
    ],
)
def test_what_cannot_be_done_is_refused_when_the_connector_is_made(more: dict[str, str], text: str) -> None:
    config = {
        "name": "c",
        "connector.class": "ottla.connect.TableSinkConnector",
        "topics": "a",
        "table.format": "delta",
        "table.location": "/x",
    }
    check_config(all_plugins(), config, WorkerSettings().defaults)
    with pytest.raises(RestError) as raised:
        check_config(all_plugins(), {**config, **more}, WorkerSettings().defaults)
    assert text in raised.value.message


def test_parts_of_times_are_named() -> None:
    found = parse_partitioning(["region", "day(at)"])
    assert found == (Partitioning("region"), Partitioning("at", "day"))
    assert [item.name for item in found] == ["region", "at_day"]


def test_types_have_their_counterparts(tmp_path: Path) -> None:
    listed = Schema(Type.ARRAY, values=STRING)
    mapped = Schema(Type.MAP, keys=STRING, values=INT64)
    every = struct(
        {"id": INT64, "list": listed, "map": mapped, "raw": Schema(Type.BYTES), "ok": Schema(Type.BOOLEAN)}
    )
    value = {"id": 0, "list": ["a"], "map": {"k": 1}, "raw": b"\x00", "ok": True}
    for kind in FORMATS:
        table = Table(tmp_path / kind, kind)
        task, _ = table.task()
        write(task, [record(0, value, every)])
        (row,) = table.read()
        assert (row["list"], row["raw"], row["ok"]) == (["a"], b"\x00", True)
        assert dict(row["map"]) == {"k": 1}
