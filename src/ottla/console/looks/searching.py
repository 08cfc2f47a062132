"""Search through the records of a topic, on this side: what was found, what was scanned, and what is left.

All partitions are read from where the search begins to where they ended when it began. A batch without the
bytes that are looked for is not opened. The search pauses when it has found a page full, and each report says
where it goes on, so it can be stopped and resumed. "Nothing found" is said only when nothing is left.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.fetching import (
    FetchedPartition,
    FetchLimits,
    IsolationLevel,
    fetch_once,
    next_offset,
    visible_batches,
)
from ottla.client.list_offsets import list_offsets
from ottla.console.looks.following import has_text
from ottla.console.looks.records import StoredRecord, bounds, find_partitions, open_batches
from ottla.model.ids import TopicPartition
from ottla.records.attributes import Codec
from ottla.records.batch import BatchView, LegacyBatchView
from ottla.records.compression import decompress
from ottla.records.errors import RecordsError
from ottla.wire.error_code import ErrorCode

FOUND_MAX: Final = 100
_REPORT_S: Final = 0.5
_LIMITS: Final = FetchLimits(max_bytes=16 * 1024 * 1024, partition_max_bytes=1024 * 1024, max_wait_ms=0)


@dataclass(frozen=True)
class Wanted:
    """What is looked for: text somewhere in a record, a key, or both."""

    text: bytes = b""
    key: bytes | None = None

    @property
    def needle(self) -> bytes:
        """Bytes that each record has that is wanted."""
        return max(self.text, self.key or b"", key=len)

    def is_wanted(self, record: StoredRecord) -> bool:
        """Say whether a record is one of those."""
        if self.key is not None and record.key != self.key:
            return False
        return not self.text or has_text(record, self.text)


class Report(NamedTuple):
    """How far a search is."""

    found: list[StoredRecord]
    """Since the last report."""
    scanned: int
    """Offsets, since this search was begun or resumed."""
    scanned_bytes: int
    left: int
    """Offsets that are left."""
    positions: Mapping[int, int]
    """Where it goes on."""
    stops: Mapping[int, int]
    state: str
    """running, paused (a page is full) or done."""
    trouble: str | None = None


async def search(
    cluster: Cluster,
    topic: str,
    wanted: Wanted,
    *,
    partitions: Collection[int] = (),
    start: Mapping[int, int] | None = None,
    stops: Mapping[int, int] | None = None,
    since_ms: int | None = None,
) -> AsyncIterator[Report]:
    """Search, and report twice a second, when a page is full, and at the end."""
    searching = await _begin(cluster, topic, partitions, start, stops, since_ms)
    loop = asyncio.get_running_loop()
    due_s = loop.time() + _REPORT_S
    while True:
        left = {where: at for where, at in searching.positions.items() if at < searching.stops[where]}
        if not left:
            yield searching.report("done")
            return
        await searching.step(cluster, left, wanted)
        if searching.found_count >= FOUND_MAX:
            yield searching.report("paused")
            return
        if loop.time() >= due_s:
            yield searching.report("running")
            due_s = loop.time() + _REPORT_S
        # Pages of others are served in between.
        await asyncio.sleep(0)


async def _begin(
    cluster: Cluster,
    topic: str,
    partitions: Collection[int],
    start: Mapping[int, int] | None,
    stops: Mapping[int, int] | None,
    since_ms: int | None,
) -> "_Searching":
    wheres = [TopicPartition(topic, number) for number in await find_partitions(cluster, topic, partitions)]
    starts, ends = await bounds(cluster, wheres, IsolationLevel.READ_UNCOMMITTED)
    if since_ms is not None:
        found = await list_offsets(cluster, dict.fromkeys(ends, since_ms))
        starts |= {where: found[where].offset if where in found else ends[where] for where in ends}
    for where in ends:
        given = None if start is None else start.get(where.partition)
        if given is not None:
            starts[where] = max(starts[where], given)
        stop = None if stops is None else stops.get(where.partition)
        if stop is not None:
            ends[where] = min(ends[where], stop)
    return _Searching({where: starts[where] for where in ends}, ends)


class _Searching:
    """A search that is under way."""

    def __init__(self, positions: dict[TopicPartition, int], stops: dict[TopicPartition, int]) -> None:
        self.positions = positions
        self.stops = stops
        self.found_count = 0
        self._found: list[StoredRecord] = []
        self._scanned = 0
        self._scanned_bytes = 0
        self._trouble: str | None = None

    def report(self, state: str) -> Report:
        found, self._found = self._found, []
        return Report(
            found,
            self._scanned,
            self._scanned_bytes,
            sum(max(0, self.stops[where] - at) for where, at in self.positions.items()),
            {where.partition: at for where, at in self.positions.items()},
            {where.partition: at for where, at in self.stops.items()},
            state,
            self._trouble,
        )

    async def step(self, cluster: Cluster, left: Mapping[TopicPartition, int], wanted: Wanted) -> None:
        """Fetch once, and look at what came."""
        answers = await fetch_once(cluster, left, limits=_LIMITS)
        for where in left:
            answer = answers.get(where)
            code = ErrorCode.UNKNOWN_TOPIC_ID if answer is None else answer.error_code
            if answer is None or code is not ErrorCode.NONE:
                await self._refused(cluster, where, code)
                continue
            position = self.positions[where]
            stop = min(self.stops[where], next_offset(answer.records, position))
            stop = self._look(answer, wanted, position, stop)
            self._scanned += max(0, stop - position)
            self._scanned_bytes += len(answer.records)
            self.positions[where] = max(stop, position)
            if self.found_count >= FOUND_MAX:
                return

    async def _refused(self, cluster: Cluster, where: TopicPartition, code: ErrorCode) -> None:
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            # Retention was faster.
            starts, _ = await bounds(cluster, [where], IsolationLevel.READ_UNCOMMITTED)
            self.positions[where] = max(self.positions[where] + 1, starts.get(where, 0))
            return
        self._trouble = f"{where} cannot be read on: {code.name}"
        if code.refreshes_metadata:
            await cluster.refresh([where.topic])
        self.positions[where] = self.stops[where]

    def _look(self, answer: FetchedPartition, wanted: Wanted, first: int, stop: int) -> int:
        """Look at some batches. Returns where to go on: before the end of them, if a page is full."""
        if not may_have(answer, wanted.needle):
            return stop
        records, damage = open_batches(answer, IsolationLevel.READ_UNCOMMITTED, first, stop)
        self._trouble = self._trouble or (None if damage is None else f"{answer.where}: {damage}")
        for record in records:
            if wanted.is_wanted(record):
                self._found.append(record)
                self.found_count += 1
                if self.found_count >= FOUND_MAX:
                    return record.offset + 1
        return stop


def may_have(answer: FetchedPartition, needle: bytes) -> bool:
    """Say whether a record of these batches may have some bytes, without decoding records."""
    if not needle:
        return True
    try:
        return any(
            needle in _area(batch) for batch in visible_batches(answer, IsolationLevel.READ_UNCOMMITTED)
        )
    except RecordsError:
        # What is wrong is said when it is opened.
        return True


def _area(batch: BatchView) -> bytes:
    if isinstance(batch, LegacyBatchView) or batch.codec is Codec.NONE:
        return bytes(batch.view)
    return decompress(batch.codec, batch.records_bytes)
