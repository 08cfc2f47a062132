"""Records of a topic, the newest first over all partitions.

Each partition is read backwards in steps, and the heads of all partitions are merged by time. Within a
partition the order is that of offsets, whatever the timestamps say: where an older record has a later time
than the one after it, the record is marked. A page ends after so many records, or after so many bytes were
read for it; both ends say where to go on.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.fetching import (
    FetchedPartition,
    FetchLimits,
    IsolationLevel,
    fetch_once,
    next_offset,
    visible_batches,
)
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.model.ids import TopicPartition
from ottla.records.attributes import TimestampType
from ottla.records.batch_records import iter_batch_records
from ottla.records.codec import Headers
from ottla.records.errors import RecordsError
from ottla.wire.error_code import ErrorCode

PAGE: Final = 50
_BYTES_MAX: Final = 24 * 1024 * 1024
"""What may be read for one page."""
_LIMITS: Final = FetchLimits(max_bytes=8 * 1024 * 1024, partition_max_bytes=256 * 1024, max_wait_ms=0)
_SPAN_MIN: Final = 4
_SPAN_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record, and what its batch says of it."""

    where: TopicPartition
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Headers
    codec: str
    producer_id: int
    is_transactional: bool
    leader_epoch: int

    @property
    def size(self) -> int:
        """The bytes of key and value."""
        return len(self.key or b"") + len(self.value or b"")


class Listed(NamedTuple):
    """A record in a list. `is_late`: an older record of its partition has a later timestamp."""

    record: StoredRecord
    is_late: bool


@dataclass(frozen=True)
class RecordPage:
    """One page of records, and where the next one begins: the offset after the next record, by partition."""

    rows: Sequence[Listed]
    before: Mapping[int, int]
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    troubles: Mapping[int, str]
    """Why a partition could not be read on."""
    is_cut: bool = False
    """Whether it ends because so much was read."""

    @property
    def has_older(self) -> bool:
        """Whether there is a next page."""
        return any(offset > self.starts.get(number, 0) for number, offset in self.before.items())


@dataclass
class _Backwards:
    """One partition that is read backwards."""

    where: TopicPartition
    start: int
    position: int
    """Everything from here on was read."""
    span: int
    ready: list[StoredRecord] = field(default_factory=list)
    """The oldest first: the last one is the head."""
    trouble: str | None = None

    @property
    def is_hungry(self) -> bool:
        return not self.ready and self.position > self.start and self.trouble is None

    @property
    def before(self) -> int:
        """The offset that the next page begins before."""
        return self.ready[-1].offset + 1 if self.ready else self.position


