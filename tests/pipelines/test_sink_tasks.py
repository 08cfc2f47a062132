"""What tasks of a sink do, without Spark: rows in, transactions prepared, committed, skipped, refused."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.pipelines.records import committed, committed_values, create_topic
from tests.support.ottla_node import OttlaNode

from ottla.pipelines.link import Link
from ottla.pipelines.sink.batch import TaskIdentity, TaskOutcome, abort_batch, commit_batch
from ottla.pipelines.sink.ledger import LedgerConflict, layout_group, ledger_of_write
from ottla.pipelines.sink.options import SinkOptions, parse_sink_options
from ottla.pipelines.sink.rows import Undeliverable
from ottla.pipelines.sink.task import write_rows


def options_for(node: OttlaNode, topic: str, **more: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "pipeline": topic, **more}
    return parse_sink_options(given, is_streaming=True)


def rows(*values: bytes | None, **columns: list[Any]) -> Iterator[Any]:
    keys = columns.pop("key", [b"k%d" % number for number in range(len(values))])
    table = {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary()), **columns}
    return iter([pa.RecordBatch.from_pydict(table)])


def write(
    link: Link, options: SinkOptions, batch_id: int, task: int, content: Iterator[Any], query: str = "query"
) -> TaskOutcome:
    assert options.pipeline is not None
    identity = TaskIdentity(options.pipeline, query, batch_id, task)
    return write_rows(link, options, identity, content, lambda: 1_700_000_000_000)


def test_nothing_is_visible_before_the_driver_commits(node: OttlaNode, link: Link) -> None:
    options = options_for(node, "sink-commit")
    outcomes = [write(link, options, 0, task, rows(b"%d" % task)) for task in range(2)]

    assert committed_values(node.bootstrap, "sink-commit") == []
    commit_batch(link, outcomes)

    assert sorted(committed_values(node.bootstrap, "sink-commit")) == [b"0", b"1"]


def test_task_that_runs_again_after_its_commit_skips_its_rows(node: OttlaNode, link: Link) -> None:
    options = options_for(node, "sink-skip")
    first = [write(link, options, 0, task, rows(b"%d" % task)) for task in range(2)]
    # The driver dies after it has committed one of two tasks: the layout is written, one task is not.
    commit_batch(link, [first[0], TaskOutcome(0, 0, skipped=False)])

    again = [write(link, options, 0, task, rows(b"%d" % task)) for task in range(2)]
    commit_batch(link, again)

    assert [outcome.skipped for outcome in again] == [True, False]
    assert sorted(committed_values(node.bootstrap, "sink-skip")) == [b"0", b"1"]


def test_open_transaction_of_a_dead_attempt_is_aborted_by_the_next(node: OttlaNode, link: Link) -> None:
    options = options_for(node, "sink-dead")
    write(link, options, 0, 0, rows(b"from the dead"))

    commit_batch(link, [write(link, options, 0, 0, rows(b"alive"))])

    assert committed_values(node.bootstrap, "sink-dead") == [b"alive"]


def test_batch_that_failed_is_aborted_at_once(node: OttlaNode, link: Link) -> None:
    options = options_for(node, "sink-abort")
    abort_batch(link, [write(link, options, 0, 0, rows(b"failed")), None])

    commit_batch(link, [write(link, options, 0, 1, rows(b"good"))])

    assert committed_values(node.bootstrap, "sink-abort") == [b"good"]


@pytest.mark.parametrize("tasks", [1, 3])
def test_changed_number_of_tasks_is_refused_when_a_batch_runs_again(
    node: OttlaNode, link: Link, tasks: int
) -> None:
    topic = f"sink-layout-{tasks}"
    options = options_for(node, topic)
    first = [write(link, options, 7, task, rows(b"%d" % task)) for task in range(2)]
    commit_batch(link, [first[0], TaskOutcome(0, 0, skipped=False)])

    again = [write(link, options, 7, task, rows(b"other")) for task in range(tasks)]
    with pytest.raises(LedgerConflict, match=f"started with 2 tasks and now runs with {tasks}"):
        commit_batch(link, again)
    abort_batch(link, again)

    assert committed_values(node.bootstrap, topic) == [b"0"]


def test_number_of_tasks_may_change_between_batches(node: OttlaNode, link: Link) -> None:
    options = options_for(node, "sink-scale")
    for batch_id, tasks in enumerate((1, 3, 2)):
        commit_batch(link, [write(link, options, batch_id, task, rows(b"x")) for task in range(tasks)])

    assert len(committed_values(node.bootstrap, "sink-scale")) == 6


def test_second_write_of_a_batch_needs_a_ledger_of_its_own(node: OttlaNode, link: Link) -> None:
    options = options_for(node, "sink-twice")

    def written(run: str, value: bytes, ledger: str = "sink-twice") -> list[TaskOutcome]:
        identity = TaskIdentity(ledger, "query", 4, 0, run)
        return [write_rows(link, options, identity, rows(value), lambda: 1_700_000_000_000)]

    commit_batch(link, written("first run", b"one"))
    with pytest.raises(LedgerConflict, match="give each write of a batch its own name with the option write"):
        commit_batch(link, written("first run", b"two"))
    commit_batch(link, written("first run", b"two", ledger_of_write("sink-twice", "audit")))
    # The batch runs again: both are delivered.
    commit_batch(link, written("second run", b"one"))
    commit_batch(link, written("second run", b"two", ledger_of_write("sink-twice", "audit")))

    assert sorted(committed_values(node.bootstrap, "sink-twice")) == [b"one", b"two"]


def test_ledger_of_another_query_is_refused(node: OttlaNode, link: Link) -> None:
    options = options_for(node, "sink-query")
    commit_batch(link, [write(link, options, 5, 0, rows(b"x"), query="one")])

    with pytest.raises(LedgerConflict, match="the checkpoint may have been removed"):
        write(link, options, 0, 0, rows(b"y"), query="other")


def test_earlier_attempt_that_still_runs_is_fenced(node: OttlaNode, link: Link) -> None:
    options = options_for(node, "sink-zombie")
    zombie = write(link, options, 0, 0, rows(b"zombie"))
    commit_batch(link, [write(link, options, 0, 0, rows(b"new"))])

    with pytest.raises(Exception, match="cannot end the transaction"):
        commit_batch(link, [zombie])

    assert committed_values(node.bootstrap, "sink-zombie") == [b"new"]


def test_rows_that_cannot_be_delivered_go_to_the_dead_letters(node: OttlaNode, link: Link) -> None:
    create_topic(node.bootstrap, "sink-letters", 2)
    options = options_for(node, "sink-letters", deadLetterTopic="sink-letters.dead")
    large = b"x" * 2_000_000
    content = rows(b"good", b"nowhere", large, partition=[None, 9, None])

    outcome = write(link, options, 0, 0, content)
    commit_batch(link, [outcome])

    assert (outcome.rows, outcome.dead_letters) == (1, 2)
    assert committed_values(node.bootstrap, "sink-letters") == [b"good"]
    letters = {
        message.value()[:7]: dict(message.headers())
        for message in committed(node.bootstrap, "sink-letters.dead")
    }
    assert letters[b"nowhere"]["ottla.reason"] == b"'sink-letters' has no partition 9, only 0 to 1"
    assert letters[b"nowhere"]["ottla.topic"] == b"sink-letters"
    assert b"larger than max.request.size" in letters[b"xxxxxxx"]["ottla.reason"]
    layout = link.run(link.group_offsets.list(layout_group("sink-letters")))
    assert [item.metadata.count('"dead_letters":2') for item in layout.values()] == [1]


def test_row_that_cannot_be_delivered_ends_the_task_without_dead_letters(node: OttlaNode, link: Link) -> None:
    options = options_for(node, "sink-strict")
    with pytest.raises(Undeliverable, match="set deadLetterTopic"):
        write(link, options, 0, 0, rows(b"x" * 2_000_000))


def test_rows_may_name_their_topics_headers_and_partitions(node: OttlaNode, link: Link) -> None:
    given = {"kafka.bootstrap.servers": node.bootstrap, "pipeline": "sink-topics"}
    options = parse_sink_options(given, is_streaming=True)
    headers = pa.array([[{"key": "h", "value": b"1"}], None, []])
    topics = pa.array(["sink-a", "sink-b", "sink-a"])
    content = rows(b"0", b"1", None, topic=topics, headers=headers, partition=pa.array([2, 1, 0]))

    commit_batch(link, [write(link, options, 0, 0, content)])

    found = {(m.topic(), m.partition(), m.value(), str(m.headers())) for m in
             committed(node.bootstrap, "sink-a") + committed(node.bootstrap, "sink-b")}  # fmt: skip
    assert found == {
        ("sink-a", 2, b"0", "[('h', b'1')]"),
        ("sink-b", 1, b"1", "None"),
        ("sink-a", 0, None, "None"),
    }


def test_at_least_once_needs_no_commit(node: OttlaNode, link: Link) -> None:
    options = options_for(node, "sink-plain", deliveryGuarantee="at-least-once")
    outcome = write_rows(link, options, None, rows(b"a", b"b"), lambda: 1_700_000_000_000)

    assert outcome.prepared is None
    assert sorted(committed_values(node.bootstrap, "sink-plain")) == [b"a", b"b"]
