"""Tasks prepare what they write, and the driver commits it: each row once, whatever is run again."""

from typing import Any

import pyarrow as pa
import pytest
from tests.simulation.pipelines.world import NOW_MS, World

from ottla.client.admin.group_offsets import CommittedOffset
from ottla.client.errors import BrokerError
from ottla.client.producer.partitioner import murmur2
from ottla.client.producer.transactions import Fenced
from ottla.model.ids import TopicPartition
from ottla.pipelines.columns.partitions import choose_partitions, murmur2_column, rows_by_partition
from ottla.pipelines.sink.batch import (
    TaskIdentity,
    TaskOutcome,
    abort_batch,
    abort_tasks,
    commit_batch,
    find_entry,
)
from ottla.pipelines.sink.ledger import LedgerConflict, LedgerEntry, layout_group, task_group
from ottla.pipelines.sink.rows import Undeliverable
from ottla.pipelines.sink.unreadable import (
    UnreadableInput,
    _in_batches,
    bury_unreadable,
    ledger_of,
    parse_places,
    ranges_around,
)

KEYS = [b"", b"a", b"ab", b"abc", b"abcd", b"abcde", b"customer-7", b"long " * 40]


def _identity(pipeline: str, batch_id: int = 0, task: int = 0, query_id: str = "q") -> TaskIdentity:
    return TaskIdentity(pipeline, query_id, batch_id, task)


# Where rows go


def test_keys_have_the_hash_that_kafkas_clients_give_them() -> None:
    keys = pa.array([None, *KEYS, None, *KEYS], pa.binary())
    hashes = murmur2_column(keys.slice(1)).tolist()
    assert hashes == [*map(murmur2, KEYS), 0, *map(murmur2, KEYS)]


def test_rows_without_a_key_are_dealt_out_in_turn_and_given_partitions_win() -> None:
    keys = pa.array([None, b"a", None, None, b"a"], pa.binary())
    by_key = (murmur2(b"a") & 0x7FFFFFFF) % 3
    assert choose_partitions(keys, None, 3, 2).tolist() == [2, by_key, 0, 1, by_key]
    given = pa.array([None, 2, 1, None, None], pa.int32())
    assert choose_partitions(keys, given, 3, 0).tolist() == [0, 2, 1, 2, by_key]


def test_rows_of_a_partition_keep_their_order() -> None:
    chosen = choose_partitions(pa.array([None] * 7, pa.binary()), None, 3, 1)
    found = [(number, rows.to_pylist()) for number, rows in rows_by_partition(chosen)]
    assert found == [(0, [2, 5]), (1, [0, 3, 6]), (2, [1, 4])]


# At least once


def test_rows_are_delivered_at_once_without_a_batch(world: World, name: str) -> None:
    topic = world.create(name, 2)
    options = world.options(topic=topic)
    headers = [{"key": "h", "value": b"1"}]
    outcome = world.write(
        options,
        None,
        {"value": [b"p", b"q", b"r"], "key": [b"k", None, None], "partition": [1, 1, None]},
        {"value": pa.array([], pa.binary())},
        {"value": ["text"], "partition": [0], "headers": [headers]},
    )
    assert outcome == TaskOutcome(4, 0, skipped=False, topic=topic)
    # Every row without a key takes its turn, also one that names its partition.
    first, second, third = world.records(topic, 1)
    assert (first.key, first.value, second.key, second.value) == (b"k", b"p", None, b"q")
    assert first.timestamp_ms == NOW_MS
    (fourth,) = world.records(topic, 0)
    assert (third.value, fourth.value, list(fourth.headers)) == (b"r", b"text", [("h", b"1")])


def test_rows_without_acknowledgement_have_arrived_when_the_task_ends(world: World, name: str) -> None:
    topic = world.create(name, 2)
    options = world.options(topic=topic, kafka_acks="0", kafka_batch_size="100")
    values = [b"%d" % number for number in range(50)]
    outcome = world.write(options, None, {"value": values})
    assert outcome.rows == 50
    assert {*world.values(topic), *world.values(topic, 1)} == {*values}


