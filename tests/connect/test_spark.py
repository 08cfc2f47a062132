"""Formats of Spark as sources and sinks: files that appear, and a lake of Parquet files."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.connect.reading import read_topic
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode

pytest.importorskip("pyspark")
pq = pytest.importorskip("pyarrow.parquet")


def _lake_ids(lake: Path) -> list[int]:
    if not any(lake.glob("ottla_batch=*")):
        return []
    return sorted(pq.read_table(lake).column("id").to_pylist())


@pytest.mark.thorough(guard="tests/unit/connect/test_spark_sink.py")
def test_a_table_becomes_parquet_files_once_and_files_that_appear_become_records(
    spark_worker: ConnectProcess, node: OttlaNode, tmp_path: Path, name: str
) -> None:
    database, lake, drop = tmp_path / "shop.db", tmp_path / "lake", tmp_path / "drop"
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT, price DECIMAL(8, 2))")
        connection.executemany(
            "INSERT INTO orders VALUES (?, ?, ?)", [(n, f"i{n}", n / 4) for n in range(300)]
        )
    converters = {
        "value_converter": "org.apache.kafka.connect.json.JsonConverter",
        "key_converter": "org.apache.kafka.connect.json.JsonConverter",
    }
    spark_worker.create(
        f"{name}-in",
        connector_class="JdbcSource",
        connection_url=f"jdbc:sqlite:{database}",
        mode="incrementing",
        topic_prefix=f"{name}-",
        poll_interval_ms="100",
        batch_max_rows="50",
        **converters,
    )
    spark_worker.create(
        f"{name}-out",
        connector_class="SparkSink",
        topics=f"{name}-orders",
        spark_format="parquet",
        spark_path=str(lake),
        spark_master="local[1]",
        **converters,
    )
    spark_worker.wait_for("/", lambda _: len(_lake_ids(lake)) > 0)

    spark_worker.kill()
    spark_worker.start()

    with closing(sqlite3.connect(database, timeout=30, isolation_level=None)) as connection:
        connection.executemany(
            "INSERT INTO orders VALUES (?, ?, ?)", [(n, "late", 0.5) for n in range(300, 400)]
        )
    spark_worker.wait_for("/", lambda _: len(_lake_ids(lake)) >= 400)
    assert _lake_ids(lake) == list(range(400))
    assert str(pq.read_table(lake).schema.field("price").type) == "decimal128(38, 2)"

    # Files that appear are read once each, by the same session.
    drop.mkdir()
    (drop / "a.json").write_text('{"n": 1}\n{"n": 2}\n')
    spark_worker.create(
        f"{name}-files",
        connector_class="SparkSource",
        topic=f"{name}-files",
        spark_format="json",
        spark_path=str(drop),
        file_min_age_ms="0",
        poll_interval_ms="100",
        value_converter="org.apache.kafka.connect.json.JsonConverter",
        value_converter_schemas_enable="false",
    )
    read_topic(node.bootstrap, f"{name}-files", 2)
    (drop / "b.json").write_text('{"n": 3}\n')
    records = read_topic(node.bootstrap, f"{name}-files", 3)
    assert [json.loads(record.value) for record in records] == [{"n": 1}, {"n": 2}, {"n": 3}]
