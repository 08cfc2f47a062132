"""DescribeQuorum: who votes on the metadata, and how far each has come."""

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.quorum.quorum_protocols import RecordWriter
from ottla.storage.names import METADATA_PARTITION
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_quorum import (
    DIRECTORIES_FROM,
    DescribeQuorumPartitionResult,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopicResult,
    Listener,
    Node,
    ReplicaState,
)


def describe_quorum(
    leader: RecordWriter, ask: DescribeQuorumRequest, version: int, now_ms: int
) -> DescribeQuorumResponse:
    """Describe the quorum of one. Any other partition than that of the metadata is not known.

    Directory ids and addresses are told from version 2 on.
    """
    directory_id = leader.me.directory_id if version >= DIRECTORIES_FROM else ZERO_UUID
    topics = tuple(
        DescribeQuorumTopicResult(
            topic_name=topic.topic_name,
            partitions=tuple(
                _describe(leader, topic.topic_name, partition.partition_index, directory_id, now_ms)
                for partition in topic.partitions
            ),
        )
        for topic in ask.topics
    )
    errors = {partition.error_code for topic in topics for partition in topic.partitions}
    tells_nodes = version >= DIRECTORIES_FROM and errors == {ErrorCode.NONE}
    nodes = _nodes(leader) if tells_nodes else ()
    return DescribeQuorumResponse(error_message="", topics=topics, nodes=nodes)


def _describe(
    leader: RecordWriter, topic: str, partition: int, directory_id: Uuid, now_ms: int
) -> DescribeQuorumPartitionResult:
    if (topic, partition) != METADATA_PARTITION:
        return DescribeQuorumPartitionResult(
            partition_index=partition,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message="This server does not host this topic-partition.",
            leader_id=0,
            leader_epoch=0,
            high_watermark=0,
            current_voters=(),
            observers=(),
        )
    me = ReplicaState(
        replica_id=leader.me.node_id,
        replica_directory_id=directory_id,
        log_end_offset=leader.log_end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return DescribeQuorumPartitionResult(
        partition_index=partition,
        error_message="",
        leader_id=leader.me.node_id,
        leader_epoch=leader.epoch,
        high_watermark=leader.high_watermark,
        current_voters=(me,),
        observers=(),
    )


def _nodes(leader: RecordWriter) -> tuple[Node, ...]:
    endpoint = leader.me.endpoint
    listener = Listener(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
    return (Node(node_id=leader.me.node_id, listeners=(listener,)),)
