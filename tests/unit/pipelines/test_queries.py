"""From a definition to queries, with frames that only remember what was done to them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from ottla.pipelines import foreach_batch, pipeline, spark_sink, table, topic
from ottla.pipelines.definition import InvalidPipeline, PipelineDefinition, TopicInput
from ottla.pipelines.spark import frames, queries
from ottla.pipelines.spark.frames import REGISTRY, FrameReader, ObservedInput, to_registered_rows, to_rows
from ottla.pipelines.spark.queries import PlannedQuery, plan_queries, start_query

SPARK: Any = SimpleNamespace()


class Remote:
    """A session behind Spark Connect."""


Remote.__module__ = "pyspark.sql.connect.session"


def remembering(told: list[Any], answer: Any) -> Callable[..., Any]:
    """Return a function that keeps what it is called with."""

    def remember(*given: Any) -> Any:
        told.append(given)
        return answer

    return remember


class Frame:
    """A stream whose rows are ready for the sink."""

    def __init__(self, name: str = "", *, is_streaming: bool = True, columns: Any = ("value",)) -> None:
        self.name = name
        self.isStreaming = is_streaming
        fields = [StructField(each, StringType()) for each in columns]
        self.schema = StructType(fields)
        self.columns = list(columns)


class Reading:
    """Reads inputs as frames of their names. Those of JSON may turn out to be unreadable."""

    made: "list[Reading]"

    def __init__(self, spark: Any, options: dict[str, str], *, keeps_unreadable: bool) -> None:
        self.spark, self.options, self.keeps_unreadable = spark, options, keeps_unreadable
        self.streams: list[TopicInput] = []
        self.observed: list[ObservedInput] = []
        self.corrupt: list[Frame] = []
        self.made.append(self)

    def read(self, declared: TopicInput) -> Frame:
        if declared.is_table:
            return Frame(declared.topic, is_streaming=False)
        self.streams.append(declared)
        if declared.format == "json":
            self.observed.append(ObservedInput(f"u{len(self.observed)}", declared, lambda _: "why"))
            self.corrupt.append(Frame(f"corrupt {declared.topic}"))
        return Frame(declared.topic)


@pytest.fixture(autouse=True)
def reading(monkeypatch: pytest.MonkeyPatch) -> list[Reading]:
    monkeypatch.setattr(Reading, "made", [], raising=False)
    monkeypatch.setattr(queries, "FrameReader", Reading)
    return Reading.made


def plan(definition: PipelineDefinition, spark: Any = SPARK, **options: str) -> list[PlannedQuery]:
    return plan_queries(spark, definition, options)


# Planning


def test_a_pipeline_has_a_query_for_each_output(reading: list[Reading]) -> None:
    kept: list[Any] = []
    files = spark_sink("parquet", options={"path": "/p"})

    @pipeline(
        "p", to=("one", files, foreach_batch(lambda *_: None)), mode="update", options={"kafka.x": "own"}
    )
    def both(first: Any = topic("in-1"), names: Any = table("names")) -> Any:
        kept.extend([first, names, topic("in-2", starting="latest")])
        return {"one": first, "sink": kept[2], "batches": first}

    found = plan(both, **{"kafka.x": "given", "kafka.y": "given"})
    assert [query.name for query in found] == ["p.one", "p.sink", "p.batches"]
    assert [(query.rows, query.output) for query in found] == [
        (kept[0], "one"),
        (kept[2], files),
        (kept[0], both.to[2]),
    ]
    for query in found:
        assert (query.pipeline, query.mode, query.dead_letters, query.trigger) == (
            "p",
            "update",
            "p.dead_letters",
            None,
        )
        assert [declared.topic for declared in query.inputs] == ["in-1", "in-2"]
        assert (query.is_exactly_once, query.observed, query.links) == (True, (), [])
    assert kept[1].name == "names"
    (reader,) = reading
    assert (reader.spark, reader.keeps_unreadable) == (SPARK, True)
    # What a pipeline says wins.
    assert reader.options == {"kafka.x": "own", "kafka.y": "given"}


def test_a_topic_outside_of_a_pipeline_that_is_built_is_only_declared() -> None:
    @pipeline("p", to="out")
    def broken(_orders: Any = topic("in")) -> Any:
        raise ValueError("a mistake of the user")

    with pytest.raises(ValueError, match="a mistake"):
        plan(broken)
    assert isinstance(topic("in"), TopicInput)


def test_the_first_query_delivers_what_cannot_be_read() -> None:
    @pipeline("p", to=("one", "two"), exactly_once=False)
    def both(first: Any = topic("a", schema="x int"), second: Any = topic("b", schema="x int")) -> Any:
        return {"one": first, "two": second}

    one, two = plan(both)
    assert [item.declared.topic for item in one.observed] == ["a", "b"]
    assert (two.observed, one.is_exactly_once, two.is_exactly_once) == ((), False, False)


@pytest.mark.parametrize("where", ["a sink of Spark's", "Spark Connect"])
@pytest.mark.parametrize("trigger", ["available-now", "5 seconds"])
def test_where_it_cannot_a_query_for_each_input_does(where: str, trigger: str) -> None:
    to: Any = spark_sink("console") if where == "a sink of Spark's" else "out"

    @pipeline("p", to=to, mode="complete", trigger=trigger)
    def both(first: Any = topic("a", schema="x int"), _second: Any = topic("b", schema="x int")) -> Any:
        return first

    rows, first, second = plan(both, Remote() if where == "Spark Connect" else SPARK)
    assert (rows.name, rows.observed, rows.mode) == ("p", (), "complete")
    assert (first.name, second.name) == ("p.dead_letters", "p.dead_letters.1")
    for letters, read in ((first, "a"), (second, "b")):
        assert letters.rows.name == f"corrupt {read}"
        assert (letters.pipeline, letters.output, letters.mode) == ("p", "p.dead_letters", "append")
        assert [declared.topic for declared in letters.inputs] == [read]
        assert (letters.dead_letters, letters.observed) == (None, ())
        assert letters.trigger == (None if trigger == "available-now" else "10 seconds")


def test_without_a_topic_for_dead_letters_nothing_looks_for_them(reading: list[Reading]) -> None:
    @pipeline("p", to="out", dead_letters=False)
    def one(first: Any = topic("a", schema="x int")) -> Any:
        return first

    (query,) = plan(one)
    assert (query.observed, query.dead_letters) == ((), None)
    assert not reading[0].keeps_unreadable


@pytest.mark.parametrize(
    ("to", "result", "message"),
    [
        (("one", "two"), {"one": Frame()}, "declares one, two and returns one: return a DataFrame for each"),
        ("one", {"other": Frame()}, "declares one and returns other"),
        ("one", Frame(is_streaming=False), "returns something for 'one' that is not a stream"),
        ("one", None, "returns something for 'one' that is not a stream"),
        ("one", TopicInput("in", "string"), "returns something for 'one' that is not a stream"),
    ],
)
def test_what_a_function_must_not_return_is_told(to: Any, result: Any, message: str) -> None:
    @pipeline("p", to=to)
    def wrong(_first: Any = topic("a")) -> Any:
        return result

    with pytest.raises(InvalidPipeline, match=message):
        plan(wrong)


def test_values_with_a_schema_need_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    @pipeline("p", to="out", key="k", values="avro")
    def typed(first: Any = topic("a")) -> Any:
        return first

    with pytest.raises(
        InvalidPipeline, match="'p' writes avro, which needs a schema registry: add --registr"
    ):
        plan(typed)
    asked: list[Any] = []
    monkeypatch.setattr(queries, "to_registered_rows", remembering(asked, "rows"))
    (query,) = plan(typed, **{REGISTRY: "http://r"})
    rows: Any = query.rows
    assert rows == "rows"
    assert asked[0][1:] == (("k",), "out", "http://r")


# Starting


class Writer:
    """What `writeStream` returns: it remembers what it is told."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        def tell(*positional: Any, **named: Any) -> Any:
            self.told[name] = positional[0] if len(positional) == 1 else positional or named
            return self

        return tell

    def start(self) -> Any:
        return self.told


