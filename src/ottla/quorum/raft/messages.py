"""The requests and responses of the quorum, all of which are about one partition: the metadata's.

An answer names the leader that is known, and from some version on where it can be reached.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.model.ids import Offset
from ottla.model.uuid import METADATA_TOPIC_ID
from ottla.quorum.raft.metadata_log import OffsetAndEpoch
from ottla.quorum.raft.settings import RaftSettings
from ottla.quorum.raft.voter_sets import ReplicaKey
from ottla.quorum.snapshot_file import SnapshotId
from ottla.quorum.voters import Endpoint
from ottla.storage.names import METADATA_PARTITION
from ottla.wire.control_records import Voter
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import (
    add_raft_voter,
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

TOPIC: Final = METADATA_PARTITION.topic
PARTITION: Final = METADATA_PARTITION.partition
_FETCH_ENDPOINTS_FROM: Final = 17
_ENDPOINTS_FROM: Final = 1


class LeaderInfo(NamedTuple):
    """What an answer tells about the leader. The endpoints are those of one listener: one, or none."""

    leader_id: int
    epoch: int
    endpoints: tuple[Endpoint, ...] = ()


def find_partition(topics: Sequence[Any]) -> Any | None:
    """Return what is said about the metadata partition, or None if anything else is said."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, partition = topics[0], topics[0].partitions[0]
    is_topic = topic.topic_id == METADATA_TOPIC_ID if hasattr(topic, "topic_id") else _name_of(topic) == TOPIC
    return partition if is_topic and _index_of(partition) == PARTITION else None


def _name_of(topic: Any) -> str:
    name: str = topic.topic_name if hasattr(topic, "topic_name") else topic.name
    return name


def _index_of(partition: Any) -> int:
    is_named_index = hasattr(partition, "partition_index")
    index: int = partition.partition_index if is_named_index else partition.partition
    return index


# Vote.


def vote_request(
    settings: RaftSettings, voter: ReplicaKey, epoch: int, end: OffsetAndEpoch, *, is_pre_vote: bool
) -> vote.VoteRequest:
    partition = vote.VotePartition(
        partition_index=PARTITION,
        replica_epoch=epoch,
        replica_id=settings.me.node_id,
        replica_directory_id=settings.me.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=end.epoch,
        last_offset=end.offset,
        pre_vote=is_pre_vote,
    )
    topic = vote.VoteTopic(topic_name=TOPIC, partitions=(partition,))
    return vote.VoteRequest(cluster_id=settings.cluster_id, voter_id=voter.node_id, topics=(topic,))


def vote_response(
    leader: LeaderInfo, version: int, error: ErrorCode, *, is_granted: bool = False
) -> vote.VoteResponse:
    partition = vote.VotePartitionResult(
        partition_index=PARTITION,
        error_code=error,
        leader_id=leader.leader_id,
        leader_epoch=leader.epoch,
        vote_granted=is_granted,
    )
    topic = vote.VoteTopicResult(topic_name=TOPIC, partitions=(partition,))
    return vote.VoteResponse(topics=(topic,), node_endpoints=_endpoints(vote.NodeEndpoint, leader, version))


# BeginQuorumEpoch.


def begin_epoch_request(
    settings: RaftSettings, voter: ReplicaKey, epoch: int
) -> begin_quorum_epoch.BeginQuorumEpochRequest:
    partition = begin_quorum_epoch.BeginEpochPartition(
        partition_index=PARTITION,
        voter_directory_id=voter.directory_id,
        leader_id=settings.me.node_id,
        leader_epoch=epoch,
    )
    topic = begin_quorum_epoch.BeginEpochTopic(topic_name=TOPIC, partitions=(partition,))
    return begin_quorum_epoch.BeginQuorumEpochRequest(
        cluster_id=settings.cluster_id,
        voter_id=voter.node_id,
        topics=(topic,),
        leader_endpoints=_listeners(begin_quorum_epoch.LeaderEndpoint, settings.endpoints),
    )


def begin_epoch_response(
    leader: LeaderInfo, version: int, error: ErrorCode
) -> begin_quorum_epoch.BeginQuorumEpochResponse:
    partition = begin_quorum_epoch.BeginEpochPartitionResult(
        partition_index=PARTITION,
        error_code=error,
        leader_id=leader.leader_id,
        leader_epoch=leader.epoch,
    )
    topic = begin_quorum_epoch.BeginEpochTopicResult(topic_name=TOPIC, partitions=(partition,))
    endpoints = _endpoints(begin_quorum_epoch.NodeEndpoint, leader, version)
    return begin_quorum_epoch.BeginQuorumEpochResponse(topics=(topic,), node_endpoints=endpoints)


# EndQuorumEpoch.


