"""ListOffsets: the offset of a time, or of a special place in the log.

-1  latest               v1+   what the reader may read up to
-2  earliest             v1+   the log start
-3  largest timestamp    v7+
-4  earliest local       v8+   the same as earliest, since nothing is tiered
-5  latest tiered        v9+   none
-6  earliest not tiered  v11+  none
"""

from typing import Final, NamedTuple

from ottla.broker.logs.partition import Partition
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfEach
from ottla.broker.serving.handlers import serves
from ottla.security.rights import Operation, on_topic
from ottla.storage.errors import DamagedRecords, LogDirectoryOffline
from ottla.storage.read import ReadLimit, limit_offset
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST: Final = -1
EARLIEST: Final = -2
LARGEST_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_NOT_TIERED: Final = -6

_SINCE_VERSION: Final = {
    LATEST: 1,
    EARLIEST: 1,
    LARGEST_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_NOT_TIERED: 11,
}
_CONSUMER: Final = -1
_DEBUGGING_REPLICA: Final = -2
"""Asks any replica for what it has, also one that does not lead."""
_NOT_AVAILABLE_FROM: Final = 5
_NOTED_MAX: Final = 100
"""Of so many partitions a connection's look-ups are kept for the journal."""
_READ_COMMITTED: Final = 1


class _Found(NamedTuple):
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


@serves(
    ListOffsetsRequest,
    "1-11",
    OfEach(on_topic(Operation.DESCRIBE), "topics.name", "topics"),
    cuts=(Cut("topics.partitions", "topics.partitions"),),
)
def list_offsets(ask: ListOffsetsRequest, context: BrokerContext) -> ListOffsetsResponse:
    """Answer every partition on its own."""
    limit, asks_any = _limit(ask), ask.replica_id == _DEBUGGING_REPLICA
    repeated = _repeated_partitions(ask)
    topics = []
    for topic in ask.topics:
        answers: dict[int, ListOffsetsPartitionResponse] = {}
        for partition in topic.partitions:
            if (topic.name, partition.partition_index) in repeated:
                answer = _refused(partition, ErrorCode.INVALID_REQUEST)
            else:
                answer = _look_up(topic.name, partition, context, limit, asks_any)
            answers[partition.partition_index] = answer
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(answers.values())))
    return ListOffsetsResponse(topics=tuple(topics))


def _limit(ask: ListOffsetsRequest) -> ReadLimit:
    if ask.replica_id != _CONSUMER:
        return ReadLimit.LOG_END
    return ReadLimit.LAST_STABLE if ask.isolation_level == _READ_COMMITTED else ReadLimit.HIGH_WATERMARK


def _repeated_partitions(ask: ListOffsetsRequest) -> set[tuple[str, int]]:
    seen: set[tuple[str, int]] = set()
    repeated: set[tuple[str, int]] = set()
    for topic in ask.topics:
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            (repeated if key in seen else seen).add(key)
    return repeated


def _look_up(
    topic: str, ask: ListOffsetsPartition, context: BrokerContext, limit: ReadLimit, asks_any: bool
) -> ListOffsetsPartitionResponse:
    if ask.timestamp < 0 and context.version < _SINCE_VERSION.get(ask.timestamp, context.version + 1):
        return _refused(ask, ErrorCode.UNSUPPORTED_VERSION)
    partitions = context.broker.partitions
    partition = partitions.by_key.get((topic, ask.partition_index))
    if partition is None:
        return _refused(ask, partitions.why_missing(topic, ask.partition_index))
    error_code = partition.check_reader(ask.current_leader_epoch, reads_followers=asks_any)
    if error_code is not ErrorCode.NONE:
        return _refused(ask, error_code)
    try:
        if limit is not ReadLimit.LOG_END and _is_behind(partition, ask.timestamp, limit):
            return _refused(
                ask,
                ErrorCode.OFFSET_NOT_AVAILABLE
                if context.version >= _NOT_AVAILABLE_FROM
                else ErrorCode.LEADER_NOT_AVAILABLE,
            )
        found = _find(partition, ask.timestamp, limit)
    except (LogDirectoryOffline, DamagedRecords):
        return _refused(ask, ErrorCode.KAFKA_STORAGE_ERROR)
    if limit is not ReadLimit.LOG_END and ask.timestamp in (LATEST, EARLIEST):
        _note(context, f"{topic}/{ask.partition_index}", ask.timestamp, found.offset)
    return ListOffsetsPartitionResponse(
        partition_index=ask.partition_index,
        offset=found.offset,
        timestamp=found.timestamp,
        leader_epoch=found.leader_epoch if context.version >= 4 else -1,
    )


def _note(context: BrokerContext, place: str, timestamp: int, offset: int) -> None:
    """Keep where a reader may begin. The journal tells it if the same connection fetches the partition."""
    if place in context.looked_up or len(context.looked_up) < _NOTED_MAX:
        context.looked_up[place] = (timestamp, offset)


def _is_behind(partition: Partition, timestamp: int, limit: ReadLimit) -> bool:
    """Say whether a new leader does not know yet what is committed that its predecessor has shown.

    Its high watermark comes with the next fetches of its followers. Until then, an offset that it returns
    might be below one that was returned before.
    """
    leading, log = partition.leading, partition.log
    if leading is None or log.high_watermark >= leading.epoch_start_offset:
        return False
    if timestamp == LATEST:
        return True
    if timestamp == LARGEST_TIMESTAMP:
        found = log.max_timestamp_offset()
    elif timestamp >= 0:
        found = log.offset_for_timestamp(timestamp, ReadLimit.LOG_END)
    else:
        return False
    return found is not None and found.offset >= limit_offset(log, limit)


def _find(partition: Partition, timestamp: int, limit: ReadLimit) -> _Found:
    log = partition.log
    if timestamp == LATEST:
        return _Found(limit_offset(log, limit), leader_epoch=partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return _Found(start, leader_epoch=log.leader_epochs.epoch_for(start))
    if timestamp in (LATEST_TIERED, EARLIEST_NOT_TIERED):
        return _Found()
    if timestamp == LARGEST_TIMESTAMP:
        found = log.max_timestamp_offset()
        if found is not None and found.offset >= limit_offset(log, limit):
            # There is one, but this reader may not know of it yet.
            found = None
    else:
        found = log.offset_for_timestamp(timestamp, limit)
    return _Found() if found is None else _Found(found.offset, found.timestamp_ms, found.leader_epoch)


def _refused(ask: ListOffsetsPartition, error_code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=ask.partition_index, error_code=error_code)
