"""Records as they are written: what a live page shows, and a count of what it cannot show.

A topic may be written faster than anybody reads. So a step shows some records of what came, the latest, and
counts the rest; and a follower that has fallen far behind goes on at the end. Each step says where the next
one begins, so a page that was paused or hidden goes on where it stopped.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.fetching import FetchLimits, IsolationLevel, fetch_once, next_offset
from ottla.console.looks.records import StoredRecord, bounds, find_partitions, open_batches
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

_SHOWN_MAX: Final = 25
_TICK_S: Final = 0.25
_BEHIND_MAX: Final = 5_000
_LIMITS: Final = FetchLimits(max_bytes=4 * 1024 * 1024, partition_max_bytes=512 * 1024, max_wait_ms=500)


class Came(NamedTuple):
    """What one step has seen."""

    records: list[StoredRecord]
    """Those to be shown, the oldest first."""
    dropped: int
    """How many came and are not shown."""
    positions: Mapping[int, int]
    """Where the next step begins."""
    trouble: str | None = None


async def follow(
    cluster: Cluster,
    topic: str,
    *,
    partitions: Collection[int] = (),
    start: Mapping[int, int] | None = None,
    text: bytes = b"",
) -> AsyncIterator[Came]:
    """Follow a topic from its end, or from where an earlier step stopped. Yields also when nothing came."""
    numbers = await find_partitions(cluster, topic, partitions)
    wheres = [TopicPartition(topic, number) for number in numbers]
    starts, ends = await bounds(cluster, wheres, IsolationLevel.READ_UNCOMMITTED)
    positions = dict(ends)
    dropped = 0
    for number, offset in (start or {}).items():
        where = TopicPartition(topic, number)
        if where in ends:
            wanted = max(offset, starts.get(where, 0), ends[where] - _BEHIND_MAX)
            dropped += max(0, min(wanted, ends[where]) - offset)
            positions[where] = min(wanted, ends[where])
    loop = asyncio.get_running_loop()
    while True:
        began_s = loop.time()
        came = await _step(cluster, positions, text)
        yield came._replace(dropped=came.dropped + dropped)
        dropped = 0
        await asyncio.sleep(max(0.0, _TICK_S - (loop.time() - began_s)))


async def _step(cluster: Cluster, positions: dict[TopicPartition, int], text: bytes) -> Came:
    answers = await fetch_once(cluster, positions, limits=_LIMITS)
    records: list[StoredRecord] = []
    dropped, trouble = 0, None
    for where, answer in answers.items():
        if answer.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            _, ends = await bounds(cluster, [where], IsolationLevel.READ_UNCOMMITTED)
            positions[where] = ends.get(where, 0)
            continue
        if answer.error_code is not ErrorCode.NONE:
            trouble = f"{where} cannot be read: {answer.error_code.name}"
            await cluster.refresh([where.topic])
            continue
        after = next_offset(answer.records, positions[where])
        found, damage = open_batches(answer, IsolationLevel.READ_UNCOMMITTED, positions[where], after)
        trouble = trouble or damage
        records += [record for record in found if not text or has_text(record, text)]
        if answer.high_watermark - after > _BEHIND_MAX:
            # Nobody could read all that on a page.
            dropped += answer.high_watermark - after
            after = answer.high_watermark
        positions[where] = after
    records.sort(key=lambda record: (record.timestamp_ms, record.where, record.offset))
    dropped += max(0, len(records) - _SHOWN_MAX)
    return Came(
        records[-_SHOWN_MAX:], dropped, {where.partition: at for where, at in positions.items()}, trouble
    )


def has_text(record: StoredRecord, text: bytes) -> bool:
    """Say whether key, value or a header has some bytes."""
    return (
        text in (record.value or b"")
        or text in (record.key or b"")
        or any(
            text in (value or b"") or text in name.encode(errors="replace") for name, value in record.headers
        )
    )
