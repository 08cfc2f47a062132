"""Raw record batches from the leaders of partitions, with no object for a record.

    answers = await fetch_once(cluster, {TopicPartition("payments", 0): 0})
    async for piece in read_range(cluster, TopicPartition("payments", 0), 0, 5000): ...

Both give `FetchedPartition`s. `records` are whole batches as they lie in the log, and perhaps a last one that
is cut off; the first may begin before the offset asked for. With READ_COMMITTED a broker sends nothing at or
above the last stable offset, and says in `aborted` whose records to leave out: `visible_batches` does that.
`read_range` follows leaders and tries again what can be tried again; `fetch_once` tells errors as they are.
Nothing here keeps a fetch session or remembers a position: that is the consumer's part.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

from ottla.client.cluster import FETCH_LANE, Cluster
from ottla.client.errors import BrokerError, ClientError, OffsetOutOfRange
from ottla.client.topology import Topology
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID
from ottla.records.batch import BatchView, iter_batches
from ottla.records.control import ControlType, decode_control_type, find_control_record
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)

# From this version on topics are named by their ids.
FIRST_VERSION_BY_ID: Final = 13
NO_SESSION_EPOCH: Final = -1


class IsolationLevel(IntEnum):
    """Whether a reader sees records of transactions that are open or aborted."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class FetchedPartition(NamedTuple):
    """What a leader answered for one partition. Offsets are -1 where the broker did not tell."""

    where: TopicPartition
    fetch_offset: int
    error_code: ErrorCode
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[AbortedTransaction, ...]
    records: memoryview
    # The replica to read from instead, which is nearer.
    nearer_replica: int = -1


class FetchLimits(NamedTuple):
    """How much a fetch may bring, and how long it may wait for it."""

    max_bytes: int = 52_428_800
    partition_max_bytes: int = 1_048_576
    min_bytes: int = 1
    max_wait_ms: int = 500


DEFAULT_LIMITS: Final = FetchLimits()


def request_timeout_s(limits: FetchLimits, timeout_s: float) -> float:
    """Return how long to wait for an answer that the broker may hold back on purpose."""
    return timeout_s + limits.max_wait_ms / 1000


def fetch_version(connection: Any, topology: Topology, topics: Iterable[str]) -> int:
    """Return the newest version to fetch these topics by: by id where all ids are known."""
    known = all(
        (view := topology.topics.get(name)) is not None and view.topic_id != ZERO_UUID for name in topics
    )
    version: int = connection.version_for(FetchRequest, None if known else FIRST_VERSION_BY_ID - 1)
    return version


def fetched_partitions(
    answer: FetchResponse, topology: Topology, asked: Mapping[TopicPartition, int]
) -> Iterator[FetchedPartition]:
    """Take an answer apart. What nobody asked for is left out."""
    for topic in answer.responses:
        name = topic.topic or topology.topic_names.get(topic.topic_id)
        if name is None:
            continue
        for data in topic.partitions:
            where = TopicPartition(name, data.partition_index)
            offset = asked.get(where)
            if offset is not None:
                yield FetchedPartition(
                    where,
                    offset,
                    data.error_code,
                    data.high_watermark,
                    data.last_stable_offset,
                    data.log_start_offset,
                    data.aborted_transactions or (),
                    memoryview(b"") if data.records is None else data.records,
                    data.preferred_read_replica,
                )


async def fetch_once(
    cluster: Cluster,
    positions: Mapping[TopicPartition, int],
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    limits: FetchLimits = DEFAULT_LIMITS,
    timeout_s: float = 30.0,
    lane: int = FETCH_LANE,
) -> dict[TopicPartition, FetchedPartition]:
    """Ask each leader once, all at a time. Errors of partitions are in the answers, as brokers told them."""
    by_leader: dict[int, dict[TopicPartition, int]] = {}
    for where, offset in positions.items():
        by_leader.setdefault((await cluster.leader(where)).leader, {})[where] = offset
    answers = await asyncio.gather(
        *(
            fetch_from(cluster, node_id, asked, isolation, limits, timeout_s, lane)
            for node_id, asked in by_leader.items()
        )
    )
    return {fetched.where: fetched for answer in answers for fetched in answer}


