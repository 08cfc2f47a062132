"""Pipelines in one session: dead letters beside the rows, functions and sinks of Spark's own as outputs."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.records import (
    committed,
    committed_json,
    committed_values,
    create_topic,
    produce,
    produce_json,
)
from tests.pipelines.test_data_source import forget_last_batch
from tests.support.ottla_node import OttlaNode

from ottla.pipelines import PipelineDefinition, foreach_batch, pipeline, spark_sink, supervision, table, topic
from ottla.pipelines.definition import AVAILABLE_NOW
from ottla.pipelines.lag import measure_lag
from ottla.pipelines.link import Link
from ottla.pipelines.loading import load_pipelines
from ottla.pipelines.status import DONE, FAILED, QueryStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The first test of a process starts Java, which takes minutes where everything else runs as well.
pytestmark = pytest.mark.timeout(900)

SCHEMA = "id string, amount double"
BAD = [b"{", b'{"id": "x", "amount": "much"}', b"no JSON"]
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "pipelines.md"

Run = Callable[..., list[QueryStatus]]


@pytest.fixture
def run(spark: "SparkSession", node: OttlaNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run pipelines over all that is there now. What fails is tried once more, and at once."""
    from ottla.pipelines.spark.runner import RunSettings, run_pipelines

    monkeypatch.setattr(supervision, "ATTEMPTS_MAX", 2)
    monkeypatch.setattr(supervision, "FIRST_WAIT_S", 0.0)

    def run(*definitions: PipelineDefinition, patience: bool = True) -> list[QueryStatus]:
        settings = RunSettings(
            {"bootstrap.servers": node.bootstrap}, tmp_path / "pipelines", trigger=AVAILABLE_NOW
        )
        statuses = run_pipelines(definitions, settings, session=spark)
        if patience:
            assert {status.state for status in statuses} == {DONE}, statuses
        return statuses

    return run


