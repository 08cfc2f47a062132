"""The sink as Spark drives it: tasks prepare, the driver commits."""

import time
import uuid
from collections.abc import Iterator
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from ottla.pipelines.link import shared_link
from ottla.pipelines.properties import InvalidOption
from ottla.pipelines.sink.batch import TaskIdentity, TaskOutcome, abort_batch, commit_batch
from ottla.pipelines.sink.ledger import ledger_of_write
from ottla.pipelines.sink.options import SinkOptions

# Spark documents neither, and both have been there since Spark 3: a test holds them in place.
BATCH_ID_PROPERTY = "streaming.sql.batchId"
QUERY_ID_PROPERTY = "sql.streaming.queryId"
# A stream runs its jobs in a group that is named by its run.
RUN_ID_PROPERTY = "spark.jobGroup.id"


class OutcomeMessage(WriterCommitMessage):
    """The outcome of a task, on its way to the driver."""

    def __init__(self, outcome: TaskOutcome) -> None:
        self.outcome = outcome


class OttlaStreamWriter(DataSourceStreamArrowWriter):
    """Writes a stream in append mode."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return _write(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002
        """Commit what the tasks have prepared."""
        commit_batch(shared_link(self._options.properties), _outcomes(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002
        """Abort what the tasks have prepared."""
        abort_batch(shared_link(self._options.properties), _outcomes(messages))


class OttlaWriter(DataSourceArrowWriter):
    """Writes a batch: at least once, or, as one batch of a stream under `foreachBatch`, exactly once."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return _write(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what the tasks have prepared."""
        commit_batch(shared_link(self._options.properties), _outcomes(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort what the tasks have prepared."""
        abort_batch(shared_link(self._options.properties), _outcomes(messages))


def _write(options: SinkOptions, rows: Iterator[Any]) -> OutcomeMessage:
    return OutcomeMessage(write_task(options, rows))


def write_task(options: SinkOptions, rows: Iterator[Any]) -> TaskOutcome:
    """Write the rows of the task that this process is at."""
    # Arrow and NumPy come with it. Planning and committing do not need them.
    from ottla.pipelines.sink.task import write_rows

    return write_rows(shared_link(options.properties), options, _identity(options), rows, now_ms)


def now_ms() -> int:
    """Return the time that records are stamped with."""
    return time.time_ns() // 1_000_000


def _outcomes(messages: list[WriterCommitMessage | None]) -> list[TaskOutcome]:
    return [message.outcome for message in messages if isinstance(message, OutcomeMessage)]


def _identity(options: SinkOptions) -> TaskIdentity | None:
    """Return who a task is: by the options, else by what Spark tells tasks of the stream they belong to."""
    if not options.is_exactly_once:
        return None
    context = TaskContext.get()
    assert context is not None, "Spark runs `write` in a task"
    told = context.getLocalProperty(BATCH_ID_PROPERTY)
    batch_id = options.batch_id
    if batch_id is None and told is not None:
        batch_id = int(told)
    query_id = options.query_id or context.getLocalProperty(QUERY_ID_PROPERTY)
    if batch_id is None or query_id is None:
        raise InvalidOption(
            "only a stream can be written exactly once, and this task belongs to no stream: set "
            "deliveryGuarantee to at-least-once, or write each batch of a stream with foreachBatch"
        )
    run_id = options.run_id or ("" if told is None else _run_id(context))
    # A query keeps its id as long as its checkpoint. That serves where the pipeline has no name.
    ledger = ledger_of_write(options.pipeline or query_id, options.write)
    return TaskIdentity(ledger, query_id, batch_id, context.partitionId(), run_id)


def _run_id(context: TaskContext) -> str:
    """Return the run that a task belongs to, or nothing if its group of jobs was given another name."""
    group = context.getLocalProperty(RUN_ID_PROPERTY) or ""
    try:
        return str(uuid.UUID(group))
    except ValueError:
        return ""