def planned(output: Any, **more: Any) -> PlannedQuery:
    rows: Any = SimpleNamespace(writeStream=Writer())
    return PlannedQuery("p.out", "p", rows, output, "update", (), **{"dead_letters": None, **more})


def started(query: PlannedQuery, trigger: str = "1 second", **options: str) -> Any:
    return start_query(SPARK, query, options, Path("/kept"), trigger)


def test_a_query_is_started_under_its_name_and_goes_on_where_its_checkpoint_is() -> None:
    def function(_frame: Any, _batch_id: int) -> None:
        pass

    told = started(planned(foreach_batch(function)))
    assert told == {
        "queryName": "p.out",
        "outputMode": "update",
        "option": ("checkpointLocation", "/kept/p.out"),
        "trigger": {"processingTime": "1 second"},
        "foreachBatch": function,
    }
    once = started(planned(foreach_batch(function)), "available-now")
    assert once["trigger"] == {"availableNow": True}


def test_a_sink_of_sparks_has_its_own_options() -> None:
    told = started(planned(spark_sink("parquet", options={"path": "/p"})))
    assert (told["format"], told["options"]) == ("parquet", {"path": "/p"})
    assert "foreachBatch" not in told


def test_a_topic_is_written_with_the_options_that_are_for_sinks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(queries, "topic_writer", lambda options, links: asked.append((options, links)))
    given = {"kafka.acks": "1", "Kafka.X": "y", "deliveryGuarantee": "exactly-once", REGISTRY: "http://r"}
    query = planned("out")
    started(query, **given)
    kept = {name: given[name] for name in ("kafka.acks", "Kafka.X", "deliveryGuarantee")}
    assert asked == [({**kept, "pipeline": "p.out", "topic": "out"}, query.links)]
    assert asked[0][1] is query.links
    asked.clear()
    started(planned("out", dead_letters="dead", is_exactly_once=False))
    assert asked[0][0] == {
        "pipeline": "p.out",
        "deadLetterTopic": "dead",
        "deliveryGuarantee": "at-least-once",
        "topic": "out",
    }