def test_nothing_is_nothing(world: World, name: str) -> None:
    assert world.write(world.options(topic=name), None) == TaskOutcome(0, 0, skipped=False)
    identity = _identity(name)
    empty = {"value": pa.array([], pa.binary())}
    outcome = world.write(world.options(topic=name), identity, empty)
    assert outcome == TaskOutcome(0, 0, skipped=False, identity=identity)
    commit_batch(world.link, [outcome])
    assert find_entry(world.link, layout_group(name)) is None


def test_a_topic_may_stand_in_each_row(world: World, name: str) -> None:
    one, two = world.create(f"{name}-1"), world.create(f"{name}-2")
    rows: dict[str, list[Any]] = {"value": [b"a", b"b", b"c"], "topic": [two, one, two]}
    assert world.write(world.options(), None, rows).topic == two
    assert (world.values(one), world.values(two)) == ([b"b"], [b"a", b"c"])
    # The option, where given, wins over the column.
    world.write(world.options(topic=one), None, rows)
    assert world.values(one) == [b"b", b"a", b"b", b"c"]


def test_batches_are_as_large_as_the_settings_allow(world: World, name: str) -> None:
    topic = world.create(name)
    options = world.options(topic=topic, kafka_batch_size="300")
    values = [b"%03d" % number + b"x" * 97 for number in range(7)]
    world.write(options, None, {"value": [*values, b"y" * 1000]})
    assert world.values(topic) == [*values, b"y" * 1000]


# Dead letters


def _letters(world: World, topic: str) -> list[tuple[bytes | None, bytes | None, dict[str, bytes | None]]]:
    return [(record.key, record.value, dict(record.headers)) for record in world.records(topic)]


def test_what_no_record_can_be_made_of_is_a_dead_letter(world: World, name: str) -> None:
    topic, dead = world.create(name), world.create(f"{name}-dead")
    options = world.options(deadLetterTopic=dead, kafka_max_request_size="100000")
    outcome = world.write(
        options,
        None,
        {
            "key": [b"k", b"k", b"large", b"last"],
            "value": [b"fits", b"nowhere", b"v" * 100_001, b"far"],
            "topic": [topic, None, topic, topic],
            "partition": [0, 0, 0, 1],
        },
    )
    assert (outcome.rows, outcome.dead_letters, outcome.topic) == (1, 3, topic)
    assert world.values(topic) == [b"fits"]
    nowhere, large, far = _letters(world, dead)
    assert nowhere == (b"k", b"nowhere", {"ottla.reason": b"the row names no topic"})
    assert (large[0], large[1]) == (b"large", b"v" * 65_536)
    assert b"is larger than max.request.size (100000)" in (large[2]["ottla.reason"] or b"")
    assert large[2]["ottla.topic"] == topic.encode()
    reason = f"{topic!r} has no partition 1, only 0 to 0".encode()
    assert far == (b"last", b"far", {"ottla.reason": reason, "ottla.topic": topic.encode()})


@pytest.mark.parametrize("partition", [-1, 1])
def test_without_a_topic_for_them_they_end_the_task(world: World, name: str, partition: int) -> None:
    topic = world.create(name)
    rows: dict[str, list[Any]] = {"value": [b"v", b"w"], "partition": [partition, partition]}
    with pytest.raises(Undeliverable, match=r"and 1 more such rows\): set deadLetterTopic"):
        world.write(world.options(topic=topic), None, rows)


# Exactly once


def test_rows_are_visible_when_the_driver_commits_and_never_twice(world: World, name: str) -> None:
    topic = world.create(name)
    options = world.options(topic=topic)
    outcome = world.write(options, _identity(name), {"value": [b"a", b"b"]})
    assert outcome.prepared is not None
    assert outcome.prepared.transactional_id == f"ottla.{name}.0"
    assert world.values(topic) == []
    commit_batch(world.link, [outcome])
    assert world.values(topic) == [b"a", b"b"]
    assert find_entry(world.link, task_group(name, 0)) == LedgerEntry(1, "q")
    assert find_entry(world.link, layout_group(name)) == LedgerEntry(1, "q", 1, 0)

    again = world.write(options, _identity(name), {"value": [b"a"]}, {"value": [b"b"]})
    assert again == TaskOutcome(2, 0, skipped=True, identity=_identity(name))
    commit_batch(world.link, [again])
    assert world.values(topic) == [b"a", b"b"]

    following = world.write(options, _identity(name, 1), {"value": [b"c"]})
    commit_batch(world.link, [following])
    assert world.values(topic) == [b"a", b"b", b"c"]
    assert find_entry(world.link, layout_group(name)) == LedgerEntry(2, "q", 1, 0)