async def read_newest(
    cluster: Cluster,
    topic: str,
    *,
    partitions: Collection[int] = (),
    before: Mapping[int, int] | None = None,
    before_ms: int | None = None,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    count: int = PAGE,
) -> RecordPage:
    """Read one page. `before` says where to go on, `before_ms` leaves out what is later than that."""
    numbers = await find_partitions(cluster, topic, partitions)
    wheres = [TopicPartition(topic, number) for number in numbers]
    starts, ends = await bounds(cluster, wheres, isolation)
    tops = dict(ends)
    if before_ms is not None:
        found = await list_offsets(cluster, dict.fromkeys(wheres, before_ms + 1), isolation)
        tops |= {where: min(at.offset, tops[where]) for where, at in found.items() if where in tops}
    for number, offset in (before or {}).items():
        where = TopicPartition(topic, number)
        if where in tops:
            tops[where] = min(tops[where], offset)
    span = max(_SPAN_MIN, -(-count * 2 // max(1, len(wheres))))
    readers = [
        _Backwards(where, starts[where], max(tops[where], starts[where]), span)
        for where in wheres
        if where in starts and where in tops
    ]
    rows, is_cut = await _merge(cluster, readers, isolation, count)
    return RecordPage(
        rows,
        {reader.where.partition: reader.before for reader in readers},
        {where.partition: offset for where, offset in starts.items()},
        {where.partition: offset for where, offset in ends.items()},
        {reader.where.partition: reader.trouble for reader in readers if reader.trouble is not None},
        is_cut,
    )


async def find_partitions(cluster: Cluster, topic: str, partitions: Collection[int]) -> list[int]:
    """Return the partitions of a topic, or those of the wanted that it has. Raises BrokerError."""
    view = (await cluster.refresh([topic])).topics.get(topic)
    if view is None or not view.partitions:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if view is None else view.error_code
        raise BrokerError(code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"cannot read topic {topic!r}")
    return sorted(number for number in view.partitions if not partitions or number in partitions)


async def bounds(
    cluster: Cluster, wheres: Collection[TopicPartition], isolation: IsolationLevel
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return where partitions begin and end, for those that have a leader."""
    led = [where for where in wheres if cluster.topology.leader_of(where) is not None]
    starts, ends = await asyncio.gather(
        list_offsets(cluster, dict.fromkeys(led, EARLIEST), isolation),
        list_offsets(cluster, dict.fromkeys(led, LATEST), isolation),
    )
    return (
        {where: found.offset for where, found in starts.items()},
        {where: found.offset for where, found in ends.items()},
    )


async def _merge(
    cluster: Cluster, readers: Sequence[_Backwards], isolation: IsolationLevel, count: int
) -> tuple[list[Listed], bool]:
    rows: list[Listed] = []
    last_ms: dict[int, int] = {}
    read_bytes = 0
    while len(rows) < count:
        hungry = [reader for reader in readers if reader.is_hungry]
        if hungry:
            if read_bytes > _BYTES_MAX:
                return rows, True
            read_bytes += await _feed(cluster, hungry, isolation)
            continue
        heads = [reader for reader in readers if reader.ready]
        if not heads:
            break
        newest = max(heads, key=lambda reader: (reader.ready[-1].timestamp_ms, reader.where.partition))
        record = newest.ready.pop()
        number = record.where.partition
        # The one before it in the list is the one after it in the partition.
        is_late = number in last_ms and record.timestamp_ms > last_ms[number]
        last_ms[number] = record.timestamp_ms
        rows.append(Listed(record, is_late))
    return rows, False


async def _feed(cluster: Cluster, hungry: Sequence[_Backwards], isolation: IsolationLevel) -> int:
    """Read a step of each partition that has no head. Returns how many bytes came."""
    firsts = {reader.where: max(reader.start, reader.position - reader.span) for reader in hungry}
    positions = dict(firsts)
    stops = {reader.where: reader.position for reader in hungry}
    found: dict[TopicPartition, list[StoredRecord]] = {where: [] for where in firsts}
    troubles: dict[TopicPartition, str] = {}
    read_bytes = 0
    while positions:
        answers = await fetch_once(cluster, positions, isolation=isolation, limits=_LIMITS)
        came = sum(len(answer.records) for answer in answers.values())
        read_bytes += came
        for where in list(positions):
            answer = answers.get(where)
            if answer is None or answer.error_code is not ErrorCode.NONE:
                code = ErrorCode.UNKNOWN_TOPIC_ID if answer is None else answer.error_code
                troubles[where] = f"it cannot be read: {code.name}"
                del positions[where]
                continue
            kept, trouble = open_batches(answer, isolation, positions[where], stops[where])
            found[where] += kept
            after = next_offset(answer.records, positions[where]) if trouble is None else stops[where]
            if trouble is not None:
                troubles[where] = trouble
            if not came and after < stops[where]:
                troubles[where] = "its leader sends nothing of it"
                after = stops[where]
            if after >= stops[where]:
                del positions[where]
            else:
                positions[where] = after
    for reader in hungry:
        reader.ready = found[reader.where]
        reader.position = firsts[reader.where]
        reader.span = min(reader.span * 4, _SPAN_MAX)
        reader.trouble = troubles.get(reader.where)
    return read_bytes


def open_batches(
    answer: FetchedPartition, isolation: IsolationLevel, first: int, stop: int
) -> tuple[list[StoredRecord], str | None]:
    """Return the records between two offsets, and what is wrong with the bytes, if anything is."""
    records: list[StoredRecord] = []
    try:
        for batch in visible_batches(answer, isolation):
            if batch.base_offset >= stop:
                break
            if not batch.crc_is_valid():
                return records, f"the batch at offset {batch.base_offset} is damaged: its checksum is wrong"
            kind, codec = batch.timestamp_type, batch.codec.name.lower()
            records += [
                StoredRecord(
                    answer.where,
                    record.offset,
                    record.timestamp,
                    kind,
                    record.key,
                    record.value,
                    record.headers,
                    codec,
                    batch.producer_id,
                    batch.is_transactional,
                    batch.leader_epoch,
                )
                for record in iter_batch_records(batch)
                if first <= record.offset < stop
            ]
    except RecordsError as error:
        return records, f"a batch is damaged: {error}"
    return records, None


async def read_one(cluster: Cluster, where: TopicPartition, offset: int) -> StoredRecord | None:
    """Read a record. None: there is none at this offset, or it is the marker of a transaction."""
    await find_partitions(cluster, where.topic, (where.partition,))
    starts, ends = await bounds(cluster, [where], IsolationLevel.READ_UNCOMMITTED)
    if where not in ends or not starts[where] <= offset < ends[where]:
        return None
    answers = await fetch_once(cluster, {where: offset}, limits=_LIMITS)
    answer = answers.get(where)
    if answer is None or answer.error_code is not ErrorCode.NONE:
        code = ErrorCode.UNKNOWN_TOPIC_ID if answer is None else answer.error_code
        raise BrokerError(code, f"{where} cannot be read")
    records, trouble = open_batches(answer, IsolationLevel.READ_UNCOMMITTED, offset, offset + 1)
    if trouble is not None:
        raise ClientError(f"{where}: {trouble}")
    return records[0] if records else None