def test_what_cannot_be_read_is_delivered_by_the_query_that_observes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(queries, "burying", remembering(asked, "buries"))

    def function(_frame: Any, _batch_id: int) -> None:
        pass

    observed = (ObservedInput("u", TopicInput("a", "string"), lambda _: "why"),)
    query = planned(foreach_batch(function), dead_letters="dead", observed=observed)
    assert started(query, **{"kafka.acks": "1"})["foreachBatch"] == "buries"
    letters = {"kafka.acks": "1", "pipeline": "p.out", "deadLetterTopic": "dead", "topic": "dead"}
    assert asked == [(function, SPARK, "p.out", observed, letters, query.links)]


# Frames


def read_options(declared: TopicInput, *, is_streaming: bool, **options: str) -> dict[str, str]:
    return FrameReader(SPARK, options)._source_options(declared, is_streaming=is_streaming)


def test_the_options_of_a_source_are_the_inputs_own_first() -> None:
    declared = TopicInput("t", "string", starting="latest", options={"kafka.a": "own"})
    given = {"kafka.a": "given", "maxOffsetsPerTrigger": "5", REGISTRY: "http://r"}
    assert read_options(declared, is_streaming=True, **given) == {
        "kafka.isolation.level": "read_committed",
        "kafka.a": "own",
        "maxOffsetsPerTrigger": "5",
        "startingOffsets": "latest",
    }
    # A table is read as a whole, and from the beginning.
    assert read_options(declared, is_streaming=False, **given) == {
        "kafka.isolation.level": "read_committed",
        "kafka.a": "own",
    }
    uncommitted = {"kafka.isolation.level": "read_uncommitted"}
    assert read_options(declared, is_streaming=False, **uncommitted) == {**uncommitted, "kafka.a": "own"}


def test_a_format_that_nobody_registered_is_told_with_those_there_are() -> None:
    reader = FrameReader(SPARK, {})
    with pytest.raises(InvalidPipeline, match="unknown format 'xml': use one of bytes, json, ottla"):
        reader._decoder(TopicInput("t", "xml"))
    assert reader._decoder(TopicInput("t", "json", "a int")) is frames._decode_json


def test_bytes_are_left_as_they_are() -> None:
    raw: Any = Frame()
    reader = FrameReader(SPARK, {})
    assert reader._decode(TopicInput("t", "bytes"), raw) is raw
    assert reader.observed == []


@pytest.mark.parametrize(
    ("asks", "options", "is_known", "format_then"),
    [
        (True, {REGISTRY: "http://r"}, True, REGISTRY),
        (True, {REGISTRY: "http://r"}, False, "bytes"),
        (True, {}, True, "bytes"),
        (False, {REGISTRY: "http://r"}, True, "bytes"),
    ],
)
def test_a_topic_has_the_columns_of_its_schema_where_a_registry_knows_one(
    monkeypatch: pytest.MonkeyPatch, asks: bool, options: dict[str, str], is_known: bool, format_then: str
) -> None:
    from ottla.pipelines.columns import values

    def find(url: str, subject: str) -> Any:
        assert (url, subject) == ("http://r", "t-value")
        return object() if is_known else None

    monkeypatch.setattr(values, "find_source", find)
    reader = FrameReader(SPARK, options)
    monkeypatch.setattr(reader, "_load", lambda _declared, *, is_streaming: Frame(is_streaming=is_streaming))
    monkeypatch.setattr(reader, "_decode", lambda _declared, raw: raw)
    frame = reader.read(TopicInput("t", "bytes", options={"kafka.a": "1"}, asks_registry=asks))
    assert frame.isStreaming
    (declared,) = reader.streams
    assert declared.format == format_then
    assert dict(declared.options) == {
        "kafka.a": "1",
        **({REGISTRY: "http://r"} if format_then == REGISTRY else {}),
    }


