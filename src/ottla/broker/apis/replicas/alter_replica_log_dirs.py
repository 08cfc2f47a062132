"""AlterReplicaLogDirs: move replicas between the log directories of this node.

The answer says whether a move has begun; the copying goes on afterwards.
"""

from ottla.broker.node import BrokerContext
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import serves
from ottla.model.ids import TopicPartition
from ottla.security.rights import Operation, on_cluster
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.names import DirectoryState, holds_whole_topic_name
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def _refused(
    ask: AlterReplicaLogDirsRequest, error_code: ErrorCode, _context: RequestContext
) -> AlterReplicaLogDirsResponse:
    """Answer for each topic once, in whatever directories its partitions were to lie."""
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in ask.dirs:
        for topic in directory.topics:
            topics.setdefault(topic.name, []).extend(
                AlterReplicaLogDirPartitionResult(partition_index=number, error_code=error_code)
                for number in topic.partitions
            )
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions))
            for name, partitions in topics.items()
        )
    )


@serves(
    AlterReplicaLogDirsRequest,
    "1-2",
    OfRequest(on_cluster(Operation.ALTER), refuse=_refused),
    cuts=(Cut("dirs.topics.partitions", "results.partitions"),),
)
def alter_replica_log_dirs(
    ask: AlterReplicaLogDirsRequest, context: BrokerContext
) -> AlterReplicaLogDirsResponse:
    """Answer every partition on its own."""
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in ask.dirs:
        for topic in directory.topics:
            for number in topic.partitions:
                results.setdefault(topic.name, []).append(
                    AlterReplicaLogDirPartitionResult(
                        partition_index=number,
                        error_code=_move(directory.path, topic.name, number, context),
                    )
                )
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions))
            for name, partitions in results.items()
        )
    )


def _move(path: str, topic: str, number: int, context: BrokerContext) -> ErrorCode:
    broker = context.broker
    if not holds_whole_topic_name(TopicPartition(topic, number), DirectoryState.FUTURE):
        # A restart in the middle of the move would not know whose log the copy is.
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path in broker.directories.offline_paths:
        return ErrorCode.KAFKA_STORAGE_ERROR
    target = next((one for one in broker.directories.online if one.path == path), None)
    if target is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if path in broker.directories.cordoned:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    partition = broker.partitions.find(topic, number)
    if partition is None:
        missing = broker.partitions.why_missing(topic, number)
        # This is what Kafka calls it here, for the sake of older clients.
        return ErrorCode.REPLICA_NOT_AVAILABLE if missing is ErrorCode.NOT_LEADER_OR_FOLLOWER else missing
    try:
        broker.log_moves.begin(partition, target)
    except LogDirectoryOffline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
