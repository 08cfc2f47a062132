"""The sink as Spark drives it: who a task is, and what the driver delivers of each batch, without Spark."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType
from tests.simulation.pipelines.world import NOW_MS, World

from ottla.pipelines.definition import InvalidPipeline, TopicInput
from ottla.pipelines.properties import InvalidOption
from ottla.pipelines.sink.batch import TaskIdentity, find_entry
from ottla.pipelines.sink.ledger import LedgerConflict, layout_group, task_group
from ottla.pipelines.sink.producer import TAKEN_OVER
from ottla.pipelines.spark import delivery, writer
from ottla.pipelines.spark.data_source import OttlaDataSource
from ottla.pipelines.spark.delivery import burying, find_query, topic_writer
from ottla.pipelines.spark.frames import ObservedInput
from ottla.pipelines.spark.writer import OttlaStreamWriter, OttlaWriter, OutcomeMessage

SCHEMA = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
RUN = str(uuid.UUID(int=7))


class Task:
    """What Spark tells a task."""

    def __init__(self, number: int = 0, **told: str) -> None:
        self._number = number
        self._told = {name.replace("_", "."): value for name, value in told.items()}

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 - Spark's names
        return self._told.get(name)

    def partitionId(self) -> int:  # noqa: N802 - Spark's names
        return self._number


@pytest.fixture(autouse=True)
def as_task(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the sink use the link to the simulated node. The result says which task this process is at."""

    def be(number: int = 0, **told: str) -> None:
        monkeypatch.setattr(writer, "TaskContext", SimpleNamespace(get=lambda: Task(number, **told)))

    monkeypatch.setattr(writer, "shared_link", lambda _properties: world.link)
    monkeypatch.setattr(delivery, "Link", lambda _properties: world.link)
    now_ns = SimpleNamespace(time_ns=lambda: NOW_MS * 1_000_000 + 999_999)
    monkeypatch.setattr("ottla.pipelines.spark.writer.time", now_ns)
    be()
    return be


def of_stream(batch_id: int, query: str = "q", run: str = RUN) -> dict[str, str]:
    """Return what Spark tells a task of a stream."""
    return {"streaming_sql_batchId": str(batch_id), "sql_streaming_queryId": query, "spark_jobGroup_id": run}


def arrow(*values: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})


def source(world: World, **options: str) -> OttlaDataSource:
    return OttlaDataSource({"kafka.bootstrap.servers": world.bootstrap, **options})


# The writers of the data source


def test_rows_of_a_stream_are_there_when_the_driver_commits(
    world: World, name: str, as_task: Callable[..., None]
) -> None:
    topic = world.create(name)
    told = source(world, topic=topic, pipeline=name).streamWriter(SCHEMA, overwrite=False)
    assert isinstance(told, OttlaStreamWriter)
    as_task(1, **of_stream(4))
    message = told.write(iter([arrow(b"a")]))
    assert isinstance(message, OutcomeMessage)
    assert message.outcome.identity == TaskIdentity(name, "q", 4, 1, RUN)
    assert world.values(topic) == []
    told.commit([message, None], 4)
    (record,) = world.records(topic)
    assert (record.value, record.timestamp_ms) == (b"a", NOW_MS)
    assert told.write(iter([arrow(b"a")])).outcome.skipped  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_streaming", [True, False])
def test_what_a_failed_batch_has_prepared_is_aborted(
    world: World, name: str, as_task: Callable[..., None], is_streaming: bool
) -> None:
    topic = world.create(name)
    given = source(world, topic=topic, pipeline=name, deliveryGuarantee="exactly-once")
    as_task(0, **of_stream(0))
    if is_streaming:
        stream = given.streamWriter(SCHEMA, overwrite=False)
        stream.abort([stream.write(iter([arrow(b"lost")])), None], 0)
    else:
        batch = given.writer(SCHEMA, overwrite=False)
        batch.abort([batch.write(iter([arrow(b"lost")])), None])
    world.produce(topic, b"next")
    # Nothing holds up readers, and nothing of the batch is there.
    assert world.values(topic) == [b"next"]


