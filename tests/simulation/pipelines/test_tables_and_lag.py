"""A table has the latest record of each key, read on from where it was; lag is asked from the cluster."""

from typing import Any

import pytest
from tests.simulation.pipelines.world import NOW_MS, ROWS, World

from ottla.client.admin.group_offsets import CommittedOffset
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition
from ottla.pipelines.lag import measure_lag
from ottla.pipelines.source import table
from ottla.pipelines.source.options import SourceOptions, parse_source_options
from ottla.pipelines.source.table import KeptTable, count_records, read_table


def options(world: World, topic: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": world.bootstrap, "subscribe": topic}
    return parse_source_options({**given, "kafka.isolation.level": "read_committed"}, is_streaming=False)


def put(
    world: World, topic: str, *records: tuple[bytes, bytes | None], partition: int = 0, at: int = 0
) -> None:
    """Write keys with values, at a time after the beginning."""

    async def story() -> None:
        async with Producer(world.bootstrap) as producer:
            for key, value in records:
                sent = await producer.send(
                    topic, value, key=key, partition=partition, timestamp_ms=NOW_MS + at
                )
                await sent

    world.run(story())


def rows(found: Any) -> dict[bytes, bytes]:
    return dict(zip(found["key"].to_pylist(), found["value"].to_pylist(), strict=True))


def reads(world: World, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """Return a list that grows by each range that a table reads."""
    found: list[tuple[int, int, int]] = []
    read = table.read_rows  # type: ignore[attr-defined]

    def noting(link: Any, piece: Any, terms: Any, schema: Any) -> Any:
        found.append((piece.where.partition, piece.start_offset, piece.stop_offset))
        assert (terms.include_headers, terms.fail_on_data_loss) == (False, False)
        return read(link, piece, terms, schema)

    monkeypatch.setattr(table, "read_rows", noting)
    return found


# Tables


def test_a_table_has_the_latest_value_of_each_key_and_reads_on(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, ranges = world.create(name, 2), reads(world, monkeypatch)
    put(world, topic, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(world, topic, (b"c", b"1"), partition=1)
    kept = KeptTable(options(world, topic), ROWS)
    first = kept.read(world.link)
    assert rows(first) == {b"a": b"2", b"b": b"1", b"c": b"1"}
    assert first.schema == ROWS
    (row,) = [row for row in first.to_pylist() if row["key"] == b"c"]
    assert (row["topic"], row["partition"], row["offset"], row["timestampType"]) == (topic, 1, 0, 0)
    # Nothing is new: nothing is read, and the rows are the same.
    assert kept.read(world.link) is first
    assert ranges == [(0, 0, 3), (1, 0, 1)]
    put(world, topic, (b"b", None), (b"d", b"1"))
    assert rows(kept.read(world.link)) == {b"a": b"2", b"c": b"1", b"d": b"1"}
    assert ranges[2:] == [(0, 3, 5)]


def test_of_one_key_the_later_in_time_counts_and_then_the_larger_offset(world: World, name: str) -> None:
    topic = world.create(name)
    put(world, topic, (b"a", b"late"), at=10)
    put(world, topic, (b"a", b"early"), at=9)
    put(world, topic, (b"b", b"first"), (b"b", b"second"), at=5)
    assert rows(KeptTable(options(world, topic), ROWS).read(world.link)) == {b"a": b"late", b"b": b"second"}


def test_what_retention_deletes_is_no_longer_in_the_table(world: World, name: str) -> None:
    topic = world.create(name)
    put(world, topic, (b"a", b"1"), (b"b", b"1"))
    kept = KeptTable(options(world, topic), ROWS)
    assert len(rows(kept.read(world.link))) == 2
    world.admin(lambda admin: admin.records.delete({TopicPartition(topic, 0): 1}))
    assert rows(kept.read(world.link)) == {b"b": b"1"}


def test_a_topic_that_was_made_again_is_read_from_its_beginning(world: World, name: str) -> None:
    topic = world.create(name)
    put(world, topic, (b"a", b"1"), (b"b", b"1"))
    kept = KeptTable(options(world, topic), ROWS)
    kept.read(world.link)
    world.admin(lambda admin: admin.topics.delete(topic))
    world.create(topic)
    put(world, topic, (b"c", b"new"), (b"d", b"new"), (b"e", b"new"))
    assert rows(kept.read(world.link)) == {b"c": b"new", b"d": b"new", b"e": b"new"}


def test_records_are_counted_by_their_offsets(world: World, name: str) -> None:
    topic = world.create(name, 2)
    assert count_records(world.link, options(world, topic)) == 0
    put(world, topic, (b"a", b"1"), (b"b", b"1"))
    put(world, topic, (b"c", b"1"), partition=1)
    assert count_records(world.link, options(world, topic)) == 3
    world.admin(lambda admin: admin.records.delete({TopicPartition(topic, 0): 1}))
    assert count_records(world.link, options(world, topic)) == 2


def test_a_process_keeps_its_tables_until_reading_one_fails(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "shared_link", lambda _properties: world.link)
    monkeypatch.setattr(table, "_kept", {})
    topic, ranges = world.create(name), reads(world, monkeypatch)
    put(world, topic, (b"a", b"1"))
    given = options(world, topic)
    for _ in range(2):
        (found,) = read_table(given, ROWS)
        assert rows(found) == {b"a": b"1"}
    assert ranges == [(0, 0, 1)]

    def fails(*_told: Any) -> Any:
        raise RuntimeError("half of it was read")

    with monkeypatch.context() as patch:
        patch.setattr(table, "read_rows", fails)
        put(world, topic, (b"b", b"1"))
        with pytest.raises(RuntimeError):
            list(read_table(given, ROWS))
    (found,) = read_table(given, ROWS)
    assert rows(found) == {b"a": b"1", b"b": b"1"}
    assert ranges[1:] == [(0, 0, 2)]


# Lag


def committed(world: World, group: str, topic: str, **offsets: int) -> None:
    async def commit() -> None:
        where = {TopicPartition(topic, int(at[1:])): CommittedOffset(to) for at, to in offsets.items()}
        (await world.link.group_offsets.alter(group, where)).check()

    world.run(commit())


def test_a_query_that_has_committed_nothing_has_all_before_it_or_nobody_knows(
    world: World, name: str
) -> None:
    topic = world.create(name, 2)
    world.produce(topic, b"1", b"2", b"3")
    world.produce(topic, b"1", partition=1)
    assert measure_lag(world.link, name, {topic: "earliest"}) == 4
    assert measure_lag(world.link, name, {topic: "latest"}) is None
    assert measure_lag(world.link, name, {}) is None
    assert measure_lag(world.link, name, {f"{name}-missing": "earliest"}) is None
    world.admin(lambda admin: admin.records.delete({TopicPartition(topic, 0): 2}))
    assert measure_lag(world.link, name, {topic: "earliest"}) == 2


def test_lag_is_what_lies_between_the_group_and_the_ends(world: World, name: str) -> None:
    topic, other = world.create(name, 2), world.create(f"{name}-2")
    world.produce(topic, b"1", b"2", b"3")
    committed(world, name, topic, p0=1)
    # One partition tells that the query has begun, so the other came later and is read from its beginning.
    world.produce(topic, b"1", partition=1)
    assert measure_lag(world.link, name, {topic: "latest"}) == 3
    committed(world, name, topic, p0=3, p1=1)
    assert measure_lag(world.link, name, {topic: "latest"}) == 0
    world.produce(other, b"1", b"2")
    # Of another topic of the same query nobody knows yet where it begins.
    assert measure_lag(world.link, name, {topic: "latest", other: "latest"}) is None
    assert measure_lag(world.link, name, {topic: "latest", other: "earliest"}) == 2
    # A topic that was made again ends before what was read.
    committed(world, name, topic, p0=9)
    assert measure_lag(world.link, name, {topic: "latest"}) == 0
