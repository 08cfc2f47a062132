"""Runs pipelines: one Spark session for all, a supervised query for each output, files that describe them."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.definition import AVAILABLE_NOW, InvalidPipeline, PipelineDefinition
from ottla.pipelines.spark.checkpoints import Note, check_queries, write_note
from ottla.pipelines.spark.frames import REGISTRY
from ottla.pipelines.spark.java_log import (
    LOG_NAME,
    SparkEnded,
    children_speak_in,
    libraries_speak_in,
    log_lost_accumulators,
)
from ottla.pipelines.spark.progress import BatchProgress, ProgressGroups, ProgressWatch
from ottla.pipelines.spark.queries import PlannedQuery, plan_queries, start_query, state_store
from ottla.pipelines.spark.session import has_java_ended, is_remote, open_session, page_of, ship_by_value
from ottla.pipelines.status import (
    QueryStatus,
    forget_wishes,
    prepare_directory,
    wants_to_stop,
    write_status,
)
from ottla.pipelines.supervision import Progress, SupervisedQuery, progress_line, reason_of

DEFAULT_DIRECTORY: Final = "ottla-pipelines"
_LOOK_EVERY_S: Final = 0.2
_TELL_EVERY_S: Final = 5.0


@dataclass(frozen=True)
class RunSettings:
    """How pipelines are run."""

    properties: Mapping[str, str]
    """Of the client: where the cluster is, and how to speak to it."""
    directory: Path = Path(DEFAULT_DIRECTORY)
    master: str = "local[*]"
    trigger: str | None = None
    """Instead of what the pipelines say."""
    spark: Mapping[str, str] = field(default_factory=dict)
    registry: str | None = None
    """The URL of a schema registry, from which topics get their columns."""
    ends_process: bool = False
    """Whether this process ends when the pipelines do, as that of `ottla pipeline run`."""

    @property
    def options(self) -> dict[str, str]:
        """Return the properties as options of the source and the sink."""
        options = {f"kafka.{name}": value for name, value in self.properties.items()}
        return options if self.registry is None else {**options, REGISTRY: self.registry}


def run_pipelines(
    definitions: Sequence[PipelineDefinition],
    settings: RunSettings,
    *,
    session: SparkSession | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda _: None,
) -> list[QueryStatus]:
    """Run pipelines until all are done or stopped. Returns how each of their queries ended.

    They share one session: the one given, or one that is opened for them and closed at the end. A query that
    fails is started again: for ever if it is to run for ever, a few times if it is to end by itself.
    """
    directory = prepare_directory(settings.directory)
    if session is not None:
        return _run(session, definitions, settings, directory, should_stop, tell)
    name = f"ottla {' '.join(item.name for item in definitions)}"
    with contextlib.ExitStack() as quiet:
        if settings.ends_process:
            tell(f"starting Spark, which writes to {directory / LOG_NAME}")
            quiet.enter_context(libraries_speak_in(directory / LOG_NAME))
        try:
            with (
                children_speak_in(directory / LOG_NAME) if settings.ends_process else contextlib.nullcontext()
            ):
                spark = open_session(name, settings.master, {"spark.ui.enabled": "true", **settings.spark})
        except (PySparkException, Py4JError, OSError) as error:
            if should_stop():
                return []
            raise SparkEnded(
                f"Spark did not start: {reason_of(error)}; {directory / LOG_NAME} has what it said before"
            ) from error
        if settings.ends_process and not is_remote(spark):
            log_lost_accumulators(spark.sparkContext._accumulatorServer)
        try:
            return _run(spark, definitions, settings, directory, should_stop, tell)
        finally:
            with _java_may_end(directory, lambda: True):
                spark.stop()


@contextlib.contextmanager
def _java_may_end(directory: Path, should_stop: Callable[[], bool]) -> Iterator[None]:
    """Take no notice of calls that fail since Java is gone, if all is to stop. Else say that it is gone.

    A service manager ends all processes of a service at once.
    """
    try:
        yield
    except (Py4JError, OSError) as error:
        if not has_java_ended():
            raise
        if not should_stop():
            raise SparkEnded(
                f"Spark's Java process has ended by itself: {directory / LOG_NAME} may say why. Run the "
                "pipelines again, and they go on from where they were"
            ) from error


def _run(
    spark: SparkSession,
    definitions: Sequence[PipelineDefinition],
    settings: RunSettings,
    directory: Path,
    should_stop: Callable[[], bool],
    tell: Callable[[str], None],
) -> list[QueryStatus]:
    for definition in definitions:
        ship_by_value(definition)
    started: dict[str, StreamingQuery] = {}
    planned = [(item, query) for item in definitions for query in _planned(spark, item, settings)]
    notes = check_queries([query for _, query in planned], settings.properties, directory, tell)
    queries = _supervised(spark, planned, settings, directory, started, notes)
    watch = _watch(settings, queries, started)
    watch.start()
    try:
        with _java_may_end(directory, should_stop):
            try:
                _supervise(queries, directory, should_stop, tell)
            finally:
                watch.stop()
    finally:
        for _, query in planned:
            for link in query.links:
                link.close()
    statuses = [query.status for query in queries.values()]
    for status in statuses:
        # The watch may have heard of the last batch only now.
        write_status(directory, status)
    return statuses


def _supervised(
    spark: SparkSession,
    planned: Sequence[tuple[PipelineDefinition, PlannedQuery]],
    settings: RunSettings,
    directory: Path,
    started: dict[str, StreamingQuery],
    notes: Mapping[str, Note],
) -> dict[str, SupervisedQuery]:
    page = page_of(spark)

    def starter(query: PlannedQuery, trigger: str) -> SupervisedQuery:
        forget_wishes(directory, query.name)
        status = QueryStatus(
            query.name,
            os.getpid(),
            spark_page=page,
            pipeline=query.pipeline,
            inputs={declared.topic: declared.starting for declared in query.inputs},
            bootstrap=settings.properties.get("bootstrap.servers"),
            ends_process=settings.ends_process,
        )

        def start() -> StreamingQuery:
            write_note(directory / query.name, notes[query.name])
            with state_store(spark, notes[query.name]["state"]):
                started[query.name] = start_query(spark, query, settings.options, directory, trigger)
            return started[query.name]

        return SupervisedQuery(status, start, is_finite=trigger == AVAILABLE_NOW)

    return {
        query.name: starter(query, settings.trigger or query.trigger or definition.trigger)
        for definition, query in planned
    }


def _planned(
    spark: SparkSession, definition: PipelineDefinition, settings: RunSettings
) -> list[PlannedQuery]:
    try:
        return plan_queries(spark, definition, settings.options)
    except PySparkException as error:
        # Nothing has run yet: Spark does not understand what the function returns. Time will not fix that.
        raise InvalidPipeline(f"pipeline {definition.name!r}: {reason_of(error)}") from error


def _watch(
    settings: RunSettings, queries: Mapping[str, SupervisedQuery], started: Mapping[str, StreamingQuery]
) -> ProgressWatch:
    def took_note(progress: BatchProgress) -> None:
        queries[progress.query].took_note(
            Progress(
                progress.batch_id,
                progress.input_rows,
                progress.rows_per_second,
                progress.lag,
                progress.duration_ms,
                progress.state_rows,
                progress.state_bytes,
                progress.dropped_rows,
            )
        )

    return ProgressWatch(
        ProgressGroups(settings.properties, tell=took_note),
        started,
        {name: query.status.inputs for name, query in queries.items()},
        lambda name, lag: queries[name].is_behind_by(lag),
    )


def _supervise(
    queries: Mapping[str, SupervisedQuery],
    directory: Path,
    should_stop: Callable[[], bool],
    tell: Callable[[str], None],
) -> None:
    written: dict[str, QueryStatus] = {}
    told_at_s = time.monotonic()
    last_started: SupervisedQuery | None = None
    try:
        while not all(query.status.is_over for query in queries.values()):
            for name, query in queries.items():
                if should_stop() or wants_to_stop(directory, name):
                    query.stop()
                if query.may_start(time.monotonic()):
                    # Spark gives a process of Python ten seconds to start, and nobody can change that. Many
                    # at once would take longer on a busy machine, and all would fail.
                    if last_started is not None and last_started.is_starting(time.monotonic()):
                        continue
                    last_started = query
                query.look(time.monotonic())
            _write_news(queries, directory, written, tell)
            if time.monotonic() - told_at_s >= _TELL_EVERY_S:
                told_at_s = time.monotonic()
                for query in queries.values():
                    tell(progress_line(query.status))
            time.sleep(_LOOK_EVERY_S)
    finally:
        # Each is stopped, and the files say so, although stopping another fails.
        with contextlib.ExitStack() as last:
            last.callback(_write_news, queries, directory, written, tell)
            for query in queries.values():
                last.callback(query.stop)


def _write_news(
    queries: Mapping[str, SupervisedQuery],
    directory: Path,
    written: dict[str, QueryStatus],
    tell: Callable[[str], None],
) -> None:
    for name, query in queries.items():
        before = written.get(name)
        if before != query.status:
            if query.status.restarts > (before.restarts if before else 0):
                tell(progress_line(query.status))
            written[name] = query.status
            write_status(directory, query.status)
