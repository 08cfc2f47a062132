"""DescribeQuorum: who votes on the metadata, who follows, and how far each has come."""

from typing import TYPE_CHECKING, Final

from ottla.model.uuid import ZERO_UUID
from ottla.quorum.raft.effects import Inbound
from ottla.quorum.raft.messages import PARTITION, TOPIC, find_partition
from ottla.quorum.raft.progress import ReplicaProgress
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.states import Leader
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumPartitionResult,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopicResult,
    Listener,
    Node,
    ReplicaState,
)

if TYPE_CHECKING:
    from ottla.quorum.raft.replica import Replica

_DIRECTORIES_FROM: Final = 2


def handle_describe(replica: "Replica", inbound: Inbound, now: Moment) -> DescribeQuorumResponse:
    """Describe the quorum as its leader sees it."""
    ask: DescribeQuorumRequest = inbound.request
    if find_partition(ask.topics) is None:
        topics = tuple(
            [
                DescribeQuorumTopicResult(
                    topic_name=topic.topic_name,
                    partitions=tuple(
                        [
                            _error(
                                one.partition_index,
                                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                                "This server does not host this topic-partition.",
                            )
                            for one in topic.partitions
                        ]
                    ),
                )
                for topic in ask.topics
            ]
        )
        return DescribeQuorumResponse(error_message="", topics=topics)
    leader = replica.state
    if not isinstance(leader, Leader):
        text = (
            "For requests intended only for the leader, this error indicates that the broker is not the "
            "current leader. For requests intended for any replica, this error indicates that the broker is "
            "not a replica of the topic partition."
        )
        refusal = _error(PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
        topic = DescribeQuorumTopicResult(topic_name=TOPIC, partitions=(refusal,))
        return DescribeQuorumResponse(error_message="", topics=(topic,))
    tells_directories = inbound.version >= _DIRECTORIES_FROM
    partition = _describe(replica, leader, now, tells_directories)
    topic = DescribeQuorumTopicResult(topic_name=TOPIC, partitions=(partition,))
    nodes = _nodes(replica) if tells_directories else ()
    return DescribeQuorumResponse(error_message="", topics=(topic,), nodes=nodes)


def _error(partition: int, error: ErrorCode, message: str) -> DescribeQuorumPartitionResult:
    return DescribeQuorumPartitionResult(
        partition_index=partition,
        error_code=error,
        error_message=message,
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=(),
        observers=(),
    )


def _describe(
    replica: "Replica", leader: Leader, now: Moment, tells_directories: bool
) -> DescribeQuorumPartitionResult:
    progress = leader.progress
    progress.forget_silent_observers(now)

    def state_of(one: ReplicaProgress) -> ReplicaState:
        is_me = one.key.covers(replica.settings.me)
        # A follower may have synced what the leader has only written: the leader is not behind it for that.
        end_offset = replica.log.end_offset if is_me else one.end_offset
        return ReplicaState(
            replica_id=one.key.node_id,
            replica_directory_id=one.key.directory_id if tells_directories else ZERO_UUID,
            log_end_offset=-1 if end_offset is None else end_offset,
            last_fetch_timestamp=now.wall_ms if is_me else one.last_fetch.wall_ms,
            last_caught_up_timestamp=now.wall_ms if is_me else one.last_caught_up.wall_ms,
        )

    return DescribeQuorumPartitionResult(
        partition_index=PARTITION,
        error_message="",
        leader_id=leader.leader_id,
        leader_epoch=leader.epoch,
        high_watermark=-1 if leader.high_watermark is None else leader.high_watermark,
        current_voters=tuple([state_of(one) for one in progress.voters.values()]),
        observers=tuple([state_of(one) for one in progress.observers.values()]),
    )


def _nodes(replica: "Replica") -> tuple[Node, ...]:
    return tuple(
        [
            Node(
                node_id=voter.voter_id,
                listeners=tuple(
                    [Listener(name=one.name, host=one.host, port=one.port) for one in voter.endpoints]
                ),
            )
            for voter in replica.voters.voters
        ]
    )
