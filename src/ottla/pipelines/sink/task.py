"""What one task of a sink does with its rows, and what the driver does when all tasks are done.

Tasks only *prepare*: they leave their transactions open. The driver commits them all, after it has made sure
that the layout is the one the batch was begun with. A batch thus becomes visible when all of it is there, or,
if the driver dies in between, at the next attempt, which skips what was committed.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.admin.group_offsets import CommittedOffset
from ottla.client.cluster import TRANSACTION, Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.group import OffsetAndMetadata
from ottla.model.ids import TopicPartition
from ottla.pipelines.columns.decode import HEADERS_TYPE
from ottla.pipelines.link import Link
from ottla.pipelines.sink.ledger import (
    LedgerEntry,
    Verdict,
    decide_delivery,
    decide_layout,
    layout_group,
    read_entry,
    task_group,
    transactional_id,
)
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
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.end_txn import EndTxnRequest

_LAST_END_OF_TRANSACTIONS_V1: Final = 4
_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """Which task of which batch of which query."""

    pipeline: str
    query_id: str
    batch_id: int
    task: int


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """A transaction that holds all rows of a task, and only needs to be ended."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_v2: bool


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What became of a task's rows."""

    rows: int
    dead_letters: int
    skipped: bool
    identity: TaskIdentity | None = None
    topic: str | None = None
    prepared: PreparedTransaction | None = None


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
    entry = _find_entry(link, task_group(identity.pipeline, identity.task))
    verdict = decide_delivery(entry, identity.query_id, identity.batch_id, identity.pipeline)
    return verdict is Verdict.SKIP


def _find_entry(link: Link, group: str) -> LedgerEntry | None:
    return read_entry(link.run(link.group_offsets.list(group, require_stable=True)), group)


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
                f"{letters[0].reason} (and {len(letters) - 1} more such rows): set deadLetterTopic to have "
                "such rows put aside"
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


def commit_batch(link: Link, outcomes: Sequence[TaskOutcome]) -> None:
    """Commit what the tasks of a batch have prepared. All of them must have succeeded."""
    concerned = [outcome for outcome in outcomes if outcome.prepared is not None or outcome.skipped]
    if not concerned:
        return
    identity = concerned[0].identity
    assert identity is not None, "who prepares or skips has an identity"
    group = layout_group(identity.pipeline)
    topic = next((outcome.topic for outcome in concerned if outcome.topic is not None), None)
    dead_letters = sum(outcome.dead_letters for outcome in outcomes)
    layout = decide_layout(
        _find_entry(link, group),
        identity.query_id,
        identity.batch_id,
        len(outcomes),
        dead_letters,
        identity.pipeline,
    )
    if layout is not None and topic is not None:
        link.run(_write_layout(link, group, TopicPartition(topic, 0), layout))
    prepared = [outcome.prepared for outcome in concerned if outcome.prepared is not None]
    link.run(end_all(link.cluster, prepared, commit=True))


async def _write_layout(link: Link, group: str, where: TopicPartition, layout: LedgerEntry) -> None:
    committed = CommittedOffset(layout.next_batch_id, metadata=layout.note())
    (await link.group_offsets.alter(group, {where: committed})).check()


def abort_batch(link: Link, outcomes: Sequence[TaskOutcome | None]) -> None:
    """Abort what tasks of a failed batch have prepared, so that readers need not wait for a timeout."""
    prepared = [outcome.prepared for outcome in outcomes if outcome is not None and outcome.prepared]
    link.run(end_all(link.cluster, prepared, commit=False))


async def end_all(cluster: Cluster, prepared: Sequence[PreparedTransaction], *, commit: bool) -> None:
    """End prepared transactions, all at a time."""
    await asyncio.gather(*(_end(cluster, item, commit) for item in prepared))


async def _end(cluster: Cluster, prepared: PreparedTransaction, commit: bool) -> None:
    request = EndTxnRequest(
        transactional_id=prepared.transactional_id,
        producer_id=prepared.producer_id,
        producer_epoch=prepared.producer_epoch,
        committed=commit,
    )

    async def once() -> None:
        node_id = await cluster.coordinator(TRANSACTION, prepared.transactional_id)
        try:
            connection = await cluster.connection(node_id)
            at_most = None if prepared.is_v2 else _LAST_END_OF_TRANSACTIONS_V1
            answer = await connection.ask(request, connection.version_for(EndTxnRequest, at_most))
        except ClientError:
            cluster.forget_coordinator(TRANSACTION, prepared.transactional_id)
            raise
        if answer.error_code in _MOVED:
            cluster.forget_coordinator(TRANSACTION, prepared.transactional_id)
        if answer.error_code is not ErrorCode.NONE:
            raise BrokerError(
                answer.error_code, f"the transaction {prepared.transactional_id!r} could not be ended"
            )

    await cluster.retry(once)