def end_epoch_request(
    settings: RaftSettings, epoch: int, successors: Sequence[ReplicaKey]
) -> end_quorum_epoch.EndQuorumEpochRequest:
    partition = end_quorum_epoch.EndEpochPartition(
        partition_index=PARTITION,
        leader_id=settings.me.node_id,
        leader_epoch=epoch,
        preferred_successors=tuple([key.node_id for key in successors]),
        preferred_candidates=tuple(
            [
                end_quorum_epoch.ReplicaInfo(
                    candidate_id=key.node_id, candidate_directory_id=key.directory_id
                )
                for key in successors
            ]
        ),
    )
    topic = end_quorum_epoch.EndEpochTopic(topic_name=TOPIC, partitions=(partition,))
    return end_quorum_epoch.EndQuorumEpochRequest(
        cluster_id=settings.cluster_id,
        topics=(topic,),
        leader_endpoints=_listeners(end_quorum_epoch.LeaderEndpoint, settings.endpoints),
    )


def end_epoch_response(
    leader: LeaderInfo, version: int, error: ErrorCode
) -> end_quorum_epoch.EndQuorumEpochResponse:
    partition = end_quorum_epoch.EndEpochPartitionResult(
        partition_index=PARTITION,
        error_code=error,
        leader_id=leader.leader_id,
        leader_epoch=leader.epoch,
    )
    topic = end_quorum_epoch.EndEpochTopicResult(topic_name=TOPIC, partitions=(partition,))
    endpoints = _endpoints(end_quorum_epoch.NodeEndpoint, leader, version)
    return end_quorum_epoch.EndQuorumEpochResponse(topics=(topic,), node_endpoints=endpoints)


# Fetch.


def fetch_request(
    settings: RaftSettings, epoch: int, end: OffsetAndEpoch, high_watermark: Offset | None
) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=epoch,
        fetch_offset=end.offset,
        last_fetched_epoch=end.epoch,
        partition_max_bytes=0,
        replica_directory_id=settings.me.directory_id,
        high_watermark=-1 if high_watermark is None else high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=settings.cluster_id,
        replica_state=fetch.ReplicaState(replica_id=settings.me.node_id),
        max_wait_ms=settings.fetch_wait_ms_max,
        min_bytes=0,
        max_bytes=settings.fetch_bytes_max,
        topics=(fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
    )


def fetch_response(leader: LeaderInfo, version: int, data: fetch.PartitionData) -> fetch.FetchResponse:
    topic = fetch.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(data,))
    tells = version >= _FETCH_ENDPOINTS_FROM
    endpoints = _endpoints(fetch.NodeEndpoint, leader, _ENDPOINTS_FROM) if tells else ()
    return fetch.FetchResponse(responses=(topic,), node_endpoints=endpoints)


def fetched_data(
    leader: LeaderInfo,
    error: ErrorCode,
    start_offset: Offset,
    high_watermark: Offset | None,
    records: bytes = b"",
    diverging: OffsetAndEpoch | None = None,
    snapshot_id: SnapshotId | None = None,
) -> fetch.PartitionData:
    """Return what a fetch says about the partition."""
    end = fetch.EpochEndOffset()
    if diverging is not None:
        end = fetch.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset)
    snapshot = fetch.SnapshotId()
    if snapshot_id is not None:
        snapshot = fetch.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
    return fetch.PartitionData(
        partition_index=PARTITION,
        error_code=error,
        high_watermark=-1 if high_watermark is None else high_watermark,
        log_start_offset=start_offset,
        diverging_epoch=end,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.epoch),
        snapshot_id=snapshot,
        aborted_transactions=(),
        records=memoryview(records),
    )


# FetchSnapshot.


def fetch_snapshot_request(
    settings: RaftSettings, epoch: int, snapshot_id: SnapshotId, position: int
) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.FetchSnapshotPartition(
        partition=PARTITION,
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        position=position,
        replica_directory_id=settings.me.directory_id,
    )
    return fetch_snapshot.FetchSnapshotRequest(
        cluster_id=settings.cluster_id,
        replica_id=settings.me.node_id,
        max_bytes=settings.fetch_snapshot_bytes_max,
        topics=(fetch_snapshot.FetchSnapshotTopic(name=TOPIC, partitions=(partition,)),),
    )


class Slice(NamedTuple):
    """A piece of a snapshot, as an answer gives it."""

    snapshot_id: SnapshotId
    size: int
    position: int
    piece: bytes


def fetch_snapshot_response(
    leader: LeaderInfo, version: int, error: ErrorCode, part: Slice | None = None
) -> fetch_snapshot.FetchSnapshotResponse:
    snapshot_id = SnapshotId(Offset(0), 0) if part is None else part.snapshot_id
    partition = fetch_snapshot.FetchSnapshotPartitionResult(
        partition_index=PARTITION,
        error_code=error,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.epoch),
        size=0 if part is None else part.size,
        position=0 if part is None else part.position,
        unaligned_records=memoryview(b"" if part is None else part.piece),
    )
    return fetch_snapshot.FetchSnapshotResponse(
        topics=(fetch_snapshot.FetchSnapshotTopicResult(name=TOPIC, partitions=(partition,)),),
        node_endpoints=_endpoints(fetch_snapshot.NodeEndpoint, leader, version),
    )