async def read_range(
    cluster: Cluster,
    where: TopicPartition,
    start_offset: int,
    stop_offset: int,
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    limits: FetchLimits = DEFAULT_LIMITS,
) -> AsyncIterator[FetchedPartition]:
    """Read one partition from `start_offset` until before `stop_offset`, which may lie inside a batch.

    The caller leaves out the records before and after the range. It waits for records that are not there yet.
    Raises `OffsetOutOfRange` when retention was faster.
    """
    position = start_offset

    async def once() -> FetchedPartition:
        answers = await fetch_once(cluster, {where: position}, isolation=isolation, limits=limits)
        fetched = answers.get(where)
        if fetched is None:
            # The topic was deleted and made again under our hands.
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, f"{where} cannot be read")
        if fetched.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OffsetOutOfRange({where: position})
        if fetched.error_code is not ErrorCode.NONE:
            if fetched.error_code.refreshes_metadata:
                await cluster.refresh([where.topic])
            raise BrokerError(fetched.error_code, f"{where} cannot be read")
        return fetched

    async def once_or_elsewhere() -> FetchedPartition:
        try:
            return await once()
        except BrokerError:
            raise
        except ClientError:
            # The leader is gone. Who follows it, the others know.
            await cluster.refresh([where.topic])
            raise

    while position < stop_offset:
        fetched = await cluster.retry(once_or_elsewhere)
        after = next_offset(fetched.records, position)
        if after > position:
            yield fetched
        position = after


def next_offset(records: memoryview, position: int) -> int:
    """Return the offset to go on with after these batches; `position` if none of them is whole."""
    for batch in iter_batches(records):
        position = max(position, batch.next_offset)
    return position


def visible_batches(fetched: FetchedPartition, isolation: IsolationLevel) -> Iterator[BatchView]:
    """Walk the batches whose records a reader is to see: no control batches, nothing aborted."""
    return visible_among(iter_batches(fetched.records), fetched.aborted, isolation)


def visible_among(
    batches: Iterable[BatchView], aborted: Iterable[AbortedTransaction], isolation: IsolationLevel
) -> Iterator[BatchView]:
    """Leave out what is not for readers.

    An aborted transaction spans from its first offset to the abort marker of its producer. The list of them
    need not be in order.
    """
    if isolation is IsolationLevel.READ_UNCOMMITTED:
        yield from (batch for batch in batches if not batch.is_control)
        return
    pending = sorted(aborted, key=lambda item: item.first_offset, reverse=True)
    aborting: set[int] = set()
    for batch in batches:
        if batch.has_producer:
            while pending and pending[-1].first_offset <= batch.last_offset:
                aborting.add(pending.pop().producer_id)
            if batch.is_control:
                if _is_abort(batch):
                    aborting.discard(batch.producer_id)
            elif batch.is_transactional and batch.producer_id in aborting:
                continue
        if not batch.is_control:
            yield batch


def _is_abort(batch: BatchView) -> bool:
    record = find_control_record(batch)
    return record is not None and decode_control_type(record.key) is ControlType.ABORT


async def fetch_from(
    cluster: Cluster,
    node_id: int,
    asked: Mapping[TopicPartition, int],
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    limits: FetchLimits = DEFAULT_LIMITS,
    timeout_s: float = 30.0,
    lane: int = FETCH_LANE,
) -> list[FetchedPartition]:
    """Ask one broker once. Errors of partitions are in the answers."""
    connection = await cluster.connection(node_id, lane)
    topology = cluster.topology
    version = fetch_version(connection, topology, {where.topic for where in asked})
    request = FetchRequest(
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=isolation,
        session_epoch=NO_SESSION_EPOCH,
        topics=fetch_topics(
            topology, {where: _fetch_partition(topology, where, asked[where], limits) for where in asked}
        ),
    )
    answer = await connection.ask(request, version, request_timeout_s(limits, timeout_s))
    if answer.error_code is not ErrorCode.NONE:
        raise BrokerError(answer.error_code, f"broker {node_id} refused a fetch")
    return list(fetched_partitions(answer, topology, asked))


def fetch_topics(
    topology: Topology, partitions: Mapping[TopicPartition, FetchPartition]
) -> tuple[FetchTopic, ...]:
    """Group what is asked of partitions by topic, in the order given."""
    by_topic: dict[str, list[FetchPartition]] = {}
    for where, partition in partitions.items():
        by_topic.setdefault(where.topic, []).append(partition)
    return tuple(
        FetchTopic(topic=name, topic_id=topology.topics[name].topic_id, partitions=tuple(items))
        for name, items in by_topic.items()
    )


def _fetch_partition(
    topology: Topology, where: TopicPartition, offset: int, limits: FetchLimits
) -> FetchPartition:
    view = topology.leader_of(where)
    return FetchPartition(
        partition=where.partition,
        current_leader_epoch=-1 if view is None else view.leader_epoch,
        fetch_offset=offset,
        partition_max_bytes=limits.partition_max_bytes,
    )
