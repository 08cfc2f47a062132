"""What the leader serves to its replicas: Fetch and FetchSnapshot.

A fetch says two things at once. It asks for records, and it tells the leader how far the replica's log is
synced. A fetch for which there is nothing new waits (`parked`).
"""

from typing import TYPE_CHECKING

from ottla.model.ids import Offset
from ottla.quorum.raft import leading
from ottla.quorum.raft.effects import Inbound
from ottla.quorum.raft.messages import (
    Slice,
    fetch_response,
    fetch_snapshot_response,
    fetched_data,
    find_partition,
)
from ottla.quorum.raft.metadata_log import Diverging, NeedsSnapshot
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.states import Leader
from ottla.quorum.raft.voter_sets import ReplicaKey
from ottla.quorum.snapshot_file import SnapshotId
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse
from ottla.wire.messages.fetch_snapshot import (
    FetchSnapshotPartition,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)

if TYPE_CHECKING:
    from ottla.quorum.raft.replica import Replica


def handle_fetch(replica: "Replica", inbound: Inbound, now: Moment) -> FetchResponse | None:
    """Answer a fetch, or let it wait."""
    ask: FetchRequest = inbound.request
    if not replica.is_of_cluster(ask.cluster_id):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, responses=())
    wanted: FetchPartition | None = find_partition(ask.topics)
    if wanted is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST, responses=())
    if (
        ask.max_wait_ms < 0
        or wanted.fetch_offset < 0
        or not 0 <= wanted.last_fetched_epoch <= wanted.current_leader_epoch
    ):
        return refuse_fetch(replica, inbound, ErrorCode.INVALID_REQUEST)
    error = replica.find_leader_error(wanted.current_leader_epoch)
    if error is not None:
        return refuse_fetch(replica, inbound, error)
    leader = replica.state
    assert isinstance(leader, Leader), "there was no error"
    key = replica_of(ask, wanted)
    if key.node_id == replica.settings.me.node_id:
        # Kafka answers the same to a replica that calls itself what its leader is called.
        return refuse_fetch(replica, inbound, ErrorCode.UNKNOWN_SERVER_ERROR)
    offset = Offset(wanted.fetch_offset)
    verdict = replica.log.validate(offset, wanted.last_fetched_epoch)
    is_valid = not isinstance(verdict, Diverging | NeedsSnapshot)
    if is_valid and key.node_id >= 0:
        leading.note_fetch(replica, leader, key, offset, now)
    has_news = offset < replica.log.end_offset or _moved(leader, wanted)
    if not is_valid or has_news or ask.max_wait_ms == 0 or replica.parked.is_full:
        return answer_fetch(replica, inbound)
    replica.parked.park(inbound, now.ms + ask.max_wait_ms)
    return None


def replica_of(ask: FetchRequest, wanted: FetchPartition) -> ReplicaKey:
    """Return who fetches. A negative id is nobody who counts."""
    node_id = ask.replica_id if ask.replica_id >= 0 else ask.replica_state.replica_id
    return ReplicaKey(node_id, wanted.replica_directory_id)


def _moved(leader: Leader, wanted: FetchPartition) -> bool:
    return leader.high_watermark is not None and wanted.high_watermark < leader.high_watermark


def answer_fetch(replica: "Replica", inbound: Inbound) -> FetchResponse:
    """Return what there is for a fetch that was found to be in order."""
    ask: FetchRequest = inbound.request
    wanted = ask.topics[0].partitions[0]
    leader = replica.state
    assert isinstance(leader, Leader), "who resigns answers all that wait"
    info = replica.leader_info(inbound.listener)
    offset = Offset(wanted.fetch_offset)
    verdict = replica.log.validate(offset, wanted.last_fetched_epoch)
    start = replica.log.start_offset
    match verdict:
        case Diverging(end):
            data = fetched_data(info, ErrorCode.NONE, start, leader.high_watermark, diverging=end)
        case NeedsSnapshot(snapshot_id):
            data = fetched_data(info, ErrorCode.NONE, start, leader.high_watermark, snapshot_id=snapshot_id)
        case _:
            records = replica.log.read(offset, max(ask.max_bytes, 0))
            data = fetched_data(info, ErrorCode.NONE, start, leader.high_watermark, records)
    return fetch_response(info, inbound.version, data)


def refuse_fetch(replica: "Replica", inbound: Inbound, error: ErrorCode) -> FetchResponse:
    """Return an error, and who leads as far as known."""
    info = replica.leader_info(inbound.listener)
    data = fetched_data(info, error, replica.log.start_offset, None)
    return fetch_response(info, inbound.version, data)


def handle_fetch_snapshot(replica: "Replica", inbound: Inbound, now: Moment) -> FetchSnapshotResponse:
    """Give a piece of a snapshot."""
    ask: FetchSnapshotRequest = inbound.request
    if not replica.is_of_cluster(ask.cluster_id):
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, topics=())
    wanted: FetchSnapshotPartition | None = find_partition(ask.topics)
    if wanted is None:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST, topics=())
    info = replica.leader_info(inbound.listener)
    error = replica.find_leader_error(wanted.current_leader_epoch)
    if error is not None:
        return fetch_snapshot_response(info, inbound.version, error)
    snapshots = replica.log.snapshots
    snapshot_id = SnapshotId(Offset(wanted.snapshot_id.end_offset), wanted.snapshot_id.epoch)
    size = snapshots.find_size(snapshot_id)
    if size is None:
        return fetch_snapshot_response(info, inbound.version, ErrorCode.SNAPSHOT_NOT_FOUND)
    if not 0 <= wanted.position < size:
        return fetch_snapshot_response(info, inbound.version, ErrorCode.POSITION_OUT_OF_RANGE)
    leader = replica.state
    assert isinstance(leader, Leader), "there was no error"
    leading.note_alive(replica, leader, ReplicaKey(ask.replica_id, wanted.replica_directory_id), now)
    length = min(max(ask.max_bytes, 0), replica.settings.fetch_snapshot_bytes_max)
    piece = snapshots.read_slice(snapshot_id, wanted.position, length)
    part = Slice(snapshot_id, size, wanted.position, piece)
    return fetch_snapshot_response(info, inbound.version, ErrorCode.NONE, part)
