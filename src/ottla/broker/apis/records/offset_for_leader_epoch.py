"""OffsetForLeaderEpoch: where an epoch ended in our log, so that a reader finds where its own departs."""

from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfEach
from ottla.broker.serving.handlers import serves
from ottla.model.ids import LeaderEpoch
from ottla.security.rights import Operation, on_cluster, on_topic
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


@serves(
    OffsetForLeaderEpochRequest,
    "2-4",
    OfEach(
        on_topic(Operation.DESCRIBE), "topics.topic", "topics", unless=on_cluster(Operation.CLUSTER_ACTION)
    ),
    cuts=(Cut("topics.partitions", "topics.partitions"),),
)
def offset_for_leader_epoch(
    ask: OffsetForLeaderEpochRequest, context: BrokerContext
) -> OffsetForLeaderEpochResponse:
    """Answer every partition on its own."""
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_look_up(topic.topic, partition, context) for partition in topic.partitions),
            )
            for topic in ask.topics
        )
    )


def _look_up(topic: str, ask: OffsetForLeaderPartition, context: BrokerContext) -> EpochEndOffset:
    partitions = context.broker.partitions
    partition = partitions.by_key.get((topic, ask.partition))
    if partition is None:
        error_code = partitions.why_missing(topic, ask.partition)
    else:
        error_code = partition.check_leader(ask.current_leader_epoch)
    if partition is None or error_code is not ErrorCode.NONE:
        return EpochEndOffset(partition=ask.partition, error_code=error_code)
    end = partition.log.end_offset_for_epoch(LeaderEpoch(ask.leader_epoch))
    return EpochEndOffset(partition=ask.partition, leader_epoch=end.epoch, end_offset=end.start_offset)
