"""Batches and records as they lie in partitions.

Read raw, so that everything is seen: producer ids and sequences, records of open and aborted transactions,
markers, gaps. How much is read is bounded: the newest records of each partition, or those around an offset.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from ottla.client.errors import OffsetOutOfRange
from ottla.client.fetching import FetchLimits, read_range
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.explain.access import Access
from ottla.model.ids import TopicPartition
from ottla.records.attributes import TimestampType
from ottla.records.batch import BatchView, iter_batches
from ottla.records.batch_records import iter_batch_record_tuples
from ottla.records.codec import Headers
from ottla.records.control import ControlType, decode_control_type, find_control_record
from ottla.records.errors import RecordsError

RECORDS_MAX: Final = 50_000
"""Of how many records of a topic a question looks at, the newest of each partition."""
_LIMITS: Final = FetchLimits(max_wait_ms=0)


class BatchFacts(NamedTuple):
    """A batch without its records."""

    where: TopicPartition
    base_offset: int
    last_offset: int
    records: int
    size_bytes: int
    codec: str
    base_timestamp: int
    max_timestamp: int
    has_append_time: bool
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    aborts: bool = False
    """Whether it is the marker of a transaction that was aborted."""


class RecordFacts(NamedTuple):
    """A record and the batch that it is in."""

    where: TopicPartition
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    batch: BatchFacts

    @property
    def place(self) -> str:
        """Return the record's address, as people type it."""
        return f"{self.where.topic}/{self.where.partition}@{self.offset}"


class LogSample(NamedTuple):
    """The newest records of a topic's partitions, in the order of their offsets."""

    records: tuple[RecordFacts, ...]
    batches: tuple[BatchFacts, ...]
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    is_whole: bool
    """Whether nothing was left out."""

    def aborted(self) -> frozenset[tuple[TopicPartition, int]]:
        """Return the batches of transactions that were aborted, by their base offsets."""
        waiting: dict[tuple[TopicPartition, int], list[int]] = {}
        found: set[tuple[TopicPartition, int]] = set()
        for batch in sorted(self.batches, key=lambda one: (one.where, one.base_offset)):
            key = (batch.where, batch.producer_id)
            if batch.is_control:
                offsets = waiting.pop(key, [])
                if batch.aborts:
                    found.update((batch.where, offset) for offset in offsets)
            elif batch.is_transactional:
                waiting.setdefault(key, []).append(batch.base_offset)
        return frozenset(found)


async def partitions_of(access: Access, topics: Collection[str]) -> list[TopicPartition]:
    """Return the partitions of topics that exist."""
    views = (await access.cluster.refresh(topics)).topics
    return [
        TopicPartition(topic, number)
        for topic in topics
        if topic in views
        for number in sorted(views[topic].partitions)
    ]


async def sample_log(
    access: Access, partitions: Collection[TopicPartition], records_max: int = RECORDS_MAX
) -> LogSample:
    """Read the newest records of partitions."""
    starts = {
        where: found.offset
        for where, found in (await list_offsets(access.cluster, dict.fromkeys(partitions, EARLIEST))).items()
    }
    ends = {
        where: found.offset
        for where, found in (await list_offsets(access.cluster, dict.fromkeys(partitions, LATEST))).items()
    }
    each = max(records_max // max(len(partitions), 1), 100)
    records: list[RecordFacts] = []
    batches: list[BatchFacts] = []
    is_whole = True
    for where in partitions:
        start = max(starts[where], ends[where] - each)
        is_whole = is_whole and start == starts[where]
        async for batch, some in read_batches(access, where, start, ends[where]):
            batches.append(batch)
            records += some
    return LogSample(tuple(records), tuple(batches), starts, ends, is_whole)


async def read_batches(
    access: Access, where: TopicPartition, start: int, stop: int
) -> AsyncIterator[tuple[BatchFacts, list[RecordFacts]]]:
    """Read the batches of a range with their records; a control batch has none."""
    if start >= stop:
        return
    try:
        async for fetched in read_range(access.cluster, where, start, stop, limits=_LIMITS):
            for view in _whole_batches(fetched.records):
                if view.next_offset <= start or view.base_offset >= stop:
                    continue
                batch = _facts(where, view)
                yield batch, [] if batch.is_control else list(_records(where, view, batch))
    except OffsetOutOfRange:
        # Retention was faster. What is gone cannot be evidence.
        return


def _whole_batches(records: memoryview) -> Iterable[BatchView]:
    try:
        yield from iter_batches(records)
    except RecordsError:
        return


def _facts(where: TopicPartition, view: BatchView) -> BatchFacts:
    return BatchFacts(
        where,
        view.base_offset,
        view.last_offset,
        view.count,
        view.size_bytes,
        view.codec.name.lower(),
        view.base_timestamp,
        view.max_timestamp,
        view.timestamp_type is TimestampType.LOG_APPEND_TIME,
        view.leader_epoch,
        view.producer_id,
        view.producer_epoch,
        view.base_sequence,
        view.is_transactional,
        view.is_control,
        view.is_control and _aborts(view),
    )


def _aborts(view: BatchView) -> bool:
    try:
        record = find_control_record(view)
        return record is not None and decode_control_type(record.key) is ControlType.ABORT
    except RecordsError:
        return False


def _records(where: TopicPartition, view: BatchView, batch: BatchFacts) -> Iterable[RecordFacts]:
    try:
        for offset, timestamp, key, value, headers in iter_batch_record_tuples(view):
            yield RecordFacts(where, offset, timestamp, key, value, headers, batch)
    except RecordsError:
        return
