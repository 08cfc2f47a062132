"""Where a query began is kept from its first moment on, and a program is compared with its checkpoint."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from tests.pipelines.records import committed_values, create_topic, produce, produce_json
from tests.pipelines.test_data_source import copy, forget_last_batch
from tests.pipelines.test_delivery import run
from tests.support.ottla_node import OttlaNode

from ottla.pipelines import InvalidPipeline, pipeline, topic
from ottla.pipelines.status import QueryStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["run"]

# The first test of a process starts Java, which takes minutes where everything else runs as well.
pytestmark = pytest.mark.timeout(900)

Run = Callable[..., list[QueryStatus]]


def _stream(spark: "SparkSession", node: OttlaNode, **options: str) -> "DataFrame":
    reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", node.bootstrap)
    return reader.options(**options).load()


def _add_partitions(node: OttlaNode, name: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_partitions([NewPartitions(name, count)])[name].result(30)


def _numbers(first: int, stop: int) -> list[tuple[bytes, bytes]]:
    return [(b"%d" % number, b"%d" % number) for number in range(first, stop)]


@pytest.mark.parametrize("starting", ["earliest", "by offset"])
def test_a_first_batch_that_was_not_done_runs_again_though_partitions_and_topics_have_come(
    spark: "SparkSession", node: OttlaNode, tmp_path: Path, starting: str
) -> None:
    name = f"fb-{starting.replace(' ', '-')}"
    create_topic(node.bootstrap, f"{name}-1", 2)
    produce(node.bootstrap, f"{name}-1", _numbers(0, 20))
    offsets = starting if starting == "earliest" else json.dumps({f"{name}-1": {"0": 0, "1": 0}})
    frame = _stream(spark, node, subscribePattern=f"{name}-[0-9]", startingOffsets=offsets)
    copy(frame, node, f"{name}-out", tmp_path)
    forget_last_batch(tmp_path)

    _add_partitions(node, f"{name}-1", 4)
    create_topic(node.bootstrap, f"{name}-2", 1)
    produce(node.bootstrap, f"{name}-2", _numbers(20, 30))
    produce(node.bootstrap, f"{name}-1", _numbers(30, 40), partition=3)
    copy(frame, node, f"{name}-out", tmp_path)

    found = committed_values(node.bootstrap, f"{name}-out")
    assert sorted(found) == sorted(value for _, value in _numbers(0, 40))


def test_a_query_that_begins_at_the_end_keeps_where_that_was(
    spark: "SparkSession", node: OttlaNode, tmp_path: Path
) -> None:
    """Also if nothing came before it was stopped, and if its first batch was not done."""
    create_topic(node.bootstrap, "fb-latest", 1)
    produce(node.bootstrap, "fb-latest", _numbers(0, 5))
    frame = _stream(spark, node, subscribe="fb-latest", startingOffsets="latest")
    copy(frame, node, "fb-latest-out", tmp_path)
    forget_last_batch(tmp_path)

    produce(node.bootstrap, "fb-latest", _numbers(5, 10))
    query = copy(frame, node, "fb-latest-out", tmp_path)

    assert sorted(committed_values(node.bootstrap, "fb-latest-out")) == [b"5", b"6", b"7", b"8", b"9"]
    assert query.lastProgress["batchId"] == 1


def test_a_pipeline_without_its_checkpoint_is_refused_before_it_starts(
    node: OttlaNode, run: Run, tmp_path: Path
) -> None:
    create_topic(node.bootstrap, "fb-gone", 1)
    produce_json(node.bootstrap, "fb-gone", [{"id": "1"}])

    @pipeline("fb_gone", to="fb-gone-out")
    def copied(rows: Any = topic("fb-gone", schema="id string")) -> Any:
        return rows.select("id")

    run(copied)
    checkpoint = tmp_path / "pipelines" / "fb_gone"
    shutil.rmtree(checkpoint)

    with pytest.raises(InvalidPipeline, match=r"has delivered batches, and its checkpoint .* is not"):
        run(copied)
    assert not (checkpoint / "offsets").exists()
    assert committed_values(node.bootstrap, "fb-gone-out") == [b'{"id":"1"}']


def test_a_program_whose_state_is_another_is_refused_and_one_with_other_columns_goes_on(
    node: OttlaNode, run: Run
) -> None:
    create_topic(node.bootstrap, "fb-state", 1)
    rows = [{"id": "1", "city": "a"}, {"id": "2", "city": "a"}]
    produce_json(node.bootstrap, "fb-state", rows[:1])
    source = topic("fb-state", schema="id string, city string")

    @pipeline("fb_state", to="fb-state-out", mode="update")
    def by_city(rows: Any = source) -> Any:
        return rows.groupBy("city").count()

    run(by_city)
    with pytest.raises(InvalidPipeline, match=r"made by 'Aggregate \[city\].* now has 'Aggregate \[id\]"):
        run(replace(by_city, function=lambda rows: rows.groupBy("id").count()))

    produce_json(node.bootstrap, "fb-state", rows[1:])
    run(replace(by_city, function=lambda rows: rows.where("id > 0").groupBy("city").count().select("count")))
    assert committed_values(node.bootstrap, "fb-state-out") == [b'{"city":"a","count":1}', b'{"count":2}']
