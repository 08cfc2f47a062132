"""`format("ottla")` as Spark drives it: what is read and written, and what if a batch runs again."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.records import committed_values, create_topic, produce
from tests.support.ottla_node import OttlaNode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


# The first test of a process starts Java, which takes minutes where everything else runs as well.
pytestmark = pytest.mark.timeout(900)


def read(spark: "SparkSession", node: OttlaNode, topic: str, **options: str) -> "DataFrame":
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", node.bootstrap)
    return reader.option("subscribe", topic).options(**options).load()


def stream(spark: "SparkSession", node: OttlaNode, topic: str, **options: str) -> "DataFrame":
    reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", node.bootstrap)
    return reader.option("subscribe", topic).options(startingOffsets="earliest", **options).load()


def run_to_the_end(writer: "DataStreamWriter", checkpoint: Path) -> Any:
    """Run a stream over all that is there now, and return the query.

    Spark gives the process that a source runs in ten seconds to start, however busy the machine is, and no
    setting changes that. Nothing was read then, so that starting again changes nothing that a test looks at.
    """
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    for _ in range(10):
        query = writer.start()
        try:
            query.awaitTermination()
        except Exception as error:
            if "Python worker failed to connect back" not in str(error):
                raise
        else:
            return query
    raise AssertionError("Spark's processes did not start in time, ten times in a row")


def copy(frame: "DataFrame", node: OttlaNode, topic: str, checkpoint: Path, **options: str) -> Any:
    """Copy a stream to a topic, all that is there now, and return the query."""
    writer = frame.select("key", "value").writeStream.format("ottla")
    writer = writer.option("kafka.bootstrap.servers", node.bootstrap)
    return run_to_the_end(writer.options(topic=topic, pipeline=topic, **options), checkpoint)


def forget_last_batch(checkpoint: Path) -> None:
    """Make Spark believe that the last batch was not done, as if the driver had died right before the end."""
    numbers = [int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit()]
    for path in (checkpoint / "commits" / str(max(numbers)), checkpoint / "commits" / f".{max(numbers)}.crc"):
        path.unlink(missing_ok=True)


def test_batch_has_the_columns_of_sparks_kafka_source(spark: "SparkSession", node: OttlaNode) -> None:
    create_topic(node.bootstrap, "ds-columns", 2)
    produce(
        node.bootstrap, "ds-columns", [(b"k", b"v"), (None, None)],
        partition=1, timestamp=1_700_000_000_123, headers=[("h", b"1")],
    )  # fmt: skip
    rows = read(spark, node, "ds-columns", includeHeaders="true").orderBy("offset").collect()

    assert [row.asDict(recursive=True) for row in rows] == [
        {
            "key": key, "value": value, "topic": "ds-columns", "partition": 1, "offset": offset,
            "timestamp": rows[0].timestamp, "timestampType": 0,
            "headers": [{"key": "h", "value": bytearray(b"1")}],
        }
        for offset, (key, value) in enumerate([(bytearray(b"k"), bytearray(b"v")), (None, None)])
    ]  # fmt: skip
    assert rows[0].timestamp.timestamp() == pytest.approx(1_700_000_000.123)


def test_batch_reads_between_the_offsets_and_times_that_were_given(
    spark: "SparkSession", node: OttlaNode
) -> None:
    create_topic(node.bootstrap, "ds-range", 1)
    for number in range(10):
        produce(node.bootstrap, "ds-range", [(None, b"%d" % number)], timestamp=1000 + number)
    by_offset = read(
        spark, node, "ds-range", startingOffsets='{"ds-range":{"0":3}}', endingOffsets='{"ds-range":{"0":7}}',
        minPartitions="3",
    )  # fmt: skip
    by_time = read(spark, node, "ds-range", startingTimestamp="1004", endingTimestamp="1006")

    assert sorted(bytes(row.value) for row in by_offset.collect()) == [b"3", b"4", b"5", b"6"]
    assert by_offset.rdd.getNumPartitions() == 3
    assert sorted(bytes(row.value) for row in by_time.collect()) == [b"4", b"5"]


def test_batches_are_no_larger_than_allowed_and_are_copied_exactly_once(
    spark: "SparkSession", node: OttlaNode, tmp_path: Path
) -> None:
    create_topic(node.bootstrap, "ds-in", 2)
    values = [b"%d" % number for number in range(1000)]
    produce(node.bootstrap, "ds-in", ((value, value) for value in values))
    query = copy(stream(spark, node, "ds-in", maxOffsetsPerTrigger="400"), node, "ds-out", tmp_path)

    sizes = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
    assert sum(sizes) == 1000
    assert len(sizes) >= 3
    assert max(sizes) <= 402
    assert sorted(committed_values(node.bootstrap, "ds-out")) == sorted(values)


def test_batch_that_runs_again_is_not_delivered_again(
    spark: "SparkSession", node: OttlaNode, tmp_path: Path
) -> None:
    create_topic(node.bootstrap, "ds-again", 2)
    produce(node.bootstrap, "ds-again", ((b"%d" % number, b"%d" % number) for number in range(100)))
    frame = stream(spark, node, "ds-again")
    copy(frame, node, "ds-again-out", tmp_path)
    forget_last_batch(tmp_path)
    copy(frame, node, "ds-again-out", tmp_path)

    assert len(committed_values(node.bootstrap, "ds-again-out")) == 100

    # The same once more without the ledger shows that the batch does run again.
    plain = tmp_path / "plain"
    copy(frame, node, "ds-twice-out", plain, deliveryGuarantee="at-least-once")
    forget_last_batch(plain)
    copy(frame, node, "ds-twice-out", plain, deliveryGuarantee="at-least-once")

    assert len(committed_values(node.bootstrap, "ds-twice-out")) == 200


def test_batch_that_runs_again_in_other_pieces_is_refused(
    spark: "SparkSession", node: OttlaNode, tmp_path: Path
) -> None:
    create_topic(node.bootstrap, "ds-pieces", 2)
    produce(node.bootstrap, "ds-pieces", ((b"%d" % number, b"%d" % number) for number in range(100)))
    copy(stream(spark, node, "ds-pieces"), node, "ds-pieces-out", tmp_path)
    forget_last_batch(tmp_path)

    with pytest.raises(Exception, match="started with 2 tasks and now runs with 5"):
        copy(stream(spark, node, "ds-pieces", minPartitions="5"), node, "ds-pieces-out", tmp_path)

    assert len(committed_values(node.bootstrap, "ds-pieces-out")) == 100


def test_update_mode_is_delivered_exactly_once_under_foreach_batch(
    spark: "SparkSession", node: OttlaNode, tmp_path: Path
) -> None:
    from ottla.pipelines.spark.delivery import topic_writer

    create_topic(node.bootstrap, "ds-update", 2)
    produce(node.bootstrap, "ds-update", ((b"%d" % (number % 7), b"x") for number in range(100)))
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": "ds-update-out", "pipeline": "ds-update"}

    def run() -> None:
        counts = stream(spark, node, "ds-update").groupBy("key").count()
        rows = counts.selectExpr("key", "CAST(count AS STRING) AS value")
        run_to_the_end(rows.writeStream.outputMode("update").foreachBatch(topic_writer(options)), tmp_path)

    run()
    forget_last_batch(tmp_path)
    run()

    assert sorted(committed_values(node.bootstrap, "ds-update-out")) == sorted(
        b"%d" % len(range(key, 100, 7)) for key in range(7)
    )


def test_each_write_of_a_batch_is_delivered_or_refused(
    spark: "SparkSession", node: OttlaNode, tmp_path: Path
) -> None:
    create_topic(node.bootstrap, "ds-writes", 2)
    produce(node.bootstrap, "ds-writes", ((b"%d" % number, b"%d" % number) for number in range(20)))

    def run(named: bool, place: Path) -> None:
        def each(batch: "DataFrame", _batch_id: int) -> None:
            for topic in ("ds-writes-one", "ds-writes-two"):
                writer = batch.select("key", "value").write.format("ottla").mode("append")
                writer = writer.option("kafka.bootstrap.servers", node.bootstrap).option("topic", topic)
                writer = writer.option("deliveryGuarantee", "exactly-once")
                (writer.option("write", topic.replace("-", "_")) if named else writer).save()

        run_to_the_end(stream(spark, node, "ds-writes").writeStream.foreachBatch(each), place)

    with pytest.raises(Exception, match="give each write of a batch its own name with the option write"):
        run(named=False, place=tmp_path / "unnamed")
    run(named=True, place=tmp_path / "named")
    forget_last_batch(tmp_path / "named")
    run(named=True, place=tmp_path / "named")

    assert len(committed_values(node.bootstrap, "ds-writes-one")) == 40
    assert len(committed_values(node.bootstrap, "ds-writes-two")) == 20


def test_lost_records_stop_a_query_unless_that_is_wanted(
    spark: "SparkSession", node: OttlaNode, tmp_path: Path
) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    create_topic(node.bootstrap, "ds-loss", 1)
    produce(node.bootstrap, "ds-loss", ((None, b"%d" % number) for number in range(10)))
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for future in admin.delete_records([TopicPartition("ds-loss", 0, 6)]).values():
        future.result(30)
    lost = '{"ds-loss":{"0":2}}'

    with pytest.raises(Exception, match="some records were lost before they were read"):
        read(spark, node, "ds-loss", startingOffsets=lost).collect()
    rows = read(spark, node, "ds-loss", startingOffsets=lost, failOnDataLoss="false").collect()
    assert sorted(bytes(row.value) for row in rows) == [b"6", b"7", b"8", b"9"]


def test_workers_import_the_package_that_is_installed(spark: "SparkSession") -> None:
    """And not the archive that comes with it, which Python would compile anew in each process."""

    def place(batches: Any) -> Any:
        import pyarrow as pa
        import pyspark

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"place": [pyspark.__file__]})

    import pyspark

    (row,) = spark.range(1).coalesce(1).mapInArrow(place, "place string").collect()
    assert row.place == pyspark.__file__


def test_spark_still_tells_tasks_their_batch_and_their_query(
    spark: "SparkSession", node: OttlaNode, tmp_path: Path
) -> None:
    """The exactly-once sink stands on two local properties that Spark does not document."""
    create_topic(node.bootstrap, "ds-pinned", 1)
    produce(node.bootstrap, "ds-pinned", [(None, b"x")])
    seen: list[Any] = []

    def look(batches: Any) -> Any:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        told = [context.getLocalProperty(name) for name in ("streaming.sql.batchId", "sql.streaming.queryId")]
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"batch": [told[0]], "query": [told[1]]})

    def each(batch: "DataFrame", batch_id: int) -> None:
        seen.extend(
            (batch_id, row.batch, row.query)
            for row in batch.mapInArrow(look, "batch string, query string").collect()
        )

    query = run_to_the_end(stream(spark, node, "ds-pinned").writeStream.foreachBatch(each), tmp_path)

    assert seen == [(0, "0", query.id)]
