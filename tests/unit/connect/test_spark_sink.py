"""Records to formats of Spark: what is written where, and from which offset a task goes on. Without Spark."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ottla.client.consumer.record import ConsumerRecord
from ottla.connect.connectors import file_batches as batches
from ottla.connect.connectors.spark import sink
from ottla.connect.connectors.spark.sink import SparkSinkTask, local_path
from ottla.connect.data.record import Record
from ottla.connect.data.schema import INT64, struct
from ottla.connect.errors import ConnectError
from ottla.connect.running.task import SinkContext
from ottla.model.ids import TopicPartition
from ottla.records.attributes import TimestampType

pytest.importorskip("pyarrow")

(PLUGIN,) = sink.PLUGINS
ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)
ROW = struct({"n": INT64})


class Session:
    """Stands where Spark does: what is saved becomes a file of JSON, if it has a path."""

    def __init__(self) -> None:
        self.saved: list[dict[str, Any]] = []
        self.is_broken = False
        self._now: dict[str, Any] = {}

    def createDataFrame(self, table: Any) -> "Session":  # noqa: N802 - Spark's name
        self._now = {"rows": [row["n"] for row in table.to_pylist()]}
        return self

    def coalesce(self, count: int) -> "Session":
        self._now["files"] = count
        return self

    @property
    def write(self) -> "Session":
        return self

    def format(self, name: str) -> "Session":
        self._now["format"] = name
        return self

    def options(self, **options: str) -> "Session":
        self._now["options"] = options
        return self

    def mode(self, name: str) -> "Session":
        self._now["mode"] = name
        return self

    def save(self, path: str | None = None) -> None:
        self.saved.append({**self._now, "path": path})
        if path is not None and Path(path).is_dir():
            (Path(path) / "part-0").write_text(json.dumps(self._now["rows"]))
        if self.is_broken:
            raise RuntimeError("the disk is full")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    made = Session()
    monkeypatch.setattr(sink, "shared_session", lambda config: made)
    return made


def record(offset: int, partition: int = 0, value: bool = True) -> Record:
    origin = ConsumerRecord("t", partition, -1, TimestampType.CREATE_TIME, offset, 0, None, None, ())
    return Record("t", partition, None, None, ROW, {"n": offset} if value else None, origin=origin)


async def started(config: dict[str, str], connector: str = "c", task: int = 0) -> SparkSinkTask:
    made = SparkSinkTask({"spark.format": "parquet", **config})
    await made.start(SinkContext(connector, task, lambda record, error: None))
    return made


def test_a_batch_is_a_directory_with_its_offsets(session: Session, tmp_path: Path) -> None:
    lake = tmp_path / "lake"

    async def story() -> None:
        config = {"spark.path": str(lake), "spark.files.per.batch": "3", "spark.option.compression": "zstd"}
        task = await started(config)
        assert await task.opened(frozenset({ONE, TWO})) == {}
        await task.put([record(4), record(5), record(7, 1)])
        assert session.saved == [], "it collects"
        await task.flush()
        await task.flush()
        (saved,) = session.saved
        assert (saved["rows"], saved["files"], saved["format"]) == ([4, 5, 7], 3, "parquet")
        assert (saved["options"], saved["mode"]) == ({"compression": "zstd"}, "append")
        await task.put([record(6), record(7, value=False)])
        await task.flush()
        assert session.saved[1]["rows"] == [6]
        await task.stop()
        again = await started(config)
        # A record without a value is no row, and need not be read again.
        assert await again.opened(frozenset({ONE, TWO})) == {ONE: 8, TWO: 8}
        assert await again.opened(frozenset({TWO})) == {TWO: 8}
        await again.put([record(8)])
        await again.flush()
        other = await started(config, connector="d")
        assert await other.opened(frozenset({ONE})) == {}

    asyncio.run(story())
    names = sorted(path.name for path in lake.iterdir())
    assert names == [f"ottla_batch=c-0-{number:09}" for number in (1, 2, 3)]
    assert all((lake / name / "part-0").exists() for name in names)


def test_what_an_earlier_life_left_unfinished_goes_and_does_not_count(
    session: Session, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"

    async def story() -> None:
        config = {"spark.path": f"file:{lake}"}
        task = await started(config)
        other = await started(config, task=1)
        for one in (task, other):
            session.is_broken = True
            await one.put([record(1)])
            with pytest.raises(RuntimeError, match="disk is full"):
                await one.flush()
        assert len(list(lake.iterdir())) == 2
        session.is_broken = False
        again = await started(config)
        # Another task may be at work on what it has there.
        (left,) = lake.iterdir()
        assert "c-1" in left.name
        assert await again.opened(frozenset({ONE})) == {}

    asyncio.run(story())


def test_only_records_of_partitions_that_are_given_up_are_dropped(session: Session, tmp_path: Path) -> None:
    async def story() -> None:
        task = await started({"spark.path": str(tmp_path / "lake")})
        await task.opened(frozenset({ONE}))
        await task.put([record(1, 0)])
        # One more partition: those that the task has stay.
        await task.opened(frozenset({TWO}))
        await task.put([record(2, 1)])
        await task.closed(frozenset({ONE}))
        await task.flush()
        assert [saved["rows"] for saved in session.saved] == [[2]]

    asyncio.run(story())


def test_a_task_that_has_lost_a_partition_writes_nothing_twice(session: Session, tmp_path: Path) -> None:
    lake = tmp_path / "lake"

    async def story() -> None:
        first, second = [await started({"spark.path": str(lake)}, task=number) for number in range(2)]
        await first.put([record(1), record(2)])
        # The group has dropped the first, which does not know it.
        assert await second.opened(frozenset({ONE})) == {}
        await second.put([record(1), record(2), record(3)])
        await second.flush()
        with pytest.raises(ConnectError, match=r"another task has written offset 1 of .*lost the partition"):
            await first.flush()
        again = await started({"spark.path": str(lake)})
        assert await again.opened(frozenset({ONE})) == {ONE: 4}

    asyncio.run(story())
    assert [path.name for path in lake.iterdir()] == ["ottla_batch=c-1-000000001"]


def test_many_records_are_written_before_they_are_to_be_durable(session: Session, tmp_path: Path) -> None:
    async def story() -> None:
        task = await started({"spark.path": str(tmp_path / "lake"), "batch.max.rows": "2"})
        await task.put([record(1)])
        assert len(session.saved) == 0
        await task.put([record(2)])
        assert [saved["rows"] for saved in session.saved] == [[1, 2]]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"spark.format": "delta", "spark.path": "/lake"}, "/lake"),
        ({"spark.format": "parquet", "spark.path": "s3://lake"}, "s3://lake"),
        ({"spark.format": "jdbc"}, None),
    ],
)
def test_other_targets_keep_no_offsets(session: Session, config: dict[str, str], path: str | None) -> None:
    async def story() -> None:
        task = await started(config)
        assert await task.opened(frozenset({ONE})) == {}
        await task.put([record(1)])
        await task.flush()
        assert [saved["path"] for saved in session.saved] == [path]

    assert local_path(config) is None
    asyncio.run(story())


def test_offsets_that_cannot_be_read_stop_the_task(session: Session, tmp_path: Path) -> None:
    batch = tmp_path / "ottla_batch=c-0-000000001"
    batch.mkdir()
    (batch / batches.OFFSETS_FILE).write_text("{")

    async def story() -> None:
        task = await started({"spark.path": str(tmp_path)})
        with pytest.raises(ConnectError, match="it is unknown what was written"):
            await task.opened(frozenset({ONE}))

    asyncio.run(story())


def test_offsets_in_files_are_not_changed_by_hand() -> None:
    alter = PLUGIN.alter_sink_offsets
    assert alter is not None
    alter("c", {"spark.format": "jdbc"}, None)
    with pytest.raises(ConnectError, match="are in its files"):
        alter("c", {"spark.format": "parquet", "spark.path": "/lake"}, None)
    assert PLUGIN.task_configs({"a": "b"}, 2) == [{"a": "b"}] * 2