@pytest.mark.parametrize(
    ("columns", "is_ready"),
    [
        ({"value": StringType()}, True),
        ({"value": BinaryType(), "key": BinaryType(), "topic": StringType()}, True),
        ({"value": IntegerType()}, False),
        ({"value": StringType(), "amount": IntegerType()}, False),
        ({"key": StringType()}, False),
    ],
)
def test_rows_that_look_like_records_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch, columns: dict[str, Any], is_ready: bool
) -> None:
    schema = StructType([StructField(name, kind) for name, kind in columns.items()])
    frame: Any = SimpleNamespace(schema=schema, columns=list(columns))
    chosen: list[Any] = []
    frame.select = remembering(chosen, "selected")
    functions = SimpleNamespace(
        col=lambda name: Named(name),
        struct=lambda *names: Named(f"struct {names}"),
        to_json=lambda of, _options: of,
    )
    monkeypatch.setattr(frames, "F", functions)
    monkeypatch.setattr(frames, "_key_column", lambda key: Named(f"key {key}"))
    rows: Any = to_rows(frame, ())
    assert rows is (frame if is_ready else "selected")
    chosen.clear()
    # With a key of its own even rows that are ready are made anew.
    name = next(iter(columns))
    rows = to_rows(frame, (name,))
    assert rows == "selected"
    assert [each.text for each in chosen[0]] == [
        f"key ('{name}',) as key",
        "value as value" if is_ready else "struct ('*',) as value",
    ]


class Named:
    """A column that is known by its text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def alias(self, name: str) -> "Named":
        return Named(f"{self.text} as {name}")


def test_a_key_must_be_among_the_columns() -> None:
    frame: Any = Frame(columns=("customer", "amount"))
    message = "there is no column 'city' for the key: the columns are customer, amount"
    with pytest.raises(InvalidPipeline, match=message):
        to_rows(frame, ("customer", "city"))
    with pytest.raises(InvalidPipeline, match=message):
        to_registered_rows(frame, ("customer", "city"), "t", "http://r")


@pytest.mark.parametrize(("records", "is_kept"), [(100_000, True), (100_001, False)])
def test_a_table_is_kept_by_a_worker_unless_it_is_too_large(
    monkeypatch: pytest.MonkeyPatch, records: int, is_kept: bool
) -> None:
    closed: list[bool] = []
    asked: list[Any] = []

    def count(link: Any, options: Any) -> int:
        asked.append(options)
        return records

    def read(options: Any, schema: Any) -> Iterator[Any]:
        assert options is asked[0]
        yield schema.names

    monkeypatch.setattr(
        frames, "Link", lambda _properties: SimpleNamespace(close=lambda: closed.append(True))
    )
    monkeypatch.setattr(frames, "count_records", count)
    monkeypatch.setattr(frames, "read_table", read)
    made: list[Any] = []
    spark: Any = SimpleNamespace(
        range=lambda *told: SimpleNamespace(mapInArrow=lambda *rows: made.append((told, *rows)) or "frame")  # type: ignore[func-returns-value]
    )
    reader = FrameReader(spark, {"kafka.bootstrap.servers": "b:1", "maxOffsetsPerTrigger": "5"})
    kept: Any = reader._kept_table(TopicInput("t", "bytes", is_table=True))
    assert closed == [True]
    assert asked[0].subscription.topics == ("t",)
    if not is_kept:
        assert (kept, made) == (None, [])
        return
    assert kept == "frame"
    ((told, rows, schema),) = made
    # One row in, the whole table out.
    assert told == (0, 1, 1, 1)
    columns = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert schema.fieldNames() == columns
    assert list(rows(iter(["one batch"]))) == [columns]
    assert list(rows(iter([]))) == []


def test_a_table_behind_spark_connect_is_read_by_the_server() -> None:
    remote: Any = Remote()
    assert FrameReader(remote, {})._kept_table(TopicInput("t", "bytes", is_table=True)) is None
