"""From a definition to running queries: one for each output.

The first of them also delivers what could not be read to the topic for dead letters.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ottla.pipelines.definition import (
    AVAILABLE_NOW,
    BatchSink,
    InvalidPipeline,
    Output,
    PipelineDefinition,
    SparkSink,
    TopicInput,
    building,
    output_name,
)
from ottla.pipelines.link import Link
from ottla.pipelines.spark.delivery import BatchFunction, burying, topic_writer
from ottla.pipelines.spark.frames import (
    REGISTRY,
    FrameReader,
    ObservedInput,
    to_registered_rows,
    to_rows,
)
from ottla.pipelines.spark.session import is_remote

_TRANSFORM: Final = "TransformWithState"
_STORE: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKS_DB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_SINK_OPTIONS = ("kafka.", "deliveryguarantee")
# Where dead letters need a query of their own, it reads the input a second time. Nobody waits for them, so
# they come in larger batches.
_DEAD_LETTER_TRIGGER = "10 seconds"


@dataclass(frozen=True)
class PlannedQuery:
    """A query that is ready to start. Without a trigger it has the pipeline's."""

    name: str
    pipeline: str
    rows: DataFrame
    output: Output
    mode: str
    inputs: tuple[TopicInput, ...]
    dead_letters: str | None
    is_exactly_once: bool = True
    observed: tuple[ObservedInput, ...] = ()
    """Whose values that cannot be read this query delivers to the dead letters."""
    trigger: str | None = None
    links: list[Link] = field(default_factory=list)
    """What its function for `foreachBatch` has opened, to be closed when all is over."""


def plan_queries(
    spark: SparkSession, definition: PipelineDefinition, options: Mapping[str, str]
) -> list[PlannedQuery]:
    """Call the function of a pipeline, and say which queries its result takes."""
    keeps_unreadable = definition.dead_letters is not None
    reader = FrameReader(spark, {**options, **definition.options}, keeps_unreadable=keeps_unreadable)
    token = building.set(reader)
    try:
        frames = {name: reader.read(declared) for name, declared in definition.inputs.items()}
        result = definition.function(**frames)
    finally:
        building.reset(token)
    frames_by_name = _outputs(definition, result)
    queries = []
    for name, output in zip(definition.queries, definition.to, strict=True):
        frame = frames_by_name[output_name(output)]
        query = PlannedQuery(
            name,
            definition.name,
            _rows(frame, definition, output, options) if isinstance(output, str) else frame,
            output,
            definition.mode,
            tuple(reader.streams),
            definition.dead_letters,
            definition.is_exactly_once,
        )
        queries.append(query)
    return _with_dead_letters(spark, definition, reader, queries)


def _rows(
    frame: DataFrame, definition: PipelineDefinition, topic: str, options: Mapping[str, str]
) -> DataFrame:
    if definition.values == "json":
        return to_rows(frame, definition.key)
    url = {**options, **definition.options}.get(REGISTRY)
    if url is None:
        raise InvalidPipeline(
            f"pipeline {definition.name!r} writes {definition.values}, which needs a schema registry: add "
            "--registry URL"
        )
    return to_registered_rows(frame, definition.key, topic, url)


def _with_dead_letters(
    spark: SparkSession, definition: PipelineDefinition, reader: FrameReader, queries: list[PlannedQuery]
) -> list[PlannedQuery]:
    """Let the first query deliver what cannot be read. Where it cannot, a query for each input does.

    Spark's own sinks leave no room for it, and a server of Spark Connect does not tell what was observed.
    """
    topic = definition.dead_letters
    if topic is None or not reader.observed:
        return queries
    first, *others = queries
    if not isinstance(first.output, SparkSink) and not is_remote(spark):
        return [replace(first, observed=tuple(reader.observed)), *others]
    trigger = None if definition.trigger == AVAILABLE_NOW else _DEAD_LETTER_TRIGGER
    for number, (frame, observed) in enumerate(zip(reader.corrupt, reader.observed, strict=True)):
        name = f"{definition.name}.dead_letters" + (f".{number}" if number else "")
        inputs = (observed.declared,)
        queries.append(
            PlannedQuery(name, definition.name, frame, topic, "append", inputs, None, trigger=trigger)
        )
    return queries


def _outputs(definition: PipelineDefinition, result: Any) -> dict[str, DataFrame]:
    names = [output_name(output) for output in definition.to]
    outputs = dict(result) if isinstance(result, Mapping) else {names[0]: result}
    if outputs.keys() != set(names):
        raise InvalidPipeline(
            f"pipeline {definition.name!r} declares {', '.join(names)} and returns "
            f"{', '.join(outputs)}: return a DataFrame for each of them, as a dict"
        )
    for name, frame in outputs.items():
        if isinstance(frame, TopicInput) or not getattr(frame, "isStreaming", False):
            raise InvalidPipeline(
                f"pipeline {definition.name!r} returns something for {name!r} that is not a stream"
            )
    return outputs


def start_query(
    spark: SparkSession,
    query: PlannedQuery,
    options: Mapping[str, str],
    checkpoints: Path | str,
    trigger: str,
) -> StreamingQuery:
    """Start a query. Its checkpoint has its name, so that it goes on where it was."""
    writer = (
        query.rows.writeStream.queryName(query.name)
        .outputMode(query.mode)
        .option("checkpointLocation", f"{checkpoints}/{query.name}")
    )
    writer = _triggered(writer, trigger)
    if isinstance(query.output, SparkSink):
        writer = writer.format(query.output.format).options(**query.output.options)
    else:
        writer = writer.foreachBatch(_batch_function(spark, query, options))
    return writer.start()


@contextmanager
def state_store(spark: SparkSession, state: Sequence[str] | None) -> Iterator[None]:
    """Let a query that starts here have the state store that it needs: `transformWithState` needs RocksDB.

    Spark notes the store in the checkpoint when a query starts. Others keep Spark's default, which writes
    less for each batch. The state is as `checkpoints` describes it.
    """
    needs = any(operator.startswith(_TRANSFORM) for operator in state or ())
    if not needs or spark.conf.get(_STORE, None) is not None:
        yield
        return
    spark.conf.set(_STORE, _ROCKS_DB)
    try:
        yield
    finally:
        spark.conf.unset(_STORE)


def _batch_function(spark: SparkSession, query: PlannedQuery, options: Mapping[str, str]) -> BatchFunction:
    sink = {name: value for name, value in options.items() if name.lower().startswith(_SINK_OPTIONS)}
    sink["pipeline"] = query.name
    if query.dead_letters is not None:
        sink["deadLetterTopic"] = query.dead_letters
    if not query.is_exactly_once:
        sink["deliveryGuarantee"] = "at-least-once"
    if isinstance(query.output, BatchSink):
        function: BatchFunction = query.output.function
    else:
        assert isinstance(query.output, str), "the other kinds of output are no affair of ours"
        function = topic_writer({**sink, "topic": query.output}, query.links)
    if not query.observed:
        return function
    assert query.dead_letters is not None, "only with a topic for them are they looked for"
    letters = {**sink, "topic": query.dead_letters}
    return burying(function, spark, query.name, query.observed, letters, query.links)


def _triggered(writer: DataStreamWriter, trigger: str) -> DataStreamWriter:
    if trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=trigger)
