"""A source finds where to begin and to end, reads exactly that, and says what was lost."""

from typing import Any

import pytest
from tests.simulation.pipelines.world import NOW_MS, ROWS, ROWS_WITH_HEADERS, World

from ottla.client.errors import BrokerError
from ottla.client.fetching import IsolationLevel
from ottla.client.list_offsets import EARLIEST, LATEST
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition
from ottla.pipelines.properties import InvalidOption
from ottla.pipelines.source.offsets import (
    DataLoss,
    check_no_loss,
    extend_start,
    find_offsets,
    resolve,
    subscribed_partitions,
)
from ottla.pipelines.source.options import Position, SourceOptions, parse_source_options
from ottla.pipelines.source.plan import OffsetRange
from ottla.pipelines.source.read import ReadTerms, read_rows

TERMS = ReadTerms(IsolationLevel.READ_UNCOMMITTED, False, True, 5_000, 1 << 20)


def _options(world: World, **given: str) -> SourceOptions:
    named = {"kafka.bootstrap.servers": world.bootstrap, **given}
    if not any(name in given for name in ("subscribePattern", "assign", "subscribe")):
        named["subscribe"] = "t"
    return parse_source_options(named, is_streaming=True)


def _delete(world: World, topic: str, before: int, partition: int = 0) -> None:
    world.admin(lambda admin: admin.records.delete({TopicPartition(topic, partition): before}))


# Which partitions


def test_topics_are_named_matched_or_assigned(world: World, name: str) -> None:
    one, two = world.create(f"{name}.1", 2), world.create(f"{name}.2")
    by_name = _options(world, subscribe=f"{two},{one}")
    both = [TopicPartition(one, 0), TopicPartition(one, 1), TopicPartition(two, 0)]
    assert world.run(subscribed_partitions(world.link.cluster, by_name)) == both
    # The whole name has to match, and topics of the cluster itself never do.
    for pattern, found in ((f"{name}..", both), (f"{name}.", []), (r"(__.*|nothing)", [])):
        options = _options(world, subscribePattern=pattern)
        assert world.run(subscribed_partitions(world.link.cluster, options)) == found
    assigned = _options(world, assign=f'{{"{one}":[1,0]}}')
    assert world.run(subscribed_partitions(world.link.cluster, assigned)) == both[:2]


def test_a_topic_that_is_not_there_is_told(world: World, name: str) -> None:
    with pytest.raises(BrokerError, match=f"cannot read topic '{name}\\?'"):
        world.run(subscribed_partitions(world.link.cluster, _options(world, subscribe=f"{name}?")))


# Where to begin and to end


@pytest.fixture
def topic(world: World, name: str) -> str:
    """Two partitions with offsets 2 to 4 and 0 to 1; each record is a second after the one before."""
    topic = world.create(name, 2)
    for number in range(5):
        world.produce(topic, b"%d" % number, timestamp_ms=NOW_MS + 1000 * number)
    for number in range(2):
        world.produce(topic, b"x%d" % number, partition=1, timestamp_ms=NOW_MS + 1000 * number)
    _delete(world, topic, 2)
    return topic


def _resolved(world: World, topic: str, position: Position, *, is_start: bool = True, **given: str) -> Any:
    partitions = [TopicPartition(topic, number) for number in (0, 1)]
    found = world.run(
        resolve(world.link.cluster, partitions, position, _options(world, **given), is_start=is_start)
    )
    return tuple(found[where] for where in partitions)


def _each(topic: str, *numbers: int) -> dict[TopicPartition, int]:
    return {TopicPartition(topic, place): number for place, number in enumerate(numbers)}


def test_a_place_is_that_of_each_partition(world: World, topic: str) -> None:
    assert _resolved(world, topic, Position(place=EARLIEST)) == (2, 0)
    assert _resolved(world, topic, Position(place=LATEST)) == (5, 2)
    found = world.run(find_offsets(world.link.cluster, [], LATEST, IsolationLevel.READ_COMMITTED))
    assert found == {}


@pytest.mark.parametrize(
    ("given", "resolved"),
    [((3, 1), (3, 1)), ((0, 9), (0, 9)), ((EARLIEST, LATEST), (2, 2)), ((LATEST, EARLIEST), (5, 0))],
)
def test_offsets_are_taken_as_they_are_and_places_looked_up(
    world: World, topic: str, given: tuple[int, int], resolved: tuple[int, int]
) -> None:
    assert _resolved(world, topic, Position(offsets=_each(topic, *given))) == resolved


@pytest.mark.parametrize("kind", ["offsets", "timestamps_ms"])
def test_all_partitions_have_to_be_named_and_no_others(world: World, topic: str, kind: str) -> None:
    with pytest.raises(InvalidOption, match=f"missing: {topic}-1$"):
        _resolved(world, topic, Position(**{kind: _each(topic, 0)}))  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=f"exactly the existing partitions; unknown: {topic}-2$"):
        _resolved(world, topic, Position(**{kind: _each(topic, 0, 0, 0)}))  # type: ignore[arg-type]


