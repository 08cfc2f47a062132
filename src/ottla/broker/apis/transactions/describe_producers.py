"""DescribeProducers: the producers a partition's leader knows of, and where their open transactions begin."""

from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfEach
from ottla.broker.serving.handlers import serves
from ottla.model.topic_names import find_topic_name_fault
from ottla.security.rights import Operation, on_topic
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_producers import (
    DescribeProducersPartitionResult,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResult,
    ProducerState,
)


@serves(
    DescribeProducersRequest,
    "0",
    OfEach(on_topic(Operation.READ), "topics.name", "topics", says={"error_message": None}),
    cuts=(Cut("topics.partition_indexes", "topics.partitions"),),
)
def describe_producers(ask: DescribeProducersRequest, context: BrokerContext) -> DescribeProducersResponse:
    """Answer every partition on its own."""
    return DescribeProducersResponse(
        topics=tuple(
            DescribeProducersTopicResult(
                name=topic.name,
                partitions=tuple(
                    _describe(topic.name, number, context) for number in topic.partition_indexes
                ),
            )
            for topic in ask.topics
        )
    )


def _describe(topic: str, number: int, context: BrokerContext) -> DescribeProducersPartitionResult:
    partitions = context.broker.partitions
    partition = partitions.by_key.get((topic, number))
    if partition is not None:
        # A follower knows them as well as the leader.
        error_code = ErrorCode.NONE
    elif find_topic_name_fault(topic) is not None:
        error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
    else:
        error_code = partitions.why_missing(topic, number)
    if partition is None or error_code is not ErrorCode.NONE:
        return DescribeProducersPartitionResult(
            partition_index=number, error_code=error_code, active_producers=()
        )
    return DescribeProducersPartitionResult(
        partition_index=number,
        active_producers=tuple(
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.timestamp_ms,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_first_offset,
            )
            for producer_id, producer in partition.log.active_producers().items()
        ),
    )
