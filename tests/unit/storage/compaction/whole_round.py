"""A whole round of cleaning in one thread, from the plan to the last swap.

A broker runs the same steps with the cleaning itself in a worker, so that its event loop goes on serving.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.model.ids import Offset
from ottla.storage.compaction.candidates import Candidate
from ottla.storage.compaction.cleaned_segment import CleanedSegment
from ottla.storage.compaction.cleaning import Cleaned, CleanedGroup, clean
from ottla.storage.compaction.plan import plan_cleaning
from ottla.storage.compaction.swap import finish_swap, replace_segments, stage_swap
from ottla.storage.deletion import Deletion
from ottla.storage.log import Log
from ottla.storage.producers.producer_state import BATCHES_KEPT


class Round(NamedTuple):
    """What a round did, and the files that are to be removed after a while."""

    cleaned: Cleaned
    deletions: tuple[Deletion, ...]


def run_round(
    candidate: Candidate, now_ms: int, memory_bytes: int, batches_kept: int = BATCHES_KEPT
) -> Round:
    """Clean a log and swap in the result."""
    log = candidate.log
    task = plan_cleaning(candidate, now_ms, batches_kept)
    deletions: list[Deletion] = []
    for step in clean(task, log.volume.disk, memory_bytes):
        match step:
            case CleanedGroup(cleaned, replaced):
                deletions.append(_swap_in(log, (cleaned,), replaced))
            case Cleaned():
                return Round(step, tuple(deletions))
    raise AssertionError("a cleaning ends with `Cleaned`")


def _swap_in(log: Log, cleaned: Sequence[CleanedSegment], replaced: Sequence[Offset]) -> Deletion:
    """Do all steps of a swap at once."""
    disk = log.volume.disk
    stage_swap(disk, log.path, cleaned)
    replacement = replace_segments(log, cleaned, replaced)
    assert replacement is not None, "nothing else has used the log meanwhile"
    disk.sync_directory(log.path)
    finish_swap(log, replacement)
    return replacement.deletion
