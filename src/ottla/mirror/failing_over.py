"""Making copies writable: the source is gone, or is to be left.

What was not copied is lost for the target. It is counted from what the mirror saw of the source last. If
nobody knows it, nothing is made writable, unless the operator says so by name.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.mirror.copies import Copy, find_copies
from ottla.mirror.halting import ALL_CONFIGS, check_mirrors, mirrored_topics
from ottla.model.ids import TopicPartition
from ottla.wire.config_kinds import ResourceType


@dataclass(frozen=True, slots=True)
class FailedOver:
    """One partition that is writable now. `lost` is None if it is not known what the copy lacks."""

    where: TopicPartition
    end_offset: int
    lost: int | None
    aborted: int
    """Transactions that were open, and were aborted: their coordinator is in the source."""
    source_silent_s: int | None = None
    """How long ago the source told its end."""


class UnknownLoss(ClientError):
    """Nobody knows what copies lack."""


async def fail_over(
    admin: Admin,
    topics: Collection[str],
    statuses: Collection[Mapping[str, Any]],
    now_ms: int,
    accepted: Collection[str] = (),
) -> list[FailedOver]:
    """Make topics writable, all that are mirrors unless some are named. Returns what became of each.

    Refuses if it is not known of one of them what it lacks, and it is not among those `accepted`.
    """
    mirrors = await mirrored_topics(admin)
    check_mirrors(topics, mirrors)
    chosen = sorted(topics or mirrors)
    copies = await find_copies(admin, statuses, now_ms)
    _refuse_unknown([copy for copy in copies if not topics or copy.topic in chosen], accepted)
    for name in chosen:
        await admin.configs.alter(ResourceType.TOPIC, name, dict.fromkeys(ALL_CONFIGS, None))
    partitions = [
        where
        for description in (await admin.topics.describe_many(chosen)).check().values()
        for where in description.topic_partitions
    ]
    aborted = await _abort_open(admin, partitions)
    ends = (await admin.offsets.latest(partitions)).check()
    known = {
        TopicPartition(copy.topic, copy.partition): copy for copy in copies if copy.partition is not None
    }
    return [
        FailedOver(
            where,
            ends[where].offset,
            _lost(known.get(where), ends[where].offset - aborted[where]),
            aborted[where],
            known[where].source_silent_s if where in known else None,
        )
        for where in partitions
    ]


def _lost(copy: Copy | None, end_offset: int) -> int | None:
    """Count what is missing. The markers of aborted transactions are no records of the source."""
    return None if copy is None or copy.lag is None else max(0, copy.source_end - end_offset)


def _refuse_unknown(copies: Collection[Copy], accepted: Collection[str]) -> None:
    unknown = [copy for copy in copies if copy.lag is None and copy.topic not in accepted]
    if unknown:
        which = "; ".join(f"{copy.name}: {copy.error}" for copy in unknown)
        options = " ".join(f"--accept-unknown {name}" for name in sorted({copy.topic for copy in unknown}))
        raise UnknownLoss(
            f"nothing was made writable, because it is not known what copies lack. {which}. "
            f"To go on without knowing, add {options}"
        )


async def _abort_open(admin: Admin, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """End the transactions that nobody else will end. Readers of committed records would wait for ever."""
    counts = dict.fromkeys(partitions, 0)
    for where, producers in (await admin.transactions.producers(partitions)).check().items():
        for producer in producers:
            if producer.transaction_start_offset is not None:
                await admin.transactions.abort(where, producer)
                counts[where] += 1
    return counts