# Changes of voters.


def add_voter_request(settings: RaftSettings) -> add_raft_voter.AddRaftVoterRequest:
    return add_raft_voter.AddRaftVoterRequest(
        cluster_id=settings.cluster_id,
        timeout_ms=settings.request_timeout_ms,
        voter_id=settings.me.node_id,
        voter_directory_id=settings.me.directory_id,
        listeners=_listeners(add_raft_voter.Listener, settings.endpoints),
        ack_when_committed=False,
    )


def remove_voter_request(
    settings: RaftSettings, voter: ReplicaKey
) -> remove_raft_voter.RemoveRaftVoterRequest:
    return remove_raft_voter.RemoveRaftVoterRequest(
        cluster_id=settings.cluster_id, voter_id=voter.node_id, voter_directory_id=voter.directory_id
    )


def update_voter_request(
    settings: RaftSettings, epoch: int, me: Voter
) -> update_raft_voter.UpdateRaftVoterRequest:
    return update_raft_voter.UpdateRaftVoterRequest(
        cluster_id=settings.cluster_id,
        current_leader_epoch=epoch,
        voter_id=settings.me.node_id,
        voter_directory_id=settings.me.directory_id,
        listeners=_listeners(update_raft_voter.Listener, settings.endpoints),
        kraft_version_feature=update_raft_voter.KRaftVersionFeature(
            min_supported_version=me.kraft_version_feature.min_supported_version,
            max_supported_version=me.kraft_version_feature.max_supported_version,
        ),
    )


def update_voter_response(leader: LeaderInfo, error: ErrorCode) -> update_raft_voter.UpdateRaftVoterResponse:
    host, port = (leader.endpoints[0].host, leader.endpoints[0].port) if leader.endpoints else ("", 0)
    current = update_raft_voter.CurrentLeader(
        leader_id=leader.leader_id, leader_epoch=leader.epoch, host=host, port=port
    )
    return update_raft_voter.UpdateRaftVoterResponse(error_code=error, current_leader=current)


def refusal_of(request: Any, error: ErrorCode, message: str | None = None) -> Any:
    """Return an answer that says nothing but an error."""
    match request:
        case vote.VoteRequest():
            return vote.VoteResponse(error_code=error, topics=())
        case begin_quorum_epoch.BeginQuorumEpochRequest():
            return begin_quorum_epoch.BeginQuorumEpochResponse(error_code=error, topics=())
        case end_quorum_epoch.EndQuorumEpochRequest():
            return end_quorum_epoch.EndQuorumEpochResponse(error_code=error, topics=())
        case fetch.FetchRequest():
            return fetch.FetchResponse(error_code=error, responses=())
        case fetch_snapshot.FetchSnapshotRequest():
            return fetch_snapshot.FetchSnapshotResponse(error_code=error, topics=())
        case describe_quorum.DescribeQuorumRequest():
            return describe_quorum.DescribeQuorumResponse(error_code=error, error_message=message, topics=())
        case add_raft_voter.AddRaftVoterRequest():
            return add_raft_voter.AddRaftVoterResponse(error_code=error, error_message=message)
        case remove_raft_voter.RemoveRaftVoterRequest():
            return remove_raft_voter.RemoveRaftVoterResponse(error_code=error, error_message=message)
        case update_raft_voter.UpdateRaftVoterRequest():
            return update_raft_voter.UpdateRaftVoterResponse(error_code=error)
        case ApiVersionsRequest():
            return ApiVersionsResponse(error_code=error, api_keys=())
    raise AssertionError(f"{type(request).__name__} is no request of the quorum")


def endpoints_in(response: Any, leader_id: int, listener: str) -> tuple[Endpoint, ...]:
    """Return where an answer says that the leader can be reached."""
    for node in response.node_endpoints:
        if node.node_id == leader_id:
            return (Endpoint(listener, node.host, node.port),)
    return ()


def _endpoints(kind: Any, leader: LeaderInfo, version: int) -> tuple[Any, ...]:
    if version < _ENDPOINTS_FROM or leader.leader_id < 0:
        return ()
    return tuple(
        [
            kind(node_id=leader.leader_id, host=endpoint.host, port=endpoint.port)
            for endpoint in leader.endpoints[:1]
        ]
    )


def _listeners(kind: Any, endpoints: Sequence[Endpoint]) -> tuple[Any, ...]:
    return tuple([kind(name=name, host=host, port=port) for name, host, port in endpoints])