def test_what_a_dead_driver_left_is_finished_by_the_next_attempt(world: World, name: str) -> None:
    topic = world.create(name)
    options = world.options(topic=topic)
    outcomes = [world.write(options, _identity(name, 0, task), {"value": [b"%d" % task]}) for task in (0, 1)]
    # The driver has written the layout and committed one task of two.
    commit_batch(world.link, [outcomes[0], TaskOutcome(1, 0, skipped=False, identity=_identity(name, 0, 1))])
    assert world.values(topic) == [b"0"]
    again = [world.write(options, _identity(name, 0, task), {"value": [b"%d" % task]}) for task in (0, 1)]
    assert [outcome.skipped for outcome in again] == [True, False]
    commit_batch(world.link, again)
    assert world.values(topic) == [b"0", b"1"]


def test_a_batch_that_falls_into_other_tasks_is_refused(world: World, name: str) -> None:
    topic = world.create(name)
    options = world.options(topic=topic)
    commit_batch(world.link, [world.write(options, _identity(name), {"value": [b"a"]})])
    again = [world.write(options, _identity(name, 0, task), {"value": [b"a"]}) for task in (0, 1)]
    with pytest.raises(LedgerConflict, match="started with 1 tasks and now runs with 2"):
        commit_batch(world.link, again)
    abort_batch(world.link, [*again, None])
    assert world.values(topic) == [b"a"]


def test_a_refused_batch_keeps_no_transaction_open(world: World, name: str) -> None:
    topic = world.create(name)
    options = world.options(topic=topic)
    commit_batch(world.link, [world.write(options, _identity(name), {"value": [b"a"]})])
    again = [world.write(options, _identity(name, 0, task), {"value": [b"b"]}) for task in (0, 1)]
    with pytest.raises(LedgerConflict):
        commit_batch(world.link, again)
    listed = world.admin(lambda admin: admin.transactions.list())
    assert not [item for item in listed if item.state.lower() == "ongoing"], listed


def test_a_checkpoint_that_is_older_than_the_ledger_is_refused(world: World, name: str) -> None:
    topic = world.create(name)
    options = world.options(topic=topic)
    for number in range(3):
        commit_batch(world.link, [world.write(options, _identity(name, number), {"value": [b"a"]})])
    # Spark plans the batch again, so that it holds rows that were never delivered.
    with pytest.raises(LedgerConflict, match="has delivered batch 2 before, but this is batch 1"):
        commit_batch(world.link, [world.write(options, _identity(name, 1), {"value": [b"a", b"new"]})])


def test_a_ledger_of_another_query_is_refused(world: World, name: str) -> None:
    topic = world.create(name)
    options = world.options(topic=topic)
    commit_batch(world.link, [world.write(options, _identity(name), {"value": [b"a"]})])
    with pytest.raises(LedgerConflict, match="belongs to query q, but this is r"):
        world.write(options, _identity(name, query_id="r"), {"value": [b"a"]})


def test_a_batch_that_failed_leaves_nothing_and_can_be_run_again(world: World, name: str) -> None:
    topic = world.create(name)
    options = world.options(topic=topic)
    abort_batch(world.link, [world.write(options, _identity(name), {"value": [b"a"]}), None])
    world.write(options, _identity(name), {"value": [b"b"]})
    # Nobody knows which tasks were done.
    abort_tasks(world.link, options, name, 2)
    assert world.values(topic) == []
    commit_batch(world.link, [world.write(options, _identity(name), {"value": [b"c"]})])
    assert world.values(topic) == [b"c"]


