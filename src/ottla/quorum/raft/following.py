"""What a follower does: fetch records and snapshots from the leader, or look for a leader.

It fetches on only from what it has synced, because the leader takes the offset of a fetch for what survives a
power cut. A node that can never vote need not sync.
"""

from typing import TYPE_CHECKING, Any

from ottla.model.ids import Offset
from ottla.quorum.raft import abstaining
from ottla.quorum.raft.effects import Destination, LogTruncated, SnapshotLoaded, SyncLog
from ottla.quorum.raft.hearing import take_common
from ottla.quorum.raft.messages import (
    LeaderInfo,
    add_voter_request,
    endpoints_in,
    fetch_request,
    fetch_snapshot_request,
    find_partition,
    remove_voter_request,
    update_voter_request,
)
from ottla.quorum.raft.metadata_log import BadRecords, CommittedLost, OffsetAndEpoch
from ottla.quorum.raft.servers import pick_bootstrap_server, servers
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.snapshot_files import BadSnapshot, Download
from ottla.quorum.raft.states import NEVER, Follower, Unattached
from ottla.quorum.raft.voter_sets import key_of
from ottla.quorum.snapshot_file import FORMAT_SNAPSHOT, SnapshotId
from ottla.quorum.voters import Endpoint
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchResponse, PartitionData
from ottla.wire.messages.fetch_snapshot import FetchSnapshotPartitionResult, FetchSnapshotResponse
from ottla.wire.messages.update_raft_voter import UpdateRaftVoterResponse

if TYPE_CHECKING:
    from ottla.quorum.raft.replica import Replica

_NOTHING_TO_SAY = (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION)
_ANSWERED = (
    ErrorCode.NONE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.DUPLICATE_VOTER,
    ErrorCode.VOTER_NOT_FOUND,
)


def poll_unattached(replica: "Replica", state: Unattached, now: Moment) -> int:
    """Ask around for the leader. A voter stands for election after a while."""
    if replica.stop_ms is not None:
        return NEVER
    may_stand = replica.may_stand
    if may_stand and now.ms >= state.deadline_ms:
        replica.become_prospective(now)
        return now.ms
    wake_ms = state.deadline_ms if may_stand else NEVER
    return min(wake_ms, NEVER if _must_sync_first(replica) else _ask_bootstrap_server(replica, now))


def poll_follower(replica: "Replica", state: Follower, now: Moment) -> int:
    """Fetch. A voter that could not for a while stands for election."""
    if replica.stop_ms is not None:
        return NEVER
    may_stand = replica.may_stand
    if may_stand and now.ms >= state.deadline_ms:
        replica.become_prospective(now)
        return now.ms
    wake_ms = min(state.deadline_ms if may_stand else NEVER, _maybe_send_change(replica, state, now))
    if not _must_sync_first(replica):
        wake_ms = min(wake_ms, _fetch_from_best(replica, state, now))
    return max(wake_ms, now.ms + 1)


def _must_sync_first(replica: "Replica") -> bool:
    counts = replica.is_voter or replica.settings.can_become_voter
    return counts and replica.log.synced_offset < replica.log.end_offset


def _fetch_from_best(replica: "Replica", state: Follower, now: Moment) -> int:
    """Fetch from the leader; while that does not work, ask others whether there is a new one."""
    connections = replica.connections
    leader = replica.destination_of(state.leader_id, state.leader_endpoints)
    if leader is None:
        return _ask_bootstrap_server(replica, now)
    if connections.has_timed_out(leader.node_id, now.ms):
        connections.forget(leader.node_id)
        return _ask_bootstrap_server(replica, now)
    if connections.is_backing_off(leader.node_id, now.ms):
        return min(_ask_bootstrap_server(replica, now), connections.ready_ms(leader.node_id, now.ms))
    under_way_ms = connections.find_under_way(now.ms)
    if under_way_ms is not None:
        return under_way_ms
    replica.send(leader, _next_request(replica, state), now)
    return connections.ready_ms(leader.node_id, now.ms)


def _next_request(replica: "Replica", state: Follower) -> Any:
    settings = replica.settings
    if state.download is not None:
        return fetch_snapshot_request(settings, state.epoch, state.download.id, state.download.position)
    return fetch_request(settings, state.epoch, replica.log.end, replica.high_watermark)


def _ask_bootstrap_server(replica: "Replica", now: Moment) -> int:
    """Send a fetch to anybody, who will answer with the leader. Returns when to try again."""
    connections = replica.connections
    under_way_ms = connections.find_under_way(now.ms)
    if under_way_ms is not None:
        return under_way_ms
    server = pick_bootstrap_server(replica, now)
    if server is None:
        return min([connections.ready_ms(one.node_id, now.ms) for one in servers(replica)], default=NEVER)
    request = fetch_request(replica.settings, replica.epoch, replica.log.end, replica.high_watermark)
    replica.send(server, request, now)
    # It may never be answered.
    return connections.ready_ms(server.node_id, now.ms)


# Answers to fetches.


