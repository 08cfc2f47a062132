"""Reading what a fetch asks for, partition by partition, within its limits.

Partitions are read in the order asked. Each gives at most its own limit and what is left of the whole
answer's. The first that has anything gives at least one whole batch, however large (KIP-74): a reader could
never get past it otherwise.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.fetch.fetch_session import PartitionKey
from ottla.broker.logs.partition import Partition
from ottla.model.ids import LeaderEpoch, Offset
from ottla.runtime.connections.file_range import FileRange
from ottla.storage.errors import LogDirectoryOffline, OffsetOutOfRange
from ottla.storage.read import ReadLimit, ReadResult
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    LeaderIdAndEpoch,
    PartitionData,
)

if TYPE_CHECKING:
    from ottla.broker.logs.partitions import Partitions

DEBUGGING_REPLICA: Final = -2
"""A consumer that wants to see everything up to the log end."""

_EMPTY: Final = memoryview(b"")


class Limits(NamedTuple):
    """How far and how much a fetch may read."""

    limit: ReadLimit
    bytes_max: int
    replica_id: int
    tells_leader: bool


class FetchResult(NamedTuple):
    """What was read."""

    answers: list[tuple[PartitionKey, PartitionData]]
    partitions: list[Partition]
    size_bytes: int
    is_urgent: bool
    """Something has to be told at once: an error, or that logs diverge."""


def read_partitions(
    partitions: "Partitions",
    asked: Iterable[tuple[PartitionKey, FetchPartition]],
    limits: Limits,
    before: FetchResult | None = None,
) -> FetchResult:
    """Read all partitions that are asked for; behind those that were read `before`, if some were."""
    by_key = partitions.by_key
    answers, found, size_bytes, is_urgent = FetchResult([], [], 0, False) if before is None else before
    left_bytes = max(0, limits.bytes_max - size_bytes)
    for key, ask in asked:
        partition = by_key.get(key)
        if partition is None:
            answers.append((key, refused(ask, partitions.why_missing(*key), aborted=())))
            is_urgent = True
            continue
        found.append(partition)
        answer = _read(partition, ask, limits, left_bytes, size_bytes == 0)
        answers.append((key, answer))
        if answer.error_code is not ErrorCode.NONE or answer.diverging_epoch.epoch >= 0:
            is_urgent = True
        elif answer.records:
            size_bytes += len(answer.records)
            left_bytes = max(0, left_bytes - len(answer.records))
    return FetchResult(answers, found, size_bytes, is_urgent)


def refused(ask: FetchPartition, error_code: ErrorCode, aborted: tuple[()] | None = None) -> PartitionData:
    """Return the answer for a partition that cannot be read."""
    return PartitionData(
        partition_index=ask.partition,
        error_code=error_code,
        high_watermark=-1,
        aborted_transactions=aborted,
        records=_EMPTY,
    )


def _read(
    partition: Partition, ask: FetchPartition, limits: Limits, left_bytes: int, is_first: bool
) -> PartitionData:
    error_code = partition.check_leader(ask.current_leader_epoch)
    if limits.replica_id >= 0 and error_code is ErrorCode.NONE:
        # No other node has a replica here, so whoever says so is mistaken, or lies.
        error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if error_code is not ErrorCode.NONE:
        return _refused_by_leader(partition, ask, error_code, limits)
    if ask.last_fetched_epoch >= 0:
        diverging = _find_divergence(partition, ask)
        if diverging is not None:
            return diverging
    try:
        result = partition.log.read(
            Offset(ask.fetch_offset), min(ask.partition_max_bytes, left_bytes), limits.limit, is_first
        )
    except OffsetOutOfRange:
        return refused(ask, ErrorCode.OFFSET_OUT_OF_RANGE)
    except LogDirectoryOffline:
        return refused(ask, ErrorCode.KAFKA_STORAGE_ERROR)
    return _answer(ask, result)


def _answer(ask: FetchPartition, result: ReadResult) -> PartitionData:
    aborted = result.aborted
    return PartitionData(
        partition_index=ask.partition,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=None
        if aborted is None
        else tuple(
            AbortedTransaction(producer_id=entry.producer_id, first_offset=entry.first_offset)
            for entry in aborted
        ),
        records=_EMPTY if result.file is None else FileRange(result.file, result.position, result.length),  # type: ignore[arg-type]
    )


def _refused_by_leader(
    partition: Partition, ask: FetchPartition, error_code: ErrorCode, limits: Limits
) -> PartitionData:
    answer = refused(ask, error_code)
    if limits.tells_leader and error_code in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
    ):
        leader = LeaderIdAndEpoch(leader_id=partition.leader_id, leader_epoch=partition.leader_epoch)
        return replace(answer, current_leader=leader)
    return answer


def _find_divergence(partition: Partition, ask: FetchPartition) -> PartitionData | None:
    """Return the answer to a reader whose log is not ours up to where it wants to read on (KIP-595)."""
    log = partition.log
    end = log.end_offset_for_epoch(LeaderEpoch(ask.last_fetched_epoch))
    if end.epoch < 0 or ask.fetch_offset < log.log_start_offset:
        # Not even an earlier epoch is known, or its records are gone: the offset is not one of ours.
        return refused(ask, ErrorCode.OFFSET_OUT_OF_RANGE)
    if end.epoch >= ask.last_fetched_epoch and end.start_offset >= ask.fetch_offset:
        return None
    return PartitionData(
        partition_index=ask.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=EpochEndOffset(epoch=end.epoch, end_offset=end.start_offset),
        aborted_transactions=None,
        records=_EMPTY,
    )
