"""What pipelines made of a record: which batch read it, and what that batch wrote.

Spark's checkpoints tell the batch. What it wrote is in transactions that also commit the number of the next
batch to the ledger of the pipeline, so records and commit have the same producer.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from ottla.explain.access import Access
from ottla.explain.answer import time_text
from ottla.explain.evidence.group_history import Commit, read_group_history
from ottla.explain.evidence.logs import BatchFacts, RecordFacts, partitions_of, sample_log
from ottla.explain.steps import Step
from ottla.model.ledger_groups import LEDGER_PREFIX


class ReadBatch(NamedTuple):
    """A batch of a query that read the record."""

    query: str
    number: int
    begin: int
    end: int
    at_ms: int
    is_done: bool
    path: Path


async def pipeline_steps(access: Access, record: RecordFacts, checkpoints: Path) -> list[Step]:
    """Tell which batches of pipelines read a record, and what they wrote."""
    steps = []
    for directory in sorted(checkpoints.glob("*/offsets")):
        batch = _find_batch(record, directory)
        if batch is not None:
            steps.append(
                Step(
                    batch.at_ms,
                    "pipeline",
                    f"pipeline {batch.query} read it in batch {batch.number} (offsets {batch.begin} to "
                    f"{batch.end - 1}), {'done' if batch.is_done else 'planned, not done yet'}",
                    f"{batch.path}",
                    batch.query,
                )
            )
            steps += [step async for step in _wrote(access, batch)]
    return steps


def _find_batch(record: RecordFacts, directory: Path) -> ReadBatch | None:
    """Read from Spark's checkpoints in which batch of a query the record was."""
    place = str(record.where.partition)
    begin: dict[str, int] = {}
    for number in sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit()):
        path = directory / str(number)
        end = _end_offsets(path, record.where.topic)
        if place in end and begin.get(place, 0) <= record.offset < end[place]:
            committed = directory.parent / "commits" / str(number)
            at_ms = int((committed if committed.exists() else path).stat().st_mtime * 1000)
            return ReadBatch(
                directory.parent.name,
                number,
                begin.get(place, 0),
                end[place],
                at_ms,
                committed.exists(),
                path,
            )
        begin = end or begin
    return None


def _end_offsets(path: Path, topic: str) -> dict[str, int]:
    """Return the offsets of a batch of Spark's: lines of JSON, one for each source."""
    for line in path.read_text().splitlines():
        try:
            content: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict) and isinstance(content.get(topic), dict):
            return {str(place): int(offset) for place, offset in content[topic].items()}
    return {}


async def _wrote(access: Access, batch: ReadBatch) -> AsyncIterator[Step]:
    """Find the transactions of a batch: each task has one, and its commit in the ledger."""
    for item in await access.admin.groups.list():
        task = item.group_id.removeprefix(f"{LEDGER_PREFIX}{batch.query}.")
        if task == item.group_id or not task.isdigit():
            continue
        history = await read_group_history(access, item.group_id)
        commits = [one for one in history.commits if one.offset == batch.number + 1]
        if commits:
            # An attempt that was aborted has left a commit too. The last one counts.
            written = await _written(access, commits[-1])
            yield Step(
                commits[-1].at_ms,
                "wrote",
                f"pipeline {batch.query} wrote {written} in batch {batch.number}, task {task}: if it made "
                "something of this record, it is among them",
                f"__consumer_offsets@{commits[-1].log_offset}",
                batch.query,
            )


async def _written(access: Access, commit: Commit) -> str:
    """Name the records of a transaction."""
    sample = await sample_log(access, await partitions_of(access, [commit.where.topic]))
    own = [
        one
        for one in sample.batches
        if not one.is_control and (one.producer_id, one.producer_epoch) == commit.producer
    ]
    if not own:
        return f"to {commit.where.topic} at {time_text(commit.at_ms)}"
    return ", ".join(_range(own, where) for where in sorted({one.where for one in own}))


def _range(batches: list[BatchFacts], where: Any) -> str:
    own = [one for one in batches if one.where == where]
    first, last = min(one.base_offset for one in own), max(one.last_offset for one in own)
    return f"{where.topic}/{where.partition}@{first} to {last}"