def test_a_task_that_was_taken_over_stops(world: World, name: str) -> None:
    topic = world.create(name)
    options = world.options(topic=topic)
    old = world.write(options, _identity(name), {"value": [b"old"]})
    new = world.write(options, _identity(name), {"value": [b"new"]})
    with pytest.raises((BrokerError, Fenced)):
        commit_batch(world.link, [old])
    commit_batch(world.link, [new])
    assert world.values(topic) == [b"new"]


def test_dead_letters_are_counted_over_all_batches(world: World, name: str) -> None:
    topic, dead = world.create(name), world.create(f"{name}-dead")
    options = world.options(topic=topic, deadLetterTopic=dead)
    for batch_id in (0, 1):
        rows: dict[str, list[Any]] = {"value": [b"a", b"b", b"c"], "partition": [0, 5, 6]}
        commit_batch(world.link, [world.write(options, _identity(name, batch_id), rows)])
    assert find_entry(world.link, layout_group(name)) == LedgerEntry(2, "q", 1, 4)
    assert world.values(dead) == [b"b", b"c"] * 2


def test_groups_that_no_ledger_wrote_are_no_ledger(world: World, name: str) -> None:
    topic = world.create(name)

    async def commit() -> None:
        offsets = {TopicPartition(topic, 0): CommittedOffset(7, metadata="by hand")}
        (await world.link.group_offsets.alter(layout_group(name), offsets)).check()

    world.run(commit())
    with pytest.raises(LedgerConflict, match="were not written by a ledger"):
        find_entry(world.link, layout_group(name))


# What could not be read


def test_places_are_read_once_and_in_their_order() -> None:
    assert parse_places("") == {}
    assert parse_places("1:7,0:3,1:5,1:7") == {0: [3], 1: [5, 7]}


def test_near_offsets_are_fetched_together() -> None:
    where = TopicPartition("t", 0)
    assert ranges_around(where, []) == []
    found = ranges_around(where, [5, 105, 206, 207])
    assert [(each.start_offset, each.stop_offset) for each in found] == [(5, 106), (206, 208)]


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (999, [999]), (1000, [1000]), (1001, [1000, 1])])
def test_letters_go_in_batches_of_a_thousand(count: int, sizes: list[int]) -> None:
    letters: list[dict[str, Any]] = [
        {"key": None, "value": b"%d" % number, "headers": []} for number in range(count)
    ]
    batches = list(_in_batches(letters))
    assert [batch.num_rows for batch in batches] == sizes
    values = [value for batch in batches for value in batch.column("value").to_pylist()]
    assert values == [letter["value"] for letter in letters]


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_records_that_could_not_be_read_are_buried_with_their_place(
    world: World, name: str, guarantee: str
) -> None:
    topic, dead = world.create(name, 2), world.create(f"{name}-dead")
    world.produce(topic, *(b"%d" % number for number in range(4)))
    world.produce(topic, b"other", partition=1)
    options = world.options(topic=dead, pipeline=name, deliveryGuarantee=guarantee)
    inputs = [UnreadableInput(topic, {0: [1, 3], 1: [0]}, lambda _: "it is no JSON")]

    def bury() -> None:
        bury_unreadable(world.link, options, "q", 0, inputs, lambda: NOW_MS)

    bury()
    letters = _letters(world, dead)
    assert [value for _, value, _ in letters] == [b"1", b"3", b"other"]
    assert [(notes["ottla.partition"], notes["ottla.offset"]) for _, _, notes in letters] == [
        (b"0", b"1"),
        (b"0", b"3"),
        (b"1", b"0"),
    ]
    assert letters[0][2]["ottla.reason"] == b"it is no JSON"
    assert letters[0][2]["ottla.topic"] == topic.encode()
    bury()
    is_exact = guarantee == "exactly-once"
    assert len(world.values(dead)) == (3 if is_exact else 6)
    if is_exact:
        assert find_entry(world.link, task_group(ledger_of(name), 0)) == LedgerEntry(1, "q")
