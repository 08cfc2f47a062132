"""What goes wrong on the way into a table: nothing is lost, written twice, or other than the record says."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.unit.connect.test_lake_sink import ONE, ROW, ZERO, Table, ids, record, rows, write

from ottla.connect.connectors.lake.sink import LakeSinkTask, open_target
from ottla.connect.errors import ConnectError
from ottla.connect.running.task import RetryLater, SinkContext

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

UPSERT = {"table.mode": "upsert", "table.key.columns": "id"}


def change(offset: int, **cells: Any) -> Any:
    return record(offset, cells, None)


def fail_once(task: LakeSinkTask, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    """Have the next commit fail, before or after it counts."""
    target: Any = task._tables[ZERO.topic].target
    commit = target.commit

    def failing(batch: Any) -> None:
        monkeypatch.setattr(target, "commit", commit)
        if after:
            commit(batch)
        raise RetryLater("the store does not answer")

    monkeypatch.setattr(target, "commit", failing)


@pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])
@pytest.mark.parametrize("after", [False, True])
def test_records_whose_commit_fails_are_written_once(
    tmp_path: Path, kind: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(tmp_path, kind, **{"table.commit.rows": "3"})
    task, _ = table.task()
    fail_once(task, monkeypatch, after=after)
    left = rows(0, 4)
    with pytest.raises(RetryLater) as raised:
        asyncio.run(task.put(left))
    left = left[raised.value.done :]
    if after:
        # What was committed is not known here. The next life sees it.
        with pytest.raises(ConnectError, match="up to offset 4, and this one expected 0"):
            asyncio.run(task.put([*left, *rows(4, 1)]))
        task, begin = table.task()
        assert begin == {ZERO: 4}
    write(task, [*left, *rows(4, 1)])
    assert ids(table) == [0, 1, 2, 3, 4]


def test_dead_letters_are_written_before_the_table_goes_on(tmp_path: Path) -> None:
    table = Table(tmp_path, "delta", **{"table.commit.rows": "1"})
    said: list[Any] = []

    async def settle() -> None:
        said.append(open_target(table.config, "c", ZERO.topic).positions([ZERO]))

    task = LakeSinkTask(table.config)
    asyncio.run(task.start(SinkContext("c", 0, lambda bad, error: said.append(bad.value), settle)))
    asyncio.run(task.opened(frozenset((ZERO,))))
    asyncio.run(task.put([*rows(0, 1), record(1, {}, None)]))
    assert said[:2] == [{}, {}]
    assert open_target(table.config, "c", ZERO.topic).positions([ZERO]) == {ZERO: 2}


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("cells", [{"x": None}, {}])
def test_a_row_that_is_replaced_keeps_nothing(tmp_path: Path, kind: str, cells: dict[str, Any]) -> None:
    table = Table(tmp_path, kind, **UPSERT)
    task, _ = table.task()
    write(task, [change(0, id=1, x=5, y=1)])
    write(task, [change(1, id=1, y=2, **cells)])
    assert table.read() == [{"id": 1, "x": None, "y": 2}]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_key_in_two_partitions_has_the_row_that_came_last(tmp_path: Path, kind: str) -> None:
    table = Table(tmp_path, kind, **UPSERT)
    task, _ = table.task(ZERO, ONE)
    one = record(0, {"id": 1, "name": "one"}, ROW, ONE)
    last = record(1, {"id": 1, "name": "last"}, ROW, ONE)
    write(task, [one], [record(0, {"id": 1, "name": "zero"}, ROW)], [last])
    assert [row["name"] for row in table.read()] == ["last"]
    gone = record(1, None, None, ZERO, key={"id": 1})
    write(task, [record(2, {"id": 1, "name": "x"}, ROW, ONE)], [gone])
    assert table.read() == []


@pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])
@pytest.mark.parametrize(
    "cells",
    [{"a": []}, {"a": {}}, {"a": [{}]}, {"a": 2**63}, {"a": 2**70}, {"a": [2**70]}, {"a": {"b": None}}],
)
def test_a_value_without_a_column_stops_no_table(tmp_path: Path, kind: str, cells: dict[str, Any]) -> None:
    table = Table(tmp_path, kind)
    task, _ = table.task()
    write(task, [change(0, id=0), change(1, id=1, **cells)], [change(2, id=2, a=["x"])])
    found = {row["id"] for row in table.read()} | {offset for offset, _ in table.reported}
    assert found == {0, 1, 2}
    assert 0 in ids(table)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_key_of_two_columns_may_have_many_values(tmp_path: Path, kind: str) -> None:
    table = Table(tmp_path, kind, **{"table.mode": "upsert", "table.key.columns": "id,name"})
    task, _ = table.task()
    write(task, rows(0, 600))
    # Each half of this key is there, and the key is not.
    again = [change(600 + n, id=n, name=f"n{n}") for n in range(600)]
    write(task, [*again, change(1200, id=3, name="n4", x=1)])
    assert ids(table) == sorted([*range(600), 3])
    # Nor do other rows with a half of it go.
    write(task, [change(1201, id=3, name="n4", x=2), change(1202, id=4, name="n3", x=3)])
    assert ids(table) == sorted([*range(600), 3, 4])
    assert {row["x"] for row in table.read()} == {None, 2, 3}


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_two_tasks_may_make_a_table_at_once(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(tmp_path, kind)
    late, _ = table.task(ZERO)
    asyncio.run(late.put(rows(0, 1)))
    quick, _ = table.task(ONE)
    asyncio.run(quick.put(rows(10, 1, ONE)))
    module = __import__(f"ottla.connect.connectors.lake.{kind}", fromlist=["check_begins"])
    check = module.check_begins
    waiting = [quick]

    def look_then_wait(*args: Any) -> None:
        check(*args)
        if waiting:
            waiting.pop()._commit()

    monkeypatch.setattr(module, "check_begins", look_then_wait)
    try:
        late._commit()
    except RetryLater:
        late._commit()
    assert ids(table) == [0, 10]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_of_two_tasks_that_make_the_table_for_one_partition_only_one_counts(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(tmp_path, kind)
    late, _ = table.task(ZERO)
    asyncio.run(late.put(rows(0, 1)))
    quick, _ = table.task(ZERO)
    asyncio.run(quick.put(rows(0, 2)))
    module = __import__(f"ottla.connect.connectors.lake.{kind}", fromlist=["check_begins"])
    check = module.check_begins
    waiting = [quick]

    def look_then_wait(*args: Any) -> None:
        check(*args)
        if waiting:
            waiting.pop()._commit()

    monkeypatch.setattr(module, "check_begins", look_then_wait)
    with pytest.raises((ConnectError, RetryLater)):
        late._commit()
    assert ids(table) == [0, 1]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_columns_that_differ_by_case(tmp_path: Path, kind: str) -> None:
    table = Table(tmp_path, kind)
    task, _ = table.task()
    write(task, [change(0, id=0, x=1)], [change(1, id=1, X=2)], [change(2, id=2, y=1, Y=2)])
    assert [offset for offset, _ in table.reported] == [1, 2]


def test_every_file_of_a_batch_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.connect.connectors import file_batches

    synced: set[str] = set()
    monkeypatch.setattr(file_batches, "_sync", lambda path: synced.add(path.name))
    table = Table(tmp_path, "parquet", **{"table.partition.by": "name"})
    write(table.task()[0], rows(0, 2))
    written = {path.name for path in (tmp_path / "t").rglob("*.parquet")}
    assert written <= synced
    assert {"name=n0", "name=n1"} <= synced


def test_keys_that_cannot_be_compared_are_reported(tmp_path: Path) -> None:
    table = Table(tmp_path, "delta", **UPSERT)
    task, _ = table.task()
    write(task, [change(0, id=[1], x=1), change(1, id=1, x=1)])
    assert [offset for offset, _ in table.reported] == [0]
