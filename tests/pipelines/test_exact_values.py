"""What a pipeline reads and writes as JSON is what was written, to the last digit."""

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.pipelines.records import committed, committed_values, create_topic, produce
from tests.pipelines.test_delivery import run
from tests.support.ottla_node import OttlaNode

from ottla.pipelines import PipelineDefinition, pipeline, table, topic
from ottla.pipelines.columns.json_values import JsonColumns
from ottla.pipelines.status import FAILED, QueryStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]

# The first test of a process starts Java, which takes minutes where everything else runs as well.
pytestmark = pytest.mark.timeout(900)

Run = Callable[..., list[QueryStatus]]
SCHEMA = "id string not null, amount decimal(20,4), at timestamp, ratio double"
SOUND = b'{"id":"1","amount":1234567890123456.1234,"at":"2026-01-01T00:00:00.123456Z","ratio":"NaN"}'
FAULTS = {
    SOUND.replace(b".1234,", b".12345,"): b"field 'amount' is 1234567890123456.12345, which does not fit",
    SOUND.replace(b'"NaN"', b"1e400"): b"field 'ratio' is 1e400, which is too large for a double",
    SOUND.replace(b'"NaN"', b"NaN"): b"the value has NaN, which is no JSON",
    SOUND + b" x": b"the value has text behind its JSON",
    SOUND.replace(b'"id":"1",', b""): b"field 'id' is missing",
    SOUND.replace(b"{", b'{"more":1,'): b"field 'more' is 1, and the schema has no such field",
    b"": b"the value is empty",
}


def _copy(name: str, source: Any) -> PipelineDefinition:
    @pipeline(name, to=f"{name}-out", key="id")
    def copied(rows: Any = source) -> Any:
        return rows.drop("_key", "_topic", "_partition", "_offset", "_timestamp", "_timestampType")

    return copied


def test_values_go_through_exactly_or_are_dead_letters_that_say_why(node: OttlaNode, run: Run) -> None:
    create_topic(node.bootstrap, "exact", 1)
    produce(node.bootstrap, "exact", [(b"k", value) for value in (SOUND, *FAULTS, None)])

    run(_copy("exact", topic("exact", schema=SCHEMA)))

    assert committed_values(node.bootstrap, "exact-out") == [SOUND]
    letters = {
        message.value(): dict(message.headers())
        for message in committed(node.bootstrap, "exact.dead_letters")
    }
    assert letters.keys() == {*FAULTS, None}
    for value, reason in FAULTS.items():
        assert letters[value]["ottla.reason"].startswith(reason)
    assert letters[None]["ottla.reason"].startswith(b"the value is null, a tombstone")


def test_tombstones_are_dropped_or_told_by_a_column(node: OttlaNode, run: Run) -> None:
    create_topic(node.bootstrap, "tombs", 1)
    produce(node.bootstrap, "tombs", [(b"k", b'{"id":"1","more":2}'), (b"k", None), (b"k", b"")])

    run(
        _copy("tombs_dropped", topic("tombs", schema="id string", allow="extra", tombstones="dropped")),
        _copy("tombs_told", topic("tombs", schema="id string", allow="extra", tombstones="column")),
    )

    assert committed_values(node.bootstrap, "tombs_dropped-out") == [b'{"id":"1"}']
    told = [json.loads(value) for value in committed_values(node.bootstrap, "tombs_told-out")]
    assert told == [{"id": "1", "_tombstone": False}, {"id": None, "_tombstone": True}]
    for name in ("tombs_dropped", "tombs_told"):
        assert committed_values(node.bootstrap, f"{name}.dead_letters") == [b""]


def test_a_table_whose_latest_value_does_not_fit_stops_the_pipeline_until_it_does(
    node: OttlaNode, run: Run
) -> None:
    create_topic(node.bootstrap, "exact-rows", 1)
    create_topic(node.bootstrap, "exact-names", 1, config={"cleanup.policy": "compact"})
    produce(node.bootstrap, "exact-rows", [(None, b'{"id":"1"}')])
    produce(node.bootstrap, "exact-names", [(b"1", b'{"id":"1","name":"a","more":1}'), (b"2", None)])

    @pipeline("exact_join", to="exact-join-out")
    def joined(
        rows: Any = topic("exact-rows", schema="id string"),
        names: Any = table("exact-names", schema="id string, name string"),
    ) -> Any:
        return rows.join(names.select("id", "name"), "id").select("id", "name")

    (status,) = run(joined, patience=False)
    assert status.state == FAILED
    assert status.last_error is not None
    assert "field 'more' is 1" in status.last_error
    assert "write a value that fits under the same key" in status.last_error

    produce(node.bootstrap, "exact-names", [(b"1", b'{"id":"1","name":"b"}')])
    run(joined)
    assert committed_values(node.bootstrap, "exact-join-out") == [b'{"id":"1","name":"b"}']


def test_what_spark_writes_as_json_is_read_as_it_was(spark: "SparkSession") -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    from ottla.pipelines.spark.frames import to_rows

    schema = (
        "t timestamp, n timestamp_ntz, d date, a decimal(38,18), z decimal(38,0), x double, y float, "
        "b binary, i tinyint, l bigint, o boolean, s string, m map<string,decimal(10,2)>, "
        "r array<struct<q:double>>"
    )
    local = datetime.datetime(2026, 7, 1, 12, 0, 0, 1)
    moment = local.replace(tzinfo=datetime.UTC)
    long = Decimal("-12345678901234567890.000000000000000001")
    row = (
        *(moment, local, datetime.date(1, 1, 1), long, Decimal("9" * 38), 0.1, 1.5, b"\x00\xff"),
        *(-128, -(2**63), False, 'quote " and é\n', {"k": Decimal("1.10")}, [(5e-324,), (None,)]),
    )
    small = (
        *(moment, local, None, Decimal("1e-18"), None, float("nan"), float("-inf"), None),
        *(None, None, None, None, None, [(float("inf"),), None]),
    )
    frame = spark.createDataFrame([row, small], schema)
    kind = pa.struct(list(to_arrow_schema(frame.schema, timezone="UTC")))
    columns = JsonColumns(kind)

    written = [bytes(row["value"], "utf-8") for row in to_rows(frame, ()).coalesce(1).collect()]

    found = pa.array([columns.row(value) for value in written], kind)
    assert repr(found.to_pylist()) == repr(pa.array(frame.toArrow().to_pylist(), kind).to_pylist())
