"""The source as Spark drives it: where a batch ends, what its tasks read, and what is refused."""

import itertools
import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType
from tests.simulation.pipelines.world import World

from ottla.model.ids import TopicPartition
from ottla.pipelines.properties import InvalidOption
from ottla.pipelines.source.offsets import DataLoss, subscribed_partitions
from ottla.pipelines.source.plan import OffsetRange
from ottla.pipelines.spark import reader as module
from ottla.pipelines.spark.data_source import RECORD_COLUMNS, OttlaDataSource
from ottla.pipelines.spark.reader import OffsetRangePartition, OttlaReader, OttlaStreamReader

ALL = ReadAllAvailable()
SCHEMA = StructType(list(RECORD_COLUMNS))


@pytest.fixture(autouse=True)
def clock(world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let sources use the link to the simulated node, and a clock that tests set."""
    now = {"s": 100.0}
    monkeypatch.setattr(module, "shared_link", lambda _properties: world.link)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now["s"]))
    return now


def _given(world: World, topic: str, **options: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": world.bootstrap, "subscribe": topic, **options}


def stream(world: World, topic: str, **options: str) -> OttlaStreamReader:
    source = OttlaDataSource(_given(world, topic, **options))
    found = source.streamReader(SCHEMA)
    assert isinstance(found, OttlaStreamReader)
    return found


def batch(world: World, topic: str, **options: str) -> OttlaReader:
    found = OttlaDataSource(_given(world, topic, **options)).reader(SCHEMA)
    assert isinstance(found, OttlaReader)
    return found


def pieces(partitions: Any) -> list[tuple[int, int, int]]:
    return [
        (item.piece.where.partition, item.piece.start_offset, item.piece.stop_offset) for item in partitions
    ]


def values(source: Any, partition: InputPartition) -> list[bytes]:
    return [value for rows in source.read(partition) for value in rows["value"].to_pylist()]


def filled(world: World, name: str, *counts: int) -> str:
    """Create a topic that has so many records in its partitions."""
    topic = world.create(name, len(counts))
    for partition, count in enumerate(counts):
        world.produce(topic, *(b"%d.%d" % (partition, at) for at in range(count)), partition=partition)
    return topic


# A stream


def test_a_new_query_begins_where_its_options_say_and_ends_where_the_topic_does(
    world: World, name: str
) -> None:
    topic = filled(world, name, 3, 1)
    latest = {topic: {"0": 3, "1": 1}}
    assert stream(world, topic).initialOffset() == {**latest, "#first": 1}
    source = stream(world, topic, startingOffsets="earliest")
    earliest = {topic: {"0": 0, "1": 0}}
    assert source.initialOffset() == {**earliest, "#first": 1}
    assert source.latestOffset(source.initialOffset(), ALL) == {**latest, "#start": earliest}
    assert source.reportLatestOffset() == latest
    # Nothing is new.
    assert source.latestOffset(latest, ALL) is latest


def test_the_first_batch_keeps_where_it_began_whatever_comes_before_it_runs_again(
    world: World, name: str
) -> None:
    topic = filled(world, name, 3, 1)
    source = stream(world, topic)
    first = source.latestOffset(source.initialOffset(), ALL)
    assert first == {topic: {"0": 3, "1": 1}, "#start": {topic: {"0": 3, "1": 1}}}, "though it is empty"
    world.produce(topic, b"later")
    again = stream(world, topic)
    assert again.partitions(again.initialOffset(), first) == []
    # A batch that follows begins where the first one ended.
    following = again.latestOffset(first, ALL)
    assert following == {topic: {"0": 4, "1": 1}}
    (piece,) = again.partitions(first, following)
    assert piece.value == (TopicPartition(topic, 0), 3, 4)
    assert again.latestOffset(first | {topic: {"0": 4, "1": 1}}, ALL) == first | {topic: {"0": 4, "1": 1}}


def test_why_a_query_cannot_begin_is_said_when_its_first_batch_is_planned(world: World, name: str) -> None:
    topic = filled(world, name, 3, 1)
    source = stream(world, topic, startingOffsets=json.dumps({topic: {"0": 0}}))
    begin = source.initialOffset()
    with pytest.raises(InvalidOption, match=f"missing: {topic}-1"):
        source.latestOffset(begin, ALL)
    # One that starts its first batch again has begun before the partition came.
    end = {topic: {"0": 3}, "#start": {topic: {"0": 0}}}
    (piece,) = source.partitions(begin, end)
    assert piece.value == (TopicPartition(topic, 0), 0, 3)


def test_a_batch_takes_what_spark_or_the_options_allow(world: World, name: str) -> None:
    topic = filled(world, name, 6, 2)
    start = {topic: {"0": 0, "1": 0}}
    assert isinstance(stream(world, topic).getDefaultReadLimit(), ReadAllAvailable)
    limited = stream(world, topic, maxOffsetsPerTrigger="4")
    limit = limited.getDefaultReadLimit()
    assert isinstance(limit, ReadMaxRows)
    assert limit.max_rows == 4
    assert limited.latestOffset(start, limit) == {topic: {"0": 3, "1": 1}}
    assert limited.latestOffset(start, ALL) == {topic: {"0": 6, "1": 2}}


def test_too_little_is_waited_for_but_not_for_ever(world: World, name: str, clock: dict[str, float]) -> None:
    topic = filled(world, name, 3)
    source = stream(world, topic, minOffsetsPerTrigger="4", maxTriggerDelay="10s")
    start = {topic: {"0": 0}}
    clock["s"] += 9.999
    assert source.latestOffset(start, ALL) is start
    clock["s"] += 0.001
    assert source.latestOffset(start, ALL) == {topic: {"0": 3}}
    # The wait begins again with each batch, and ends when there is enough.
    clock["s"] += 9.999
    assert source.latestOffset(start, ALL) is start
    world.produce(topic, b"fourth")
    assert source.latestOffset(start, ALL) == {topic: {"0": 4}}


def test_partitions_are_asked_for_once_in_a_second(
    world: World, name: str, clock: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = filled(world, name, 1)
    source = stream(world, topic)
    asked = itertools.count(1)

    def subscribed(*arguments: Any) -> Any:
        next(asked)
        return subscribed_partitions(*arguments)

    monkeypatch.setattr(module, "subscribed_partitions", subscribed)
    start = {topic: {"0": 0}}
    for _ in range(3):
        assert source.latestOffset(start, ALL) == {topic: {"0": 1}}
    clock["s"] += 1.0
    assert source.reportLatestOffset() == {topic: {"0": 1}}
    assert next(asked) == 2
    world.admin(lambda admin: admin.topics.add_partitions(topic, 2))
    clock["s"] += 0.001
    assert source.latestOffset(start, ALL) == {topic: {"0": 1, "1": 0}}
    assert source.reportLatestOffset() == {topic: {"0": 1, "1": 0}}
    assert next(asked) == 4


def test_a_run_for_what_is_there_stops_where_the_topic_ended_when_it_began(world: World, name: str) -> None:
    topic = filled(world, name, 2, 1)
    source = stream(world, topic, minOffsetsPerTrigger="100")
    source.prepareForTriggerAvailableNow()
    world.produce(topic, b"later", partition=0)
    world.admin(lambda admin: admin.topics.add_partitions(topic, 3))
    # However little there is, it is read: nothing more will come.
    assert source.latestOffset({topic: {"0": 0, "1": 0}}, ALL) == {topic: {"0": 2, "1": 1}}
    assert source.latestOffset({topic: {"0": 0, "1": 0}}, ReadMaxRows(1)) == {topic: {"0": 1, "1": 1}}
    # A partition of which the query knows nothing yet has no rows for it: its start is not known.
    assert source.latestOffset({topic: {"0": 1}}, ALL) == {topic: {"0": 2, "1": 1}}


def test_what_was_lost_between_two_batches_is_told_unless_one_lives_with_it(world: World, name: str) -> None:
    topic = filled(world, name, 2)
    start = {topic: {"0": 5}}
    with pytest.raises(DataLoss, match="now ends at 2, but was read up to 5"):
        stream(world, topic).latestOffset(start, ALL)
    assert stream(world, topic, failOnDataLoss="false").latestOffset(start, ALL) == start


def test_tasks_read_what_lies_between_two_offsets_in_the_same_pieces_each_time(
    world: World, name: str
) -> None:
    topic = filled(world, name, 4, 0, 2)
    source = stream(world, topic, minPartitions="3")
    start, end = {topic: {"0": 1, "1": 0, "2": 0}}, {topic: {"0": 4, "1": 0, "2": 2}}
    found = source.partitions(start, end)
    assert pieces(found) == [(0, 1, 2), (0, 2, 4), (2, 0, 2)]
    assert pieces(source.partitions(start, end)) == pieces(found)
    assert [values(source, item) for item in found] == [[b"0.1"], [b"0.2", b"0.3"], [b"2.0", b"2.1"]]
    assert pieces(stream(world, topic, maxRecordsPerPartition="2").partitions(start, end)) == [
        (0, 1, 2),
        (0, 2, 4),
        (2, 0, 2),
    ]


def test_a_new_partition_is_read_from_its_beginning_and_one_that_is_gone_is_told(
    world: World, name: str
) -> None:
    topic = filled(world, name, 1, 2)
    source = stream(world, topic)
    assert pieces(source.partitions({topic: {"0": 1}}, {topic: {"0": 1, "1": 2}})) == [(1, 0, 2)]
    with pytest.raises(DataLoss, match=f"{name}-7 is no longer there"):
        source.partitions({topic: {"0": 0, "7": 0}}, {topic: {"0": 1}})
    careless = stream(world, topic, failOnDataLoss="false")
    assert pieces(careless.partitions({topic: {"0": 0, "7": 0}}, {topic: {"0": 1}})) == [(0, 0, 1)]


# A batch


def test_a_batch_reads_from_the_starting_offsets_to_the_ending_ones(world: World, name: str) -> None:
    topic = filled(world, name, 3, 2)
    source = batch(world, topic)
    found = source.partitions()
    assert pieces(found) == [(0, 0, 3), (1, 0, 2)]
    assert values(source, found[1]) == [b"1.0", b"1.1"]
    some = batch(
        world,
        topic,
        startingOffsets=f'{{"{topic}":{{"0":1,"1":-2}}}}',
        endingOffsets=f'{{"{topic}":{{"0":2,"1":-1}}}}',
    )
    assert pieces(some.partitions()) == [(0, 1, 2), (1, 0, 2)]


def test_a_partition_that_spark_made_up_has_no_rows(world: World, name: str) -> None:
    topic = filled(world, name, 1)
    for source in (batch(world, topic), stream(world, topic)):
        assert list(source.read(InputPartition(0))) == []


def test_rows_have_the_columns_that_the_source_has_declared(world: World, name: str) -> None:
    topic = filled(world, name, 1)
    declared = OttlaDataSource(_given(world, topic, includeHeaders="TRUE"))
    assert declared.name() == "ottla"
    columns = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert OttlaDataSource(_given(world, topic)).schema().fieldNames() == columns
    assert declared.schema().fieldNames() == [*columns, "headers"]
    source = declared.reader(declared.schema())
    rows: Any = next(iter(source.read(OffsetRangePartition(OffsetRange(TopicPartition(topic, 0), 0, 1)))))
    assert rows.schema.names == [*columns, "headers"]
    assert (rows["offset"].to_pylist(), rows["headers"].to_pylist()) == ([0], [None])
    assert rows.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")


def test_a_partition_that_was_never_there_is_said_at_once(world: World, name: str) -> None:
    topic = filled(world, name, 1)
    for assigned in ({topic: [0, 7]}, {f"{topic}-other": [0]}):
        source = batch(world, "", subscribe="", assign=json.dumps(assigned))
        with pytest.raises(InvalidOption, match="there is no such partition"):
            source.partitions()


def test_a_batch_between_offsets_that_are_not_there_is_refused(world: World, name: str) -> None:
    topic = filled(world, name, 3)
    beyond = json.dumps({topic: {"0": 5}})
    for option in ("startingOffsets", "endingOffsets"):
        with pytest.raises(InvalidOption, match=f"{option} is 5 for {topic}-0, which ends at 3"):
            batch(world, topic, **{option: beyond}).partitions()
    assert batch(world, topic, startingOffsets=beyond, failOnDataLoss="false").partitions() == []


def test_progress_is_committed_to_the_group_that_was_named(world: World, name: str) -> None:
    topic = filled(world, name, 3)
    source = stream(world, topic, **{"kafka.group.id": f"{name}-group"})
    source.commit({topic: {"0": 2}, "#start": {topic: {"0": 0}}})
    found = world.link.run(world.link.group_offsets.list(f"{name}-group"))
    assert {where.partition: item.offset for where, item in found.items()} == {0: 2}
    stream(world, topic).commit({topic: {"0": 3}})


def test_options_that_are_refused_are_what_spark_hears(world: World) -> None:
    source: Any = OttlaDataSource({"kafka.bootstrap.servers": "h:1"}).streamReader(StructType())
    for ask in ("initialOffset", "getDefaultReadLimit", "prepareForTriggerAvailableNow"):
        with pytest.raises(InvalidOption, match="exactly one of"):
            getattr(source, ask)()
    source.stop()