def fill(node: OttlaNode, name: str, *, rows: int = 30, partitions: int = 2) -> list[dict[str, Any]]:
    """Make a topic of rows, with three values among them that are no rows."""
    create_topic(node.bootstrap, name, partitions)
    found = [{"id": f"{number}", "amount": float(number)} for number in range(rows)]
    produce_json(node.bootstrap, name, found[: rows // 2], "id")
    produce(node.bootstrap, name, [(b"key of bad", value) for value in BAD])
    produce_json(node.bootstrap, name, found[rows // 2 :], "id")
    return found


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(row["id"] for row in rows)


def test_one_query_delivers_rows_and_dead_letters_and_reads_once(node: OttlaNode, run: Run) -> None:
    rows = fill(node, "one-read")

    @pipeline("one_read", to="one-read-out", key="id")
    def copied(source: Any = topic("one-read", schema=SCHEMA)) -> Any:
        return source.select("id", "amount")

    (status,) = run(copied)

    assert status.rows == len(rows) + len(BAD), "each record was read once"
    assert ids(committed_json(node.bootstrap, "one-read-out")) == ids(rows)
    letters = committed(node.bootstrap, "one_read.dead_letters")
    assert sorted(message.value() for message in letters) == sorted(BAD)
    for message in letters:
        headers = dict(message.headers())
        assert message.key() == b"key of bad"
        assert headers["ottla.reason"].startswith((b"the value is not JSON", b"field 'amount' is"))
        assert headers["ottla.topic"] == b"one-read"
        assert int(headers["ottla.offset"]) >= 0


def test_batch_that_runs_again_delivers_neither_rows_nor_dead_letters_again(
    node: OttlaNode, run: Run, tmp_path: Path
) -> None:
    rows = fill(node, "again")

    @pipeline("again", to="again-out", key="id")
    def copied(source: Any = topic("again", schema=SCHEMA)) -> Any:
        return source.select("id", "amount")

    run(copied)
    forget_last_batch(tmp_path / "pipelines" / "again")
    run(copied)

    assert ids(committed_json(node.bootstrap, "again-out")) == ids(rows)
    assert sorted(committed_values(node.bootstrap, "again.dead_letters")) == sorted(BAD)


def test_driver_that_dies_between_rows_and_dead_letters_loses_and_doubles_nothing(
    node: OttlaNode, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.pipelines.sink.unreadable import bury_unreadable

    rows = fill(node, "between")

    @pipeline("between", to="between-out", key="id")
    def copied(source: Any = topic("between", schema=SCHEMA)) -> Any:
        return source.select("id", "amount")

    calls = []

    def die_once(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            raise RuntimeError("died here")
        bury_unreadable(*arguments)

    monkeypatch.setattr("ottla.pipelines.spark.delivery.bury_unreadable", die_once)
    (status,) = run(copied)

    assert len(calls) == 2
    assert status.restarts == 1
    assert ids(committed_json(node.bootstrap, "between-out")) == ids(rows)
    assert sorted(committed_values(node.bootstrap, "between.dead_letters")) == sorted(BAD)


def test_state_of_a_pipeline_is_told(node: OttlaNode, run: Run) -> None:
    fill(node, "stateful", partitions=1)

    @pipeline("stateful", to="stateful-out", mode="update", key="id")
    def counted(source: Any = topic("stateful", schema=SCHEMA)) -> Any:
        return source.groupBy("id").count()

    (status,) = run(counted)

    assert status.state_rows == 30
    assert status.state_bytes > 0
    assert status.batch_ms is not None
    assert status.batch_ms > 0
    assert status.batch_id == 0
    assert status.inputs == {"stateful": "earliest"}
    assert len(committed_values(node.bootstrap, "stateful.dead_letters")) == len(BAD)


def test_rows_that_the_watermark_drops_are_counted(node: OttlaNode, run: Run) -> None:
    create_topic(node.bootstrap, "late", 1)
    for number, second in enumerate((0, 3600, 1, 2, 3)):
        row = {"id": f"{number}", "ts": f"2026-01-01T{second // 3600:02}:00:{second % 60:02}Z"}
        produce_json(node.bootstrap, "late", [row])

    @pipeline("late", to="late-out")
    def windows(
        source: Any = topic("late", schema="id string, ts timestamp", options={"maxOffsetsPerTrigger": "1"}),
    ) -> Any:
        from pyspark.sql import functions as F  # noqa: N812

        return source.withWatermark("ts", "1 minute").groupBy(F.window("ts", "1 minute")).count()

    (status,) = run(windows)

    # Spark takes a row for late by the watermark that the batch before had, not by its own.
    assert status.dropped_rows == 2


def test_value_that_cannot_be_read_stops_a_pipeline_without_dead_letters(node: OttlaNode, run: Run) -> None:
    fill(node, "strict", partitions=1)

    @pipeline("strict", to="strict-out", dead_letters=False)
    def copied(source: Any = topic("strict", schema=SCHEMA)) -> Any:
        return source.select("id", "amount")

    (status,) = run(copied, patience=False)

    assert status.state == FAILED
    assert status.last_error is not None
    assert (
        "strict-0 has a value at offset 15 that cannot be used: the value is not JSON at character 1"
        in status.last_error
    )


def test_function_gets_each_batch_and_dead_letters_are_kept(node: OttlaNode, run: Run) -> None:
    rows = fill(node, "to-function")
    seen: list[tuple[int, str]] = []

    def take(batch: "DataFrame", batch_id: int) -> None:
        seen.extend((batch_id, row["id"]) for row in batch.collect())

    @pipeline("to_function", to=foreach_batch(take))
    def copied(source: Any = topic("to-function", schema=SCHEMA)) -> Any:
        return source.select("id", "amount")

    (status,) = run(copied)

    assert status.rows == len(rows) + len(BAD)
    assert sorted(seen) == sorted((0, row["id"]) for row in rows)
    assert sorted(committed_values(node.bootstrap, "to_function.dead_letters")) == sorted(BAD)


def test_any_sink_of_spark_is_an_output_beside_a_topic(
    spark: "SparkSession", node: OttlaNode, run: Run, tmp_path: Path
) -> None:
    rows = fill(node, "to-files")
    files = str(tmp_path / "files")

    @pipeline("to_files", to=(spark_sink("parquet", options={"path": files}, name="files"), "to-files-out"))
    def split(source: Any = topic("to-files", schema=SCHEMA)) -> Any:
        return {"files": source.select("id", "amount"), "to-files-out": source.select("id")}

    statuses = run(split)

    assert {status.name for status in statuses} == {
        "to_files.files",
        "to_files.to-files-out",
        "to_files.dead_letters",
    }
    assert {status.pipeline for status in statuses} == {"to_files"}
    assert ids([row.asDict() for row in spark.read.parquet(files).collect()]) == ids(rows)
    assert ids(committed_json(node.bootstrap, "to-files-out")) == ids(rows)
    assert sorted(committed_values(node.bootstrap, "to_files.dead_letters")) == sorted(BAD)


def test_outputs_of_the_guide_run(spark: "SparkSession", node: OttlaNode, run: Run, tmp_path: Path) -> None:
    code = next(block for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
                if "foreach_batch" in block)  # fmt: skip
    # Java does not change its directory with us.
    code = code.replace('"archive"}', f'"{tmp_path}/archive"}}').replace(
        "large/batch", f"{tmp_path}/large/batch"
    )
    (tmp_path / "outputs_of_the_guide.py").write_text(code)
    fill_payments = [{"id": f"p{number}", "amount": 10.0 * number} for number in range(20)]
    create_topic(node.bootstrap, "payments", 1)
    produce_json(node.bootstrap, "payments", fill_payments)
    definitions = load_pipelines(tmp_path / "outputs_of_the_guide.py")

    run(*definitions)

    archived = spark.read.parquet(str(tmp_path / "archive"))
    assert {row["id"] for row in archived.collect()} >= {row["id"] for row in fill_payments}
    large = spark.read.json(str(tmp_path / "large"))
    assert {row["id"] for row in large.collect()} >= {f"p{number}" for number in range(11, 20)}


def test_table_is_as_new_as_the_batch(node: OttlaNode, run: Run) -> None:
    create_topic(node.bootstrap, "joined", 1)
    create_topic(node.bootstrap, "joined-out", 1)
    create_topic(node.bootstrap, "names", 2, config={"cleanup.policy": "compact"})
    produce(
        node.bootstrap,
        "names",
        [(b"1", b'{"id": "1", "name": "old"}'), (b"2", b'{"id": "2", "name": "two"}')],
    )

    @pipeline("joined", to="joined-out")
    def joined(
        source: Any = topic("joined", schema="id string"),
        names: Any = table("names", schema="id string, name string"),
    ) -> Any:
        return source.join(names.select("id", "name"), "id", "left").select("id", "name")

    produce_json(node.bootstrap, "joined", [{"id": "1"}, {"id": "2"}])
    run(joined)
    produce(node.bootstrap, "names", [(b"1", b'{"id": "1", "name": "new"}'), (b"2", None)])
    produce_json(node.bootstrap, "joined", [{"id": "1"}, {"id": "2"}])
    run(joined)

    found = [(row["id"], row.get("name")) for row in committed_json(node.bootstrap, "joined-out")]
    assert sorted(found[:2]) == [("1", "old"), ("2", "two")]
    assert sorted(found[2:], key=lambda item: item[0]) == [("1", "new"), ("2", None)]


def test_lag_is_that_of_now(node: OttlaNode, link: Link, run: Run) -> None:
    rows = fill(node, "lagging")

    @pipeline("lagging", to="lagging-out")
    def copied(source: Any = topic("lagging", schema=SCHEMA)) -> Any:
        return source.select("id")

    inputs = {"lagging": "earliest"}
    assert measure_lag(link, "lagging", inputs) == len(rows) + len(BAD)
    assert measure_lag(link, "lagging", {"lagging": "latest"}) is None
    (status,) = run(copied)
    assert status.inputs == inputs
    assert measure_lag(link, "lagging", inputs) == 0
    produce_json(node.bootstrap, "lagging", rows[:7], "id")
    assert measure_lag(link, "lagging", inputs) == 7, "whether or not anybody runs"


def test_asking_for_the_lag_makes_no_topic(node: OttlaNode) -> None:
    link = Link({"bootstrap.servers": node.bootstrap}, creates_topics=False)
    try:
        assert measure_lag(link, "nobody", {"never-made": "earliest"}) is None
        assert measure_lag(link, "nobody", {"never-made": "earliest"}) is None
        assert "never-made" not in link.run(link.cluster.refresh(None)).topics
    finally:
        link.close()


def test_workers_leave_what_was_loaded_before_the_fork_out_of_garbage_collection(
    spark: "SparkSession",
) -> None:
    def count(batches: Any) -> Any:
        import gc

        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()]})

    (row,) = spark.range(1).coalesce(1).mapInArrow(count, "frozen long").collect()
    assert row.frozen > 10_000


def test_failed_batch_leaves_no_transaction_open(node: OttlaNode, run: Run, link: Link) -> None:
    """One task fails after another has prepared: readers are not held up by what was prepared."""
    create_topic(node.bootstrap, "half", 2)
    for number in range(2):
        produce(node.bootstrap, "half", [(None, b"%d" % number)], partition=number)

    @pipeline("half", to="half-out")
    def half(source: Any = topic("half")) -> Any:
        from pyspark.sql import functions as F  # noqa: N812

        bad = F.when(F.col("partition") == 1, F.raise_error(F.lit("no luck")).cast("string"))
        return source.select("key", F.coalesce(bad, F.col("value")).alias("value"))

    (status,) = run(replace(half, dead_letters=None), patience=False)

    assert status.state == FAILED
    produce(node.bootstrap, "half-out", [(None, b"after")])
    # A reader of committed records gets to the end. With an open transaction it would wait for that.
    assert committed_values(node.bootstrap, "half-out") == [b"after"]
