"""From a definition to running queries: one for each output, and one for dead letters if there can be any.

In append mode a query writes through the data source. Spark has no other mode for data sources written in
Python, so in update and complete mode the same sink is used from `foreachBatch`, batch by batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ottla.pipelines.definition import (
    AVAILABLE_NOW,
    InvalidPipeline,
    PipelineDefinition,
    TopicInput,
    building,
)
from ottla.pipelines.spark.frames import FrameReader, to_rows

_SINK_OPTIONS = ("kafka.", "deliveryguarantee")
# Dead letters are read from the input a second time. Nobody waits for them, so they come in larger batches.
_DEAD_LETTER_TRIGGER = "10 seconds"


@dataclass(frozen=True)
class PlannedQuery:
    """A query that is ready to start. Without a trigger it has the pipeline's."""

    name: str
    rows: DataFrame
    topic: str
    mode: str
    dead_letters: str | None
    is_exactly_once: bool = True
    trigger: str | None = None


def plan_queries(
    spark: SparkSession, definition: PipelineDefinition, options: Mapping[str, str]
) -> list[PlannedQuery]:
    """Call the function of a pipeline, and say which queries its result takes."""
    reader = FrameReader(spark, {**options, **definition.options})
    token = building.set(reader)
    try:
        frames = {name: reader.read(declared) for name, declared in definition.inputs.items()}
        result = definition.function(**frames)
    finally:
        building.reset(token)
    outputs = _outputs(definition, result)
    queries = [
        PlannedQuery(
            name,
            to_rows(outputs[topic], definition.key),
            topic,
            definition.mode,
            definition.dead_letters,
            definition.is_exactly_once,
        )
        for name, topic in zip(definition.queries, definition.to, strict=True)
    ]
    if definition.dead_letters is not None:
        for number, frame in enumerate(reader.corrupt):
            name = f"{definition.name}.dead_letters" + (f".{number}" if number else "")
            trigger = None if definition.trigger == AVAILABLE_NOW else _DEAD_LETTER_TRIGGER
            topic = definition.dead_letters
            queries.append(PlannedQuery(name, frame, topic, "append", None, trigger=trigger))
    return queries


def _outputs(definition: PipelineDefinition, result: Any) -> dict[str, DataFrame]:
    outputs = dict(result) if isinstance(result, Mapping) else {definition.to[0]: result}
    if outputs.keys() != set(definition.to):
        raise InvalidPipeline(
            f"pipeline {definition.name!r} declares {', '.join(definition.to)} and returns "
            f"{', '.join(outputs)}: return a DataFrame for each topic, as a dict"
        )
    for topic, frame in outputs.items():
        if isinstance(frame, TopicInput) or not getattr(frame, "isStreaming", False):
            raise InvalidPipeline(
                f"pipeline {definition.name!r} returns something for {topic!r} that is no stream"
            )
    return outputs


def start_query(
    query: PlannedQuery, options: Mapping[str, str], checkpoints: Path | str, trigger: str
) -> StreamingQuery:
    """Start a query. Its checkpoint has its name, so that it goes on where it was."""
    sink = {name: value for name, value in options.items() if name.lower().startswith(_SINK_OPTIONS)}
    sink["topic"] = query.topic
    sink["pipeline"] = query.name
    if query.dead_letters is not None:
        sink["deadLetterTopic"] = query.dead_letters
    if not query.is_exactly_once:
        sink["deliveryGuarantee"] = "at-least-once"
    writer = (
        query.rows.writeStream.queryName(query.name)
        .outputMode(query.mode)
        .option("checkpointLocation", f"{checkpoints}/{query.name}")
    )
    writer = _triggered(writer, trigger)
    if query.mode == "append":
        return writer.format("ottla").options(**sink).start()
    return writer.foreachBatch(batch_writer(sink)).start()


def _triggered(writer: DataStreamWriter, trigger: str) -> DataStreamWriter:
    if trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=trigger)


def batch_writer(options: Mapping[str, str]) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that delivers each batch as the sink does in append mode.

    Spark tells the tasks that write it which batch of which query it is. Through Spark Connect it does not:
    there the query must have the name of the pipeline.
    """
    chosen = {"deliveryGuarantee": "exactly-once", **options}

    def write(batch: DataFrame, batch_id: int) -> None:
        told = {}
        if _is_remote(batch):
            told = {
                "batchId": str(batch_id),
                "queryId": _query_id(batch.sparkSession, chosen.get("pipeline")),
            }
        batch.write.format("ottla").options(**chosen, **told).mode("append").save()

    return write


def _is_remote(frame: DataFrame) -> bool:
    # By its name, since importing the class would load all of Spark Connect.
    return type(frame).__module__.startswith("pyspark.sql.connect.")


def _query_id(spark: SparkSession, name: str | None) -> str:
    """Return the id of the query of this name, which it keeps as long as its checkpoint."""
    for query in spark.streams.active:
        if name is not None and query.name == name:
            return str(query.id)
    raise InvalidPipeline(f"through Spark Connect a query must have the name of its pipeline, {name!r}")
