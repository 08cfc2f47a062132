"""What one task of a sink does with its rows.

It only *prepares*: it leaves its transaction open, and the driver commits it when all tasks are done.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.group import OffsetAndMetadata
from ottla.model.ids import TopicPartition
from ottla.pipelines.columns.decode import HEADERS_TYPE
from ottla.pipelines.link import Link
from ottla.pipelines.sink.batch import PreparedTransaction, TaskIdentity, TaskOutcome, find_entry
from ottla.pipelines.sink.ledger import LedgerEntry, Verdict, decide_delivery, task_group, transactional_id
from ottla.pipelines.sink.options import SinkOptions
from ottla.pipelines.sink.producer import ColumnProducer
from ottla.pipelines.sink.rows import (
    DeadLetter,
    OutgoingRows,
    Undeliverable,
    outgoing,
    refuse,
    refuse_partitions,
)


def write_rows(
    link: Link,
    options: SinkOptions,
    identity: TaskIdentity | None,
    batches: Iterator[Any],
    now_ms: Callable[[], int],
) -> TaskOutcome:
    """Write the rows of a task. Without an identity they are delivered at least once, and at once."""
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return TaskOutcome(0, 0, skipped=False, identity=identity)
    name = None if identity is None else transactional_id(identity.pipeline, identity.task)
    producer = ColumnProducer(link.cluster, options.settings(name), now_ms)
    # The order matters: once the producer is there, no earlier attempt can change the ledger any more.
    link.run(producer.start())
    if identity is not None and _is_delivered(link, identity):
        rows = first.num_rows + sum(batch.num_rows for batch in filled)
        return TaskOutcome(rows, 0, skipped=True, identity=identity)
    writer = _RowWriter(link, options, producer)
    if identity is not None:
        producer.transactions.begin()
    writer.write(first)
    for batch in filled:
        writer.write(batch)
    prepared = None if identity is None else _prepare(link, producer, identity, writer.topic or "")
    return TaskOutcome(
        writer.rows, writer.dead_letters, False, identity=identity, topic=writer.topic, prepared=prepared
    )


def _is_delivered(link: Link, identity: TaskIdentity) -> bool:
    entry = find_entry(link, task_group(identity.pipeline, identity.task))
    verdict = decide_delivery(entry, identity.query_id, identity.batch_id, identity.pipeline)
    return verdict is Verdict.SKIP


def _prepare(link: Link, producer: ColumnProducer, identity: TaskIdentity, topic: str) -> PreparedTransaction:
    entry = LedgerEntry(identity.batch_id + 1, identity.query_id)
    transactions = producer.transactions
    link.run(
        transactions.send_offsets(
            {TopicPartition(topic, 0): OffsetAndMetadata(entry.next_batch_id, metadata=entry.note())},
            task_group(identity.pipeline, identity.task),
        )
    )
    assert transactions.transactional_id is not None
    return PreparedTransaction(
        transactions.transactional_id,
        producer.identity.producer_id,
        producer.identity.producer_epoch,
        transactions.is_v2,
    )


class _RowWriter:
    """Sends rows to their topics, and those that cannot be sent to the one for dead letters."""

    def __init__(self, link: Link, options: SinkOptions, producer: ColumnProducer) -> None:
        self.rows = 0
        self.dead_letters = 0
        self.topic: str | None = None
        self._link = link
        self._options = options
        self._producer = producer
        self._record_bytes_max = options.settings(None).max_request_size

    def write(self, batch: Any) -> None:
        """Send the rows of one Arrow batch."""
        rows, letters = refuse(outgoing(batch, self._options.topic), self._record_bytes_max)
        for topic, some in self._by_topic(rows):
            count = self._link.run(self._producer.partition_count(topic))
            some, more = refuse_partitions(some, topic, count)
            letters += [letter._replace(topic=topic) for letter in more]
            self._send(topic, some)
        if letters:
            self._bury(letters)

    def _by_topic(self, rows: OutgoingRows) -> list[tuple[str, OutgoingRows]]:
        if not len(rows):
            return []
        if rows.topics is None:
            assert self._options.topic is not None, "checked before the first task"
            return [(self._options.topic, rows)]
        return [
            (name.as_py(), rows.take(pc.indices_nonzero(pc.equal(rows.topics, name))))
            for name in rows.topics.unique()
        ]

    def _send(self, topic: str, rows: OutgoingRows) -> None:
        if len(rows):
            self.topic = self.topic or topic
            self._link.run(self._producer.send(topic, rows))
            self.rows += len(rows)

    def _bury(self, letters: Sequence[DeadLetter]) -> None:
        if self._options.dead_letter_topic is None:
            raise Undeliverable(
                f"{letters[0].reason} (and {len(letters) - 1} more such rows): set deadLetterTopic to store "
                "such rows there"
            )
        rows = OutgoingRows(
            pa.array([letter.key for letter in letters], pa.binary()),
            pa.array([letter.value for letter in letters], pa.binary()),
            None,
            None,
            pa.array([letter.headers() for letter in letters], HEADERS_TYPE),
        )
        self.topic = self.topic or self._options.dead_letter_topic
        self._link.run(self._producer.send(self._options.dead_letter_topic, rows))
        self.dead_letters += len(letters)
