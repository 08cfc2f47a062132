"""Reading what a fetch asks for, partition by partition, within its limits.

Partitions are read in the order asked. Each gives at most its own limit and what is left of the whole
answer's. The first that has anything gives at least one whole batch, however large (KIP-74): a reader could
never get past it otherwise.

A follower reads up to the log end, and its fetch tells the leader what it has. A consumer reads up to the
high watermark, from the leader or from a replica near by (KIP-392).
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla.broker.fetch.fetch_session import PartitionKey, SessionPartition
from ottla.broker.logs.partition import Partition
from ottla.broker.logs.partitions import Partitions
from ottla.broker.logs.remote_replica import RemoteReplica
from ottla.model.ids import LeaderEpoch, Offset
from ottla.runtime.connections.file_range import FileRange
from ottla.storage.errors import DamagedRecords, LogDirectoryOffline, OffsetOutOfRange
from ottla.storage.read import ReadLimit, ReadResult, limit_offset, note_tail
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    LeaderIdAndEpoch,
    PartitionData,
)

DEBUGGING_REPLICA: Final = -2
"""A consumer that wants to see everything up to the log end."""

NOTHING_TOLD: Final[Mapping[PartitionKey, SessionPartition]] = MappingProxyType({})
_EMPTY: Final = memoryview(b"")


class Limits(NamedTuple):
    """Who reads, how far and how much."""

    limit: ReadLimit
    bytes_max: int
    replica_id: int
    # Whether another node reads, to keep a replica: the id is that of a node.
    is_follower: bool
    tells_leader: bool
    replica_epoch: int = -1
    # Whether the client knows that it can read from a follower.
    reads_followers: bool = False
    # Chooses where else to read from, if the client has said where it is; -1 is here.
    select_replica: Callable[[Partition, int], int] | None = None
    now_ms: int = 0
    # Whether followers that are not in sync get nothing of throttled replicas now.
    is_sending_exceeded: bool = False


class FetchResult(NamedTuple):
    """What was read."""

    answers: list[tuple[PartitionKey, PartitionData]]
    partitions: list[Partition]
    size_bytes: int
    is_urgent: bool
    """Something has to be reported at once: an error, or that logs diverge."""


def read_partitions(
    partitions: Partitions,
    asked: Iterable[tuple[PartitionKey, FetchPartition]],
    limits: Limits,
    before: FetchResult | None = None,
    notes_fetch: bool = False,
    told: Mapping[PartitionKey, SessionPartition] = NOTHING_TOLD,
) -> FetchResult:
    """Read all partitions that are asked for; behind those that were read `before`, if some were.

    With `notes_fetch` the leader takes note of what a follower has. That is for the first attempt of a fetch:
    a later one tells nothing new. `told` is what the reader knows by its session. Partitions without news for
    it are not among the answers.
    """
    by_key = partitions.by_key
    answers: list[tuple[PartitionKey, PartitionData]] = []
    found: list[Partition] = []
    size_bytes, is_urgent = 0, False
    if before is not None:
        answers, found, size_bytes, is_urgent = before
    left_bytes = max(0, limits.bytes_max - size_bytes)
    for key, ask in asked:
        partition = by_key.get(key)
        if partition is None:
            answers.append((key, refused(ask, partitions.why_missing(*key), aborted=())))
            is_urgent = True
            continue
        found.append(partition)
        known = told.get(key)
        if known is not None and _has_no_news(partition, ask, limits, known, notes_fetch):
            continue
        answer = _read(partition, ask, limits, left_bytes, size_bytes == 0, notes_fetch)
        answers.append((key, answer))
        if (
            answer.error_code is not ErrorCode.NONE
            or answer.diverging_epoch.epoch >= 0
            or answer.preferred_read_replica >= 0
        ):
            is_urgent = True
        elif answer.records:
            length = len(answer.records)
            size_bytes += length
            left_bytes = left_bytes - length if left_bytes > length else 0
    return FetchResult(answers, found, size_bytes, is_urgent)


def _has_no_news(
    partition: Partition, ask: FetchPartition, limits: Limits, known: SessionPartition, notes_fetch: bool
) -> bool:
    """Say whether a reader has everything that it may read, and knows the rest.

    That is so with most partitions of most fetches, twice: when the fetch comes, and when it has waited for
    one of the others. To find that out takes a tenth of the time of a read.
    """
    log = partition.log
    offset = ask.fetch_offset
    if (
        offset != limit_offset(log, limits.limit)
        or known.high_watermark != log.high_watermark
        or known.log_start_offset != log.log_start_offset
        or (ask.last_fetched_epoch >= 0 and ask.last_fetched_epoch != log.leader_epochs.latest)
        or limits.select_replica is not None
        or partition.check_leader(ask.current_leader_epoch) is not ErrorCode.NONE
    ):
        return False
    if limits.is_follower:
        found = _find_follower(partition, ask, limits)
        if isinstance(found, ErrorCode):
            return False
        if notes_fetch:
            if found.log_end_offset != offset:
                # The high watermark may move, and that is news.
                return False
            _note_fetch(partition, found, ask, limits, None)
    if offset == log.log_end_offset and offset not in log.next_positions:
        note_tail(log)
    return True


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
    partition: Partition,
    ask: FetchPartition,
    limits: Limits,
    left_bytes: int,
    is_first: bool,
    notes_fetch: bool,
) -> PartitionData:
    error_code = partition.check_reader(ask.current_leader_epoch, limits.reads_followers)
    follower: RemoteReplica | None = None
    if limits.is_follower and error_code is ErrorCode.NONE:
        found = _find_follower(partition, ask, limits)
        if isinstance(found, ErrorCode):
            error_code = found
        elif notes_fetch:
            follower = found
    if error_code is not ErrorCode.NONE:
        return _refused_by_leader(partition, ask, error_code, limits)
    if ask.last_fetched_epoch >= 0 or limits.select_replica is not None:
        instead = _find_answer_without_records(partition, ask, limits)
        if instead is not None:
            return instead
    log = partition.log
    bytes_max = min(ask.partition_max_bytes, left_bytes)
    if limits.is_sending_exceeded and _is_held_back(partition, limits):
        bytes_max, is_first = 0, False
    try:
        result = log.read(Offset(ask.fetch_offset), bytes_max, limits.limit, is_first)
    except OffsetOutOfRange:
        return refused(ask, ErrorCode.OFFSET_OUT_OF_RANGE)
    except (LogDirectoryOffline, DamagedRecords):
        return refused(ask, ErrorCode.KAFKA_STORAGE_ERROR)
    if follower is not None:
        _note_fetch(partition, follower, ask, limits, result.batch_offset)
        if log.high_watermark != result.high_watermark:
            # Deviation: Kafka answers with what held before the fetch, so its followers learn of it one fetch
            # later.
            result = result._replace(
                high_watermark=log.high_watermark, last_stable_offset=log.last_stable_offset
            )
    return _answer(ask, result)


def _find_answer_without_records(
    partition: Partition, ask: FetchPartition, limits: Limits
) -> PartitionData | None:
    """Return the answer to a reader that has to cut its log first, or that should read elsewhere."""
    if ask.last_fetched_epoch >= 0:
        diverging = _find_divergence(partition, ask)
        if diverging is not None:
            return diverging
    if limits.select_replica is not None:
        nearer = limits.select_replica(partition, ask.fetch_offset)
        if nearer >= 0:
            return _elsewhere(partition, ask, nearer)
    return None


def _is_held_back(partition: Partition, limits: Limits) -> bool:
    return partition.is_sending_limited and limits.replica_id not in partition.in_sync


def _note_fetch(
    partition: Partition,
    follower: RemoteReplica,
    ask: FetchPartition,
    limits: Limits,
    batch_offset: int | None,
) -> None:
    assert partition.leading is not None, "it knows the follower"
    has_up_to = ask.fetch_offset
    if batch_offset is not None and batch_offset < has_up_to:
        # An Apache Kafka that has cut its log within a batch asks from there, but has nothing of the batch.
        has_up_to = batch_offset
    partition.leading.note_fetch(
        follower, has_up_to, ask.log_start_offset, limits.now_ms, limits.replica_epoch
    )


def _find_follower(partition: Partition, ask: FetchPartition, limits: Limits) -> RemoteReplica | ErrorCode:
    """Return the follower that fetches, or why it may not."""
    leading = partition.leading
    follower = None if leading is None else leading.followers.get(limits.replica_id)
    if leading is None or follower is None:
        # It knows of an assignment that this node does not know yet. Or it is mistaken, or lies.
        knows_epoch = ask.current_leader_epoch >= 0
        return ErrorCode.UNKNOWN_LEADER_EPOCH if knows_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
    if leading.is_older(limits.replica_id, limits.replica_epoch):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return follower


def _elsewhere(partition: Partition, ask: FetchPartition, replica_id: int) -> PartitionData:
    """Return the answer to a consumer that another replica is nearer to."""
    log = partition.log
    return PartitionData(
        partition_index=ask.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=None,
        preferred_read_replica=replica_id,
        records=_EMPTY,
    )


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
