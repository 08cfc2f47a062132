"""DeleteRecords: give up the head of a log.

Readers miss it at once; its files go with the next retention check. The answer waits until all living
replicas know of it.
"""

from typing import Final

from ottla.broker.deferred import Deferred, gather
from ottla.broker.logs.partition import Partition
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfEach
from ottla.broker.serving.handlers import serves
from ottla.model.ids import Offset
from ottla.security.rights import Operation, on_topic
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


@serves(
    DeleteRecordsRequest,
    "0-2",
    OfEach(on_topic(Operation.DELETE), "topics.name", "topics", says={"low_watermark": -1}),
    cuts=(Cut("topics.partitions", "topics.partitions"),),
)
def delete_records(ask: DeleteRecordsRequest, context: BrokerContext) -> Deferred[DeleteRecordsResponse]:
    """Answer every partition on its own."""
    topics = [
        gather([_delete(topic.name, partition, ask.timeout_ms, context) for partition in topic.partitions])
        for topic in ask.topics
    ]
    return gather(topics).then(
        lambda results: DeleteRecordsResponse(
            topics=tuple(
                DeleteRecordsTopicResult(name=topic.name, partitions=tuple(partitions))
                for topic, partitions in zip(ask.topics, results, strict=True)
            )
        )
    )


def _delete(
    topic: str, ask: DeleteRecordsPartition, timeout_ms: int, context: BrokerContext
) -> Deferred[DeleteRecordsPartitionResult]:
    partition = context.broker.partitions.by_key.get((topic, ask.partition_index))
    error_code = (
        context.broker.partitions.why_missing(topic, ask.partition_index)
        if partition is None
        else _find_refusal(partition, ask.offset)
    )
    if partition is None or error_code is not ErrorCode.NONE:
        return Deferred.of(_refused(ask, error_code))
    log = partition.log
    offset = log.high_watermark if ask.offset == HIGH_WATERMARK else Offset(ask.offset)
    try:
        log.increment_log_start_offset(offset)
    except OffsetOutOfRange:
        return Deferred.of(_refused(ask, ErrorCode.OFFSET_OUT_OF_RANGE))
    except LogDirectoryOffline:
        return Deferred.of(_refused(ask, ErrorCode.KAFKA_STORAGE_ERROR))
    context.broker.journal.records_deleted(context, partition.topic, partition.index, offset)
    # Fetches that wait for records may wait at an offset that is gone now.
    context.broker.changed(partition)
    return context.broker.replication.low_watermarks.when_reached(partition, offset, timeout_ms).then(
        lambda low: DeleteRecordsPartitionResult(
            partition_index=ask.partition_index, low_watermark=low.offset, error_code=low.error_code
        )
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
