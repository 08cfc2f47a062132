"""What the driver does when all tasks of a batch are done.

Tasks only *prepare*: they leave their transactions open. The driver commits them all, after it has made sure
that the layout is the one the batch was begun with. So a batch becomes visible when all of it is there, or,
if the driver dies in between, at the next attempt, which skips what was committed.

Nothing here knows rows, so that it loads without Arrow and NumPy: Spark runs it in processes of its own.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ottla.client.admin.group_offsets import CommittedOffset
from ottla.client.cluster import TRANSACTION, Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.transactions import Transactions
from ottla.model.ids import TopicPartition
from ottla.pipelines.link import Link
from ottla.pipelines.sink.ledger import (
    LedgerConflict,
    LedgerEntry,
    decide_layout,
    layout_group,
    read_entry,
    transactional_id,
)
from ottla.pipelines.sink.options import SinkOptions
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
    run_id: str = ""
    """The run of the query. Empty: not known."""


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


def find_entry(link: Link, group: str) -> LedgerEntry | None:
    """Read what a group of the ledger holds. Offsets of transactions that are open are waited for."""
    return read_entry(link.run(link.group_offsets.list(group, require_stable=True)), group)


def commit_batch(link: Link, outcomes: Sequence[TaskOutcome]) -> None:
    """Commit what the tasks of a batch have prepared. All of them must have succeeded.

    If the ledger does not allow it, it is aborted, so that readers need not wait for a timeout.
    """
    try:
        _write_layout_of(link, outcomes)
    except LedgerConflict:
        # What cannot be ended times out. Why the batch is refused is what people must know.
        with contextlib.suppress(ClientError):
            abort_batch(link, outcomes)
        raise
    prepared = [outcome.prepared for outcome in outcomes if outcome.prepared is not None]
    link.run(end_all(link.cluster, prepared, commit=True))


def _write_layout_of(link: Link, outcomes: Sequence[TaskOutcome]) -> None:
    """Write into how many tasks a batch falls, unless it is written. Raises LedgerConflict."""
    concerned = [outcome for outcome in outcomes if outcome.prepared is not None or outcome.skipped]
    if not concerned:
        return
    identity = concerned[0].identity
    assert identity is not None, "who prepares or skips has an identity"
    group = layout_group(identity.pipeline)
    topic = next((outcome.topic for outcome in concerned if outcome.topic is not None), None)
    dead_letters = sum(outcome.dead_letters for outcome in outcomes)
    layout = decide_layout(
        find_entry(link, group),
        identity.query_id,
        identity.batch_id,
        len(outcomes),
        dead_letters,
        identity.pipeline,
        identity.run_id,
    )
    if layout is not None and topic is not None:
        link.run(_write_layout(link, group, TopicPartition(topic, 0), layout))


async def _write_layout(link: Link, group: str, where: TopicPartition, layout: LedgerEntry) -> None:
    committed = CommittedOffset(layout.next_batch_id, metadata=layout.note())
    (await link.group_offsets.alter(group, {where: committed})).check()


def abort_batch(link: Link, outcomes: Sequence[TaskOutcome | None]) -> None:
    """Abort what tasks of a failed batch have prepared, so that readers need not wait for a timeout."""
    prepared = [outcome.prepared for outcome in outcomes if outcome is not None and outcome.prepared]
    link.run(end_all(link.cluster, prepared, commit=False))


def abort_tasks(link: Link, options: SinkOptions, pipeline: str, tasks: int) -> None:
    """Abort whatever tasks of a failed batch have left open, where nobody knows which of them were done.

    Starting a producer of the same name does it. It also fences a task that still runs somewhere.
    """
    link.run(_abort_tasks(link.cluster, options, pipeline, tasks))


async def _abort_tasks(cluster: Cluster, options: SinkOptions, pipeline: str, tasks: int) -> None:
    producers = (
        Transactions(cluster, options.settings(transactional_id(pipeline, task)), ProducerIdentity())
        for task in range(tasks)
    )
    await asyncio.gather(*(producer.initialize() for producer in producers))


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
            raise BrokerError(answer.error_code, f"cannot end the transaction {prepared.transactional_id!r}")

    await cluster.retry(once)