def test_a_batch_is_written_at_least_once_and_asks_nobody_who_it_is(
    world: World, name: str, as_task: Callable[..., None]
) -> None:
    topic = world.create(name)
    told = source(world, topic=topic).writer(SCHEMA, overwrite=False)
    assert isinstance(told, OttlaWriter)
    message = told.write(iter([arrow(b"a")]))
    assert message.outcome.identity is None  # type: ignore[attr-defined]
    assert world.values(topic) == [b"a"]
    told.commit([message])
    assert world.values(topic) == [b"a"]


def test_a_batch_that_is_to_be_written_once_must_belong_to_a_stream(
    world: World, name: str, as_task: Callable[..., None]
) -> None:
    told = source(world, topic=name, deliveryGuarantee="exactly-once").writer(SCHEMA, overwrite=False)
    for known in ({}, {"streaming_sql_batchId": "3"}, {"sql_streaming_queryId": "q"}):
        as_task(0, **known)
        with pytest.raises(InvalidOption, match="this task belongs to no stream"):
            told.write(iter([arrow(b"a")]))


def test_options_say_who_a_task_is_before_spark_does(
    world: World, name: str, as_task: Callable[..., None]
) -> None:
    def identity(**options: str) -> TaskIdentity | None:
        given = world.options(topic=name, deliveryGuarantee="exactly-once", **options)
        return writer._identity(given)

    as_task(2, **of_stream(5, "query-of-spark"))
    # Without a pipeline the query names the ledger: its id stays as long as its checkpoint.
    assert identity() == TaskIdentity("query-of-spark", "query-of-spark", 5, 2, RUN)
    assert identity(pipeline="p", write="w") == TaskIdentity("p.w", "query-of-spark", 5, 2, RUN)
    assert identity(pipeline="p", batchId="0", queryId="mine", runId="r") == TaskIdentity(
        "p", "mine", 0, 2, "r"
    )
    # A group of jobs with a name of somebody's own is no run.
    as_task(2, **of_stream(5, run="my jobs"))
    assert identity(pipeline="p") == TaskIdentity("p", "q", 5, 2, "")
    as_task(2, sql_streaming_queryId="q", spark_jobGroup_id=RUN)
    assert identity(pipeline="p", batchId="1") == TaskIdentity("p", "q", 1, 2, "")


def test_a_topic_is_not_overwritten_and_columns_are_those_of_records(world: World, name: str) -> None:
    given = source(world, topic=name)
    with pytest.raises(ValueError, match=r"a topic cannot be overwritten: use mode\('append'\)"):
        given.writer(SCHEMA, overwrite=True)
    other = StructType([StructField("amount", StringType())])
    for make in (given.writer, given.streamWriter):
        with pytest.raises(InvalidOption, match='rows need a column "value"'):
            make(other, overwrite=False)
    with pytest.raises(InvalidOption, match='no topic to write to: set the option "topic"'):
        source(world).writer(SCHEMA, overwrite=False)


# Batches of a query, by foreachBatch


class Rows:
    """A DataFrame whose tasks run here: so many of them, each with a batch of rows."""

    columns = ("value",)
    dtypes = (("value", "binary"),)

    def __init__(self, as_task: Callable[..., None], batch_id: int, *tasks: Sequence[bytes]) -> None:
        self._as_task = as_task
        self._batch_id = batch_id
        self._tasks = tasks
        self._function: Callable[[Iterator[Any]], Iterator[Any]] | None = None
        self.breaks_after: int | None = None
        self.fails_with = RuntimeError("a task was lost")
        self.run = RUN
        self._jdf = SimpleNamespace(
            queryExecution=lambda: SimpleNamespace(
                toRdd=lambda: SimpleNamespace(getNumPartitions=lambda: len(tasks))
            )
        )

    def mapInArrow(self, function: Any, schema: str) -> "Rows":  # noqa: N802
        assert schema == "outcome binary"
        self._function = function
        return self

    def collect(self) -> list[dict[str, Any]]:
        assert self._function is not None
        found = []
        for number, values in enumerate(self._tasks):
            if self.breaks_after == number:
                raise self.fails_with
            self._as_task(number, **of_stream(self._batch_id, run=self.run))
            for rows in self._function(iter([arrow(*values)])):
                found += rows.to_pylist()
        return found