def test_a_time_is_that_of_the_first_record_from_then_on(world: World, topic: str) -> None:
    assert _resolved(world, topic, Position(timestamp_ms=NOW_MS + 1)) == (2, 1)
    assert _resolved(world, topic, Position(timestamps_ms=_each(topic, NOW_MS + 3000, NOW_MS))) == (3, 0)


def test_a_time_after_the_last_record_is_refused_at_the_start_unless_the_latest_will_do(
    world: World, topic: str
) -> None:
    late = Position(timestamp_ms=NOW_MS + 1500)
    with pytest.raises(InvalidOption, match=f"{topic}-1 has no record at or after the starting timestamp"):
        _resolved(world, topic, late)
    assert _resolved(world, topic, late, startingOffsetsByTimestampStrategy="latest") == (2, 2)
    assert _resolved(world, topic, late, is_start=False) == (2, 2)


def test_partitions_that_came_since_are_read_from_their_beginning(world: World, topic: str) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    def extended(start: dict[TopicPartition, int], **given: str) -> dict[TopicPartition, int]:
        return world.run(extend_start(world.link.cluster, start, [first, second], _options(world, **given)))

    known = {first: 4, second: 1}
    assert extended(known) is known
    assert extended({first: 4}) == {first: 4, second: 0}
    with pytest.raises(DataLoss, match=f"{topic}-0 is new and begins at offset 2"):
        extended({second: 1})
    assert extended({second: 1}, failOnDataLoss="false") == {first: 2, second: 1}


@pytest.mark.parametrize(
    ("latest", "is_lost"), [({0: 5}, False), ({0: 4}, False), ({0: 3}, True), ({}, True)]
)
def test_a_partition_that_ends_before_its_start_has_lost_records(
    world: World, latest: dict[int, int], is_lost: bool
) -> None:
    where = TopicPartition("t", 0)
    ends = {TopicPartition("t", number): end for number, end in latest.items()}
    if is_lost:
        with pytest.raises(DataLoss, match="but was read up to 4"):
            check_no_loss({where: 4}, ends, _options(world))
    else:
        assert check_no_loss({where: 4}, ends, _options(world)) == ends
    lenient = check_no_loss({where: 4}, ends, _options(world, failOnDataLoss="false"))
    assert lenient == {where: max(4, latest.get(0, 4))}


# Rows


def _rows(world: World, topic: str, start: int, stop: int, **terms: Any) -> list[dict[str, Any]]:
    piece = OffsetRange(TopicPartition(topic, 0), start, stop)
    wanted = TERMS._replace(**terms)
    schema = ROWS_WITH_HEADERS if wanted.include_headers else ROWS
    batches = read_rows(world.link, piece, wanted, schema)
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_range_is_read_exactly(world: World, topic: str) -> None:
    rows = _rows(world, topic, 3, 5)
    assert [(row["offset"], row["value"], row["key"]) for row in rows] == [(3, b"3", None), (4, b"4", None)]
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in rows} == {(topic, 0, 0)}
    assert [int(row["timestamp"].timestamp() * 1000) - NOW_MS for row in rows] == [3000, 4000]
    assert "headers" not in rows[0]
    assert [row["offset"] for row in _rows(world, topic, 2, 3)] == [2]
    assert _rows(world, topic, 4, 4) == []


def test_a_batch_that_reaches_beyond_the_range_is_cut(world: World, name: str) -> None:
    topic = world.create(name)

    async def write() -> None:
        async with Producer(world.bootstrap, linger_ms=50) as producer:
            sent = [
                await producer.send(topic, b"%d" % number, headers=[("n", b"%d" % number)])
                for number in range(6)
            ]
            for acknowledged in sent:
                await acknowledged

    world.run(write())
    rows = _rows(world, topic, 2, 4, include_headers=True)
    assert [(row["offset"], row["headers"]) for row in rows] == [
        (2, [{"key": "n", "value": b"2"}]),
        (3, [{"key": "n", "value": b"3"}]),
    ]


def test_what_was_aborted_is_read_only_without_isolation(world: World, name: str) -> None:
    topic = world.create(name)

    async def write() -> None:
        async with Producer(world.bootstrap, transactional_id=name) as producer:
            for value, commits in ((b"kept", True), (b"gone", False)):
                producer.begin_transaction()
                await (await producer.send(topic, value, partition=0))
                await (producer.commit_transaction() if commits else producer.abort_transaction())

    world.run(write())
    committed = _rows(world, topic, 0, 4, isolation=IsolationLevel.READ_COMMITTED)
    assert [row["value"] for row in committed] == [b"kept"]
    assert [row["value"] for row in _rows(world, topic, 0, 4)] == [b"kept", b"gone"]


@pytest.mark.parametrize(("start", "stop", "left"), [(0, 4, [2, 3]), (0, 2, []), (0, 1, []), (7, 9, [])])
def test_records_that_are_gone_are_a_loss_or_left_out(
    world: World, topic: str, start: int, stop: int, left: list[int]
) -> None:
    with pytest.raises(DataLoss):
        _rows(world, topic, start, stop)
    found = _rows(world, topic, start, stop, fail_on_data_loss=False)
    assert [row["offset"] for row in found] == left
