"""The ledger: which batches a pipeline has delivered, kept in the transactions that deliver them.

Spark runs a batch again when it does not know whether the batch was done. What it writes to Kafka by itself
is then there twice. Here each task writes in a transaction of its own, and the transaction also commits an
offset: the number of the next batch, to the group `ottla.ledger.<pipeline>.<task>`. Records and ledger become
visible together or not at all. A task that finds its batch in the ledger drops its rows: they are delivered.

That is right only while a batch that runs again falls into the same tasks. So before the first transaction of
a batch is committed, the driver writes the batch and the number of its tasks, the *layout*, to the group
`ottla.ledger.<pipeline>`. A batch that runs again with another number of tasks is refused.

A batch may be written several times, to different topics say. Each such write has a ledger of its own, by the
name it is given. Two writes with the same ledger would look like one that runs again, and the rows of the
second would be dropped. So the layout also says in which run of the query it was written: a run writes each
batch once, and what finds its own run there is refused.

Only the last batch may run again. A query that runs an earlier one has an older checkpoint, and would plan
the batch once more, with other rows, so it is refused.

A ledger belongs to one query, that is, to one checkpoint. A query that finds the ledger of another is
refused: its batches are counted from 0 again, and would be taken for delivered.
"""

import json
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from ottla.model.ids import TopicPartition
from ottla.model.ledger_groups import LEDGER_PREFIX


class LedgerConflict(Exception):
    """The ledger says something that does not go with this query: it must not go on."""


class Verdict(Enum):
    """What a task does with its rows."""

    WRITE = "they are not delivered yet"
    SKIP = "an earlier attempt has delivered them"


class LedgerEntry(NamedTuple):
    """What a group of the ledger holds."""

    next_batch_id: int
    query_id: str
    tasks: int = 0
    """Of a layout: how many tasks the batch has."""
    dead_letters: int = 0
    """Of a layout: how many rows of all batches so far could not be delivered."""
    run_id: str = ""
    """Of a layout: the run of the query that has written the batch, if that is known."""

    def note(self) -> str:
        """Return the text that is stored beside the offset."""
        content = {"query": self.query_id, "tasks": self.tasks, "dead_letters": self.dead_letters}
        if self.run_id:
            content["run"] = self.run_id
        return json.dumps(content, separators=(",", ":"))


class Committed(Protocol):
    """A committed offset, as the client tells it."""

    @property
    def offset(self) -> int:
        """The offset."""

    @property
    def metadata(self) -> str:
        """The note beside it."""


def ledger_of_write(pipeline: str, write: str | None) -> str:
    """Return the name of the ledger for one of several writes of a pipeline's batches."""
    return pipeline if write is None else f"{pipeline}.{write}"


def transactional_id(pipeline: str, task: int) -> str:
    """Return the name by which a task's transactions fence those of its earlier attempts."""
    return f"ottla.{pipeline}.{task}"


def task_group(pipeline: str, task: int) -> str:
    """Return the group that holds a task's entry.

    A group for each, since Kafka commits offsets only for partitions that exist: there may be more tasks than
    the topic has partitions.
    """
    return f"{LEDGER_PREFIX}{pipeline}.{task}"


def layout_group(pipeline: str) -> str:
    """Return the group that holds the layout of the last batch."""
    return f"{LEDGER_PREFIX}{pipeline}"


def read_entry(committed: Mapping[TopicPartition, Committed], group: str) -> LedgerEntry | None:
    """Read what a group holds. A pipeline may write to several topics: the latest entry counts."""
    latest = max(committed.values(), key=lambda item: item.offset, default=None)
    if latest is None:
        return None
    try:
        note = json.loads(latest.metadata)
        return LedgerEntry(
            latest.offset, note["query"], note["tasks"], note["dead_letters"], note.get("run", "")
        )
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise LedgerConflict(
            f"group {group!r} has offsets that were not written by a ledger: choose another name for the "
            "pipeline"
        ) from error


def decide_delivery(entry: LedgerEntry | None, query_id: str, batch_id: int, pipeline: str) -> Verdict:
    """Decide whether a task writes its rows or drops them."""
    if entry is None:
        return Verdict.WRITE
    check_query(entry, query_id, pipeline)
    return Verdict.SKIP if entry.next_batch_id > batch_id else Verdict.WRITE


def decide_layout(
    entry: LedgerEntry | None,
    query_id: str,
    batch_id: int,
    tasks: int,
    dead_letters: int,
    pipeline: str,
    run_id: str = "",
) -> LedgerEntry | None:
    """Decide what layout to write before the tasks of a batch are committed; None if it is there already."""
    if entry is None:
        return LedgerEntry(batch_id + 1, query_id, tasks, dead_letters, run_id)
    check_query(entry, query_id, pipeline)
    if entry.next_batch_id <= batch_id:
        return LedgerEntry(batch_id + 1, query_id, tasks, entry.dead_letters + dead_letters, run_id)
    if entry.next_batch_id == batch_id + 1 and run_id and entry.run_id == run_id:
        raise LedgerConflict(
            f"this run has written batch {batch_id} of pipeline {pipeline!r} before, so the rows of another "
            "write would be dropped as delivered: give each write of a batch its own name with the option "
            "write"
        )
    if entry.next_batch_id == batch_id + 1 and entry.tasks != tasks:
        raise LedgerConflict(
            f"batch {batch_id} of pipeline {pipeline!r} started with {entry.tasks} tasks and now runs with "
            f"{tasks}, so it is unknown which rows were delivered. Run it once with its old settings "
            "(minPartitions, spark.sql.shuffle.partitions), then change them"
        )
    if entry.next_batch_id > batch_id + 1:
        # Spark plans a batch again that its checkpoint does not know: with rows that nobody has delivered.
        raise LedgerConflict(
            f"pipeline {pipeline!r} has delivered batch {entry.next_batch_id - 1} before, but this is batch "
            f"{batch_id}, so rows would be dropped as delivered: the checkpoint is older than the ledger. "
            "Restore the latest checkpoint, give the pipeline another name, or delete the groups "
            f"{LEDGER_PREFIX}{pipeline}* to deliver rows again"
        )
    return None


def check_query(entry: LedgerEntry, query_id: str, pipeline: str) -> None:
    """Raise if a ledger belongs to another query."""
    if entry.query_id != query_id:
        raise LedgerConflict(
            f"the ledger of pipeline {pipeline!r} belongs to query {entry.query_id}, but this is {query_id}: "
            "the checkpoint may have been removed. Restore the checkpoint, give the pipeline another name, "
            f"or delete the groups {LEDGER_PREFIX}{pipeline}* to start over and deliver rows again"
        )
