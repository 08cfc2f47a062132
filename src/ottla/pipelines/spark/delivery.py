"""Delivers the batches of a pipeline: rows to their topic, then what could not be read to the dead letters.

A pipeline writes by `foreachBatch`, in every mode. Tasks write in Spark's ordinary Python workers, which
stay, keep their connections and have everything loaded. The driver commits in its own process. The writer of
the data source does the same work, but Spark starts two or three Python processes for each batch to plan it
and to commit it, at 0.4 seconds of CPU each.

The order makes it exactly once: rows are committed first, dead letters second, and only then does Spark note
that the batch is done. If anything dies in between, Spark runs the batch again, and the ledgers say what is
delivered.
"""

import contextlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ottla.pipelines.definition import InvalidPipeline
from ottla.pipelines.link import Link
from ottla.pipelines.sink.batch import TaskOutcome, abort_tasks, commit_batch
from ottla.pipelines.sink.ledger import ledger_of_write
from ottla.pipelines.sink.options import SinkOptions, check_columns, parse_sink_options
from ottla.pipelines.sink.producer import TAKEN_OVER
from ottla.pipelines.sink.unreadable import UnreadableInput, bury_unreadable, parse_places
from ottla.pipelines.spark.frames import ObservedInput
from ottla.pipelines.spark.session import is_remote
from ottla.pipelines.spark.writer import now_ms, write_task

_OUTCOME: Final = "outcome binary"

BatchFunction = Callable[[DataFrame, int], None]


def topic_writer(options: Mapping[str, str], links: list[Link] | None = None) -> BatchFunction:
    """Return a function for `foreachBatch` that delivers each batch to a topic, exactly once.

    Spark tells the tasks that write it which batch of which query it is. Through Spark Connect it does not:
    there the query must have the name of the pipeline. The link that it opens is left in `links`, to be
    closed when the query is over.
    """
    chosen = {"deliveryGuarantee": "exactly-once", **options}
    opened: list[Link] = [] if links is None else links

    def write(batch: DataFrame, batch_id: int) -> None:
        told = {}
        if is_remote(batch):
            query = find_query(batch.sparkSession, chosen.get("pipeline"))
            told = {"batchId": str(batch_id), "queryId": str(query.id), "runId": str(query.runId)}
        sink = parse_sink_options({**chosen, **told}, is_streaming=True)
        check_columns(dict(batch.dtypes), sink.topic)
        _write(_link(opened, sink), batch, sink)

    return write


def _link(opened: list[Link], sink: SinkOptions) -> Link:
    if not opened:
        opened.append(Link(sink.properties))
    return opened[0]


def _write(link: Link, batch: DataFrame, sink: SinkOptions) -> None:
    try:
        rows = batch.mapInArrow(_task(sink), _OUTCOME).collect()
    except BaseException as error:
        # Nobody knows which tasks were done. What they prepared must not hold up readers until it times out.
        # If somebody else has taken over the tasks, what is open is theirs.
        is_ours = sink.pipeline is not None and sink.is_exactly_once and TAKEN_OVER not in str(error)
        if is_ours and not is_remote(batch):
            with contextlib.suppress(Exception):
                ledger = ledger_of_write(sink.pipeline or "", sink.write)
                abort_tasks(link, sink, ledger, _task_count(batch))
        raise
    outcomes: list[TaskOutcome] = [pickle.loads(row["outcome"]) for row in rows]  # noqa: S301 - our own tasks'
    commit_batch(link, outcomes)


def _task(sink: SinkOptions) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def write(batches: Iterator[Any]) -> Iterator[Any]:
        outcome = write_task(sink, batches)
        yield pa.RecordBatch.from_pydict({"outcome": [pickle.dumps(outcome)]})

    return write


def _task_count(batch: DataFrame) -> int:
    return int(batch._jdf.queryExecution().toRdd().getNumPartitions())


def burying(
    write: BatchFunction,
    spark: SparkSession,
    query: str,
    observed: Sequence[ObservedInput],
    options: Mapping[str, str],
    links: list[Link],
) -> BatchFunction:
    """Return a function for `foreachBatch` that also delivers what a batch could not read.

    The options are those of a sink whose topic is the one for dead letters.
    """
    sink = parse_sink_options(options, is_streaming=True)
    found_query: list[Any] = []

    def write_and_bury(batch: DataFrame, batch_id: int) -> None:
        write(batch, batch_id)
        if not found_query:
            found_query.append(find_query(spark, query))
        running = found_query[0]
        found = [
            UnreadableInput(item.declared.topic, places, item.explain)
            for item, places in _places(running, observed)
            if places
        ]
        if found:
            bury_unreadable(_link(links, sink), sink, str(running.id), batch_id, found, now_ms)

    return write_and_bury


def _places(running: Any, observed: Iterable[ObservedInput]) -> Iterator[tuple[ObservedInput, Any]]:
    """Yield where values of the batch that is being delivered could not be read, for each input."""
    metrics = running._jsq.streamingQuery().lastExecution().observedMetrics()
    for item in observed:
        row = metrics.get(item.name)
        if row.isDefined():
            yield item, parse_places(row.get().getString(0) or "")


def find_query(spark: SparkSession, name: str | None) -> Any:
    """Return the query of this name."""
    for query in spark.streams.active:
        if name is not None and query.name == name:
            return query
    raise InvalidPipeline(f"no query is named {name!r}, like the pipeline: set that name with queryName")