def take_fetch(replica: "Replica", source: Destination, response: FetchResponse, now: Moment) -> bool:
    """Append what the leader sent, or do what it asks for. Returns whether the answer was of use."""
    data: PartitionData | None = _open(replica, source, response, response.responses)
    if response.error_code is ErrorCode.BROKER_NOT_AVAILABLE:
        _note_gone(replica, source, now)
    if data is None:
        return False
    leader = data.current_leader
    handled = _take_common(replica, response, data.error_code, leader.leader_id, leader.leader_epoch, now)
    if handled is not None:
        return handled
    state = replica.state
    if data.error_code is not ErrorCode.NONE or not isinstance(state, Follower):
        return replica.refuse(f"node {source.node_id} answers {data.error_code.name} to a fetch")
    if data.diverging_epoch.epoch >= 0:
        end = OffsetAndEpoch(Offset(data.diverging_epoch.end_offset), data.diverging_epoch.epoch)
        _truncate(replica, end, now)
        is_good = True
    elif data.snapshot_id.epoch >= 0 or data.snapshot_id.end_offset >= 0:
        snapshot_id = SnapshotId(Offset(data.snapshot_id.end_offset), data.snapshot_id.epoch)
        is_good = _begin_download(replica, state, snapshot_id)
    else:
        records = bytes(data.records or b"")
        is_good = _append(replica, records, data.high_watermark, now)
        abstaining.note_answer(replica, records)
    # Deviation: Kafka takes any answer without an error for a sign that the leader does its work.
    return is_good and _fetched(replica, state, now)


def _fetched(replica: "Replica", state: Follower, now: Moment) -> bool:
    """Take note that the leader is there."""
    state.has_fetched, state.is_leader_gone = True, False
    state.deadline_ms = now.ms + replica.settings.fetch_timeout_ms
    return True


def _note_gone(replica: "Replica", source: Destination, now: Moment) -> None:
    """Take note that nobody listens where the leader did: its process has ended.

    Deviation: Kafka waits for a fetch timeout all the same.
    """
    state = replica.state
    if isinstance(state, Follower) and state.leader_id == source.node_id and not state.is_leader_gone:
        state.is_leader_gone, state.has_fetched = True, False
        state.deadline_ms = min(state.deadline_ms, replica.soon_ms(now))


def _append(replica: "Replica", records: bytes, high_watermark: int, now: Moment) -> bool:
    if records:
        # The leader may just have been found, by this very answer. Its records come after it.
        replica.persist()
        try:
            control = replica.log.append_as_follower(records, replica.epoch, now.wall_ms)
        except BadRecords as error:
            return replica.refuse(
                f"the leader {replica.leader_id} sent records that cannot be appended: {error}"
            )
        for batch in control:
            replica.history.add(batch.base_offset, batch.records)
        if _must_sync_first(replica):
            replica.add(SyncLog())
    if high_watermark >= 0:
        replica.move_high_watermark(min(Offset(high_watermark), replica.log.end_offset))
    return True


def _truncate(replica: "Replica", diverging: OffsetAndEpoch, now: Moment) -> None:
    """Cut off what the leader does not have. What is committed it has."""
    offset = replica.log.find_truncation(diverging)
    committed = replica.high_watermark
    if committed is not None and min(offset, diverging.offset) < committed:
        raise CommittedLost(
            f"the leader {replica.leader_id} of epoch {replica.epoch} has no records from {offset} on, but "
            f"everything below {committed} is committed"
        )
    replica.log.truncate_to(offset, now.wall_ms)
    replica.history.truncate_to(replica.log.end_offset)
    replica.add(LogTruncated(replica.log.end_offset))
    if _must_sync_first(replica):
        replica.add(SyncLog())


def _begin_download(replica: "Replica", state: Follower, snapshot_id: SnapshotId) -> bool:
    is_newer = snapshot_id != FORMAT_SNAPSHOT and replica.log.is_behind(snapshot_id)
    committed = replica.high_watermark
    is_possible = snapshot_id.epoch >= 0 and snapshot_id.epoch <= state.epoch
    if not is_newer or not is_possible or (committed is not None and snapshot_id.end_offset < committed):
        return replica.refuse(
            f"the leader {state.leader_id} wants {snapshot_id.file_name} to be loaded, which has nothing new"
        )
    state.download = replica.log.snapshots.download(snapshot_id)
    return True


def take_fetch_snapshot(
    replica: "Replica", source: Destination, response: FetchSnapshotResponse, now: Moment
) -> bool:
    """Take a piece of a snapshot. After the last one it replaces the log."""
    data: FetchSnapshotPartitionResult | None = _open(replica, source, response, response.topics)
    if data is None:
        return False
    leader = data.current_leader
    handled = _take_common(replica, response, data.error_code, leader.leader_id, leader.leader_epoch, now)
    if handled is not None:
        return handled
    state = replica.state
    if not isinstance(state, Follower) or state.download is None:
        return replica.refuse(f"node {source.node_id} sent a piece of a snapshot that nobody asked for")
    download = state.download
    if data.error_code in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
        # The leader has deleted it meanwhile, and has a newer one. The next fetch will tell.
        _drop(state)
        return _fetched(replica, state, now)
    if data.error_code is not ErrorCode.NONE:
        return replica.refuse(
            f"node {source.node_id} answers {data.error_code.name} to a fetch of a snapshot"
        )
    try:
        _check_id(download, SnapshotId(Offset(data.snapshot_id.end_offset), data.snapshot_id.epoch))
        bytes_max = replica.settings.fetch_snapshot_bytes_max
        if download.add(data.position, data.size, bytes(data.unaligned_records), bytes_max):
            _load(replica, state, download, now)
    except BadSnapshot as error:
        _drop(state)
        return replica.refuse(
            f"the snapshot {download.id.file_name} of node {source.node_id} is not good: {error}"
        )
    return _fetched(replica, state, now)


