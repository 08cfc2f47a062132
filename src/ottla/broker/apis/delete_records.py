"""DeleteRecords: give up the head of a log.

Readers miss it at once; its files go with the next retention check.
"""

from typing import Final

from ottla.broker.logs.partition import Partition
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import handles
from ottla.model.ids import Offset
from ottla.storage.errors import LogDirectoryOffline, OffsetOutOfRange
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK: Final = -1
"""The offset that means all records that every replica has."""


@handles(DeleteRecordsRequest, Cut("topics.partitions", "topics.partitions"))
def delete_records(ask: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    """Answer every partition on its own."""
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(_delete(topic.name, partition, context) for partition in topic.partitions),
            )
            for topic in ask.topics
        )
    )


def _delete(topic: str, ask: DeleteRecordsPartition, context: RequestContext) -> DeleteRecordsPartitionResult:
    partitions = context.broker.partitions
    partition = partitions.by_key.get((topic, ask.partition_index))
    if partition is None:
        return _refused(ask, partitions.why_missing(topic, ask.partition_index))
    error_code = _find_refusal(partition, ask.offset)
    if error_code is not ErrorCode.NONE:
        return _refused(ask, error_code)
    log = partition.log
    offset = log.high_watermark if ask.offset == HIGH_WATERMARK else Offset(ask.offset)
    try:
        log.increment_log_start_offset(offset)
    except OffsetOutOfRange:
        return _refused(ask, ErrorCode.OFFSET_OUT_OF_RANGE)
    except LogDirectoryOffline:
        return _refused(ask, ErrorCode.KAFKA_STORAGE_ERROR)
    # Whoever waits for records may wait at an offset that is gone now.
    context.broker.changed(partition)
    return DeleteRecordsPartitionResult(
        partition_index=ask.partition_index, low_watermark=log.log_start_offset
    )


def _find_refusal(partition: Partition, offset: int) -> ErrorCode:
    if partition.is_internal:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    error_code = partition.check_leader(-1)
    if error_code is not ErrorCode.NONE:
        return error_code
    if not partition.log.config.is_deleted:
        # A compacted log keeps the last value of each key: cutting it would lose values.
        return ErrorCode.POLICY_VIOLATION
    if offset < HIGH_WATERMARK:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    return ErrorCode.NONE


def _refused(ask: DeleteRecordsPartition, error_code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=ask.partition_index, low_watermark=-1, error_code=error_code
    )