class RemoteRows(Rows):
    """The same, behind Spark Connect: tasks are not told whose they are."""

    def __init__(self, as_task: Callable[..., None], query: Any, *tasks: Sequence[bytes]) -> None:
        super().__init__(lambda number, **_: as_task(number), 0, *tasks)
        self.sparkSession = SimpleNamespace(streams=SimpleNamespace(active=[query]))


RemoteRows.__module__ = "pyspark.sql.connect.dataframe"


def options(world: World, **given: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": world.bootstrap, **given}


def test_a_batch_is_delivered_once_however_often_spark_runs_it(
    world: World, name: str, as_task: Callable[..., None]
) -> None:
    topic = world.create(name)
    links: list[Any] = []
    write = topic_writer(options(world, topic=topic, pipeline=name), links)
    rows = Rows(as_task, 0, [b"a", b"b"], [b"c"])
    write(rows, 0)  # type: ignore[arg-type]
    # The first run of the query ended before Spark took note, so another run writes the batch again.
    rows.run = str(uuid.UUID(int=8))
    write(rows, 0)  # type: ignore[arg-type]
    assert sorted(world.values(topic)) == [b"a", b"b", b"c"]  # type: ignore[type-var]
    assert len(links) == 1
    # The same run writes each batch once: this is another write, and its rows would be dropped.
    with pytest.raises(LedgerConflict, match="has written batch 0 of pipeline"):
        write(Rows(as_task, 0, [b"a", b"b"], [b"c"]), 0)  # type: ignore[arg-type]


def test_at_least_once_is_what_one_may_ask_for(world: World, name: str, as_task: Callable[..., None]) -> None:
    topic = world.create(name)
    write = topic_writer(options(world, topic=topic, pipeline=name, deliveryGuarantee="at-least-once"))
    for _ in range(2):
        write(Rows(as_task, 0, [b"a"]), 0)  # type: ignore[arg-type]
    assert world.values(topic) == [b"a", b"a"]
    assert find_entry(world.link, layout_group(name)) is None


def test_a_batch_whose_task_fails_leaves_no_transaction_open(
    world: World, name: str, as_task: Callable[..., None]
) -> None:
    topic = world.create(name)
    write = topic_writer(options(world, topic=topic, pipeline=name))
    rows = Rows(as_task, 0, [b"lost"], [b"lost"])
    rows.breaks_after = 1
    with pytest.raises(RuntimeError, match="a task was lost"):
        write(rows, 0)  # type: ignore[arg-type]
    world.produce(topic, b"next")
    assert world.values(topic) == [b"next"]
    write(Rows(as_task, 0, [b"again"], [b"again"]), 0)  # type: ignore[arg-type]
    assert world.values(topic) == [b"next", b"again", b"again"]


@pytest.mark.parametrize("case", ["taken over", "no pipeline", "at least once"])
def test_transactions_of_others_are_not_aborted(
    world: World, name: str, as_task: Callable[..., None], monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    aborted: list[int] = []
    monkeypatch.setattr(delivery, "abort_tasks", lambda *arguments: aborted.append(arguments[-1]))
    given = options(world, topic=name, pipeline=name)
    rows = Rows(as_task, 0, [b"a"], [b"b"])
    rows.breaks_after = 0
    with pytest.raises(RuntimeError):
        topic_writer(given)(rows, 0)  # type: ignore[arg-type]
    assert aborted == [2]
    if case == "taken over":
        rows.fails_with = RuntimeError(f"in Java: {TAKEN_OVER}, and more")
    elif case == "no pipeline":
        del given["pipeline"]
    else:
        given["deliveryGuarantee"] = "at-least-once"
    with pytest.raises(RuntimeError):
        topic_writer(given)(rows, 0)  # type: ignore[arg-type]
    assert aborted == [2]


def test_through_spark_connect_the_query_is_found_by_the_name_of_the_pipeline(
    world: World, name: str, as_task: Callable[..., None]
) -> None:
    topic = world.create(name)
    query = SimpleNamespace(name=name, id="id-of-query", runId="id-of-run")
    topic_writer(options(world, topic=topic, pipeline=name))(RemoteRows(as_task, query, [b"a"]), 6)  # type: ignore[arg-type]
    entry = find_entry(world.link, layout_group(name))
    assert entry is not None
    assert (entry.next_batch_id, entry.query_id, entry.run_id) == (7, "id-of-query", "id-of-run")
    assert world.values(topic) == [b"a"]
    query.name = "another"
    with pytest.raises(InvalidPipeline, match="no query is named"):
        topic_writer(options(world, topic=topic, pipeline=name))(RemoteRows(as_task, query, [b"a"]), 7)  # type: ignore[arg-type]


def test_rows_without_a_value_are_refused_before_any_task(
    world: World, name: str, as_task: Callable[..., None]
) -> None:
    rows = Rows(as_task, 0, [b"a"])
    rows.dtypes = (("amount", "double"),)
    with pytest.raises(InvalidOption, match='rows need a column "value"'):
        topic_writer(options(world, topic=name))(rows, 0)  # type: ignore[arg-type]


# Dead letters of the inputs


class Metrics:
    """What Spark has observed of a batch."""

    def __init__(self, **told: str | None) -> None:
        self._told = told

    def get(self, name: str) -> Any:
        row = SimpleNamespace(getString=lambda _at: self._told[name])
        return SimpleNamespace(isDefined=lambda: name in self._told, get=lambda: row)


def running(name: str, metrics: Metrics) -> Any:
    execution = SimpleNamespace(observedMetrics=lambda: metrics)
    streaming = SimpleNamespace(lastExecution=lambda: execution)
    return SimpleNamespace(name=name, id="q", _jsq=SimpleNamespace(streamingQuery=lambda: streaming))


def session(*queries: Any) -> Any:
    return SimpleNamespace(streams=SimpleNamespace(active=list(queries)))


def _explaining(name: str) -> Callable[[bytes | None], str]:
    return lambda value: f"reason of {name}: {value!r}"


def test_what_could_not_be_read_is_delivered_after_the_rows_and_once(world: World, name: str) -> None:
    topic, dead = world.create(name, 2), world.create(f"{name}-dead")
    world.produce(topic, b"fine", b"bad")
    world.produce(topic, b"worse", partition=1)
    order: list[str] = []

    def write(_batch: Any, batch_id: int) -> None:
        order.append(f"batch {batch_id}, {len(world.values(dead))} letters")

    declared = TopicInput(topic, "json", "a int")
    observed = [ObservedInput(each, declared, _explaining(each)) for each in ("one", "two", "three")]
    spark = session(running("another", Metrics()), running(name, Metrics(one="1:0,0:1", two=None)))
    sink = options(world, topic=dead, pipeline=name)
    deliver = burying(write, spark, name, observed, sink, links := [])  # type: ignore[var-annotated]
    deliver(None, 3)  # type: ignore[arg-type]
    deliver(None, 3)  # type: ignore[arg-type]
    assert order == ["batch 3, 0 letters", "batch 3, 2 letters"]
    letters = world.records(dead)
    assert [record.value for record in letters] == [b"bad", b"worse"]
    assert dict(letters[0].headers)["ottla.reason"] == b"reason of one: b'bad'"
    assert len(links) == 1
    entry = find_entry(world.link, task_group(f"{name}.unreadable", 0))
    assert entry is not None
    assert (entry.next_batch_id, entry.query_id) == (4, "q")


def test_a_batch_that_could_be_read_opens_no_connection_for_dead_letters(world: World, name: str) -> None:
    observed = [ObservedInput("one", TopicInput(name, "json", "a int"), lambda _: "why")]
    links: list[Any] = []
    spark = session(running(name, Metrics(one="")))
    burying(lambda _batch, _id: None, spark, name, observed, options(world, topic=name), links)(None, 0)  # type: ignore[arg-type]
    assert links == []


def test_a_query_is_found_by_its_name_alone() -> None:
    wanted = SimpleNamespace(name="p")
    spark = session(SimpleNamespace(name=None), SimpleNamespace(name="q"), wanted)
    assert find_query(spark, "p") is wanted
    for name in ("r", None):
        with pytest.raises(InvalidPipeline, match="set that name with queryName"):
            find_query(spark, name)