def _check_id(download: Download, snapshot_id: SnapshotId) -> None:
    if snapshot_id != download.id:
        raise BadSnapshot(f"a piece of {snapshot_id.file_name} came")


def _drop(state: Follower) -> None:
    if state.download is not None:
        state.download.drop()
        state.download = None


def _load(replica: "Replica", state: Follower, download: Download, now: Moment) -> None:
    """Go on from a snapshot that is complete."""
    snapshot = replica.log.restart_from(download, now.wall_ms)
    state.download = None
    replica.history.restart_from(download.id.end_offset, snapshot.quorum)
    replica.add(SnapshotLoaded(download.id))
    replica.move_high_watermark(download.id.end_offset)
    if _must_sync_first(replica):
        replica.add(SyncLog())


def _open(replica: "Replica", source: Destination, response: Any, topics: Any) -> Any | None:
    if response.error_code is not ErrorCode.NONE:
        if response.error_code not in _NOTHING_TO_SAY:
            replica.refuse(f"node {source.node_id} answers {response.error_code.name} to a fetch")
        return None
    data = find_partition(topics)
    if data is None:
        replica.refuse(f"node {source.node_id} answers a fetch with something that is not about the metadata")
    return data


def _take_common(
    replica: "Replica", response: Any, error: ErrorCode, leader_id: int, epoch: int, now: Moment
) -> bool | None:
    endpoints = endpoints_in(response, leader_id, replica.settings.listener)
    return take_common(replica, error, LeaderInfo(leader_id, epoch, endpoints), now)


# Telling the leader about itself.


def _maybe_send_change(replica: "Replica", state: Follower, now: Moment) -> int:
    """See now and then whether the voters are as they should be with regard to this node."""
    if now.ms < state.update_ms:
        return state.update_ms
    request = _find_change(replica, state)
    leader = replica.destination_of(state.leader_id, state.leader_endpoints)
    if request is not None and leader is not None:
        if not replica.connections.is_ready(leader.node_id, now.ms):
            return replica.connections.ready_ms(leader.node_id, now.ms)
        replica.send(leader, request, now)
    state.update_ms = now.ms + replica.settings.fetch_timeout_ms
    return state.update_ms


def _find_change(replica: "Replica", state: Follower) -> Any | None:
    """Return what to ask of the leader: to be known as it is, or to become a voter."""
    settings, voters = replica.settings, replica.voters
    if replica.abstains:
        return None
    if replica.is_voter:
        me = replica.me_as_voter()
        # In a static quorum no record says who the voters are: each new leader has to get them from us.
        is_needed = voters.differs(me) if replica.history.is_dynamic else not state.has_updated_leader
        return update_voter_request(settings, state.epoch, me) if is_needed else None
    if not (replica.history.is_dynamic and settings.can_become_voter and settings.auto_join):
        return None
    old = voters.find(settings.me.node_id)
    if old is not None:
        # The same node with another directory: what it had is lost.
        return remove_voter_request(settings, key_of(old))
    return add_voter_request(settings)


def take_update_voter(
    replica: "Replica", _source: Destination, response: UpdateRaftVoterResponse, now: Moment
) -> bool:
    """Take note that the leader knows this voter as it is."""
    leader = response.current_leader
    endpoints: tuple[Endpoint, ...] = ()
    if leader.leader_id >= 0 and leader.host:
        endpoints = (Endpoint(replica.settings.listener, leader.host, leader.port),)
    if response.error_code in _NOTHING_TO_SAY:
        return False
    told = LeaderInfo(leader.leader_id, leader.leader_epoch, endpoints)
    handled = take_common(replica, response.error_code, told, now)
    if handled is not None:
        return handled
    state = replica.state
    is_done = response.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
    if not is_done or not isinstance(state, Follower):
        return False
    state.has_updated_leader = True
    return _fetched(replica, state, now)


def take_add_or_remove_voter(replica: "Replica", source: Destination, response: Any, now: Moment) -> bool:
    """Wait for a while before asking again. Whether it worked will show in the log."""
    state = replica.state
    if response.error_code not in _ANSWERED or not isinstance(state, Follower):
        if response.error_code not in _NOTHING_TO_SAY:
            replica.refuse(
                f"node {source.node_id} answers {response.error_code.name} to a change of the voters: "
                f"{response.error_message}"
            )
        return False
    state.update_ms = now.ms + replica.settings.fetch_timeout_ms
    return True
