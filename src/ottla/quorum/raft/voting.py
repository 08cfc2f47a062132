"""Elections: Vote, BeginQuorumEpoch and EndQuorumEpoch, as asked and as answered."""

from typing import TYPE_CHECKING, Any

from ottla.model.ids import Offset
from ottla.quorum.raft.effects import Destination, Inbound
from ottla.quorum.raft.election import may_vote
from ottla.quorum.raft.hearing import hear_of, take_common
from ottla.quorum.raft.messages import (
    LeaderInfo,
    begin_epoch_response,
    end_epoch_response,
    endpoints_in,
    find_partition,
    refusal_of,
    vote_request,
    vote_response,
)
from ottla.quorum.raft.metadata_log import OffsetAndEpoch
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.states import (
    NEVER,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from ottla.quorum.raft.voter_sets import ReplicaKey
from ottla.quorum.voters import Endpoint
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from ottla.wire.messages.end_quorum_epoch import EndEpochPartition, EndQuorumEpochResponse
from ottla.wire.messages.vote import VotePartition, VoteResponse

if TYPE_CHECKING:
    from ottla.quorum.raft.replica import Replica


def handle_vote(replica: "Replica", inbound: Inbound, now: Moment) -> VoteResponse:
    """Give the vote of an epoch, or say that it would be given (pre-vote)."""
    ask = inbound.request
    refusal, wanted = _open(replica, inbound)
    if refusal is not None:
        response: VoteResponse = refusal
        return response
    error = _find_vote_error(wanted) or _find_epoch_error(replica, wanted.replica_id, wanted.replica_epoch)
    if error is not None:
        return vote_response(replica.leader_info(inbound.listener), inbound.version, error)
    if wanted.replica_epoch > replica.epoch:
        replica.become_unattached(wanted.replica_epoch, now)
    if not _is_for_me(replica, ask.voter_id, wanted.voter_directory_id):
        info = replica.leader_info(inbound.listener)
        return vote_response(info, inbound.version, ErrorCode.INVALID_VOTER_KEY)
    candidate = ReplicaKey(wanted.replica_id, wanted.replica_directory_id)
    its_end = OffsetAndEpoch(Offset(wanted.last_offset), wanted.last_offset_epoch)
    is_up_to_date = its_end.is_at_least(replica.log.end)
    is_granted = _is_granted(replica, candidate, is_up_to_date, now, is_pre_vote=wanted.pre_vote)
    if is_granted and not wanted.pre_vote:
        replica.vote_for(candidate, now)
    info = replica.leader_info(inbound.listener)
    return vote_response(info, inbound.version, ErrorCode.NONE, is_granted=is_granted)


def _find_vote_error(wanted: VotePartition) -> ErrorCode | None:
    """Find what no candidate can say: its last record is older than the epoch in which it stands."""
    # In a pre-vote the epoch is the present one, of which there may be records already.
    last_epoch_max = wanted.replica_epoch if wanted.pre_vote else wanted.replica_epoch - 1
    is_possible = 0 <= wanted.last_offset_epoch <= last_epoch_max and wanted.last_offset >= 0
    return None if is_possible else ErrorCode.INVALID_REQUEST


def _is_granted(
    replica: "Replica", candidate: ReplicaKey, is_up_to_date: bool, now: Moment, *, is_pre_vote: bool
) -> bool:
    state = replica.state
    if candidate.node_id == replica.settings.me.node_id:
        # Another node has this one's id, or a message went round in a circle.
        return False
    if replica.abstains:
        return False
    match state:
        case Leader():
            return False
        case Follower():
            # Deviation: Kafka's follower that has fetched once refuses as long as it follows. One that does
            # not know yet that it votes, and so may not stand for election itself, would do so for ever.
            has_leader = state.has_fetched and now.ms < state.deadline_ms
            return is_pre_vote and is_up_to_date and not has_leader
        case Candidate() | Resigned():
            return is_pre_vote and is_up_to_date
        case Unattached() | Prospective():
            if is_pre_vote:
                return is_up_to_date
            return may_vote(state.voted, state.leader_id, candidate, is_up_to_date=is_up_to_date)


def take_vote(replica: "Replica", source: Destination, response: VoteResponse, now: Moment) -> bool:
    """Count a vote. Returns whether the answer was of use."""
    if response.error_code is ErrorCode.BROKER_NOT_AVAILABLE and isinstance(replica.state, Candidate):
        replica.state.tally.gone.add(source.node_id)
        _maybe_try_again(replica, now)
        return False
    if response.error_code is ErrorCode.UNSUPPORTED_VERSION and isinstance(replica.state, Prospective):
        # A voter is older than pre-votes. What it would do is only to be learned by asking for its vote.
        replica.become_candidate(now)
        return True
    result, handled = _take(replica, response, now)
    if result is None or handled is not None:
        return bool(handled)
    if result.error_code is not ErrorCode.NONE:
        return replica.refuse(
            f"node {source.node_id} answers {result.error_code.name} to a request for its vote"
        )
    if not result.vote_granted and _may_change_its_mind(replica, source):
        return False
    replica.count_vote(source.node_id, is_granted=result.vote_granted, now=now)
    _maybe_try_again(replica, now)
    return True


def _maybe_try_again(replica: "Replica", now: Moment) -> None:
    """Let a candidate that cannot win try again soon, if it lacks the votes of processes that have ended.

    Two have stood for election together, and the votes are split.

    Deviation: Kafka waits for the end of the election timeout.
    """
    state = replica.state
    if isinstance(state, Candidate) and state.tally.is_hopeless and not state.tries_again:
        state.tries_again = True
        state.deadline_ms = min(state.deadline_ms, replica.soon_ms(now))


def _may_change_its_mind(replica: "Replica", source: Destination) -> bool:
    """Say whether to ask a voter for its pre-vote again, after a back-off.

    It refuses as long as it believes in a leader whose process has ended. It will find that out within
    milliseconds, if this replica is right.

    Deviation: Kafka asks once, and then waits for the end of the election timeout.
    """
    state = replica.state
    if not isinstance(state, Prospective):
        return False
    if source.node_id == state.leader_id:
        # It answers, so its process is there after all.
        state.is_leader_gone = False
    return state.is_leader_gone


def handle_begin_epoch(replica: "Replica", inbound: Inbound, now: Moment) -> BeginQuorumEpochResponse:
    """Follow a leader that makes itself known."""
    ask = inbound.request
    refusal, wanted = _open(replica, inbound)
    if refusal is not None:
        response: BeginQuorumEpochResponse = refusal
        return response
    error = _find_epoch_error(replica, wanted.leader_id, wanted.leader_epoch)
    if error is None and not _follow(replica, wanted, ask.leader_endpoints, now):
        error = ErrorCode.INVALID_REQUEST
    if error is None and not _is_for_me(replica, ask.voter_id, wanted.voter_directory_id):
        error = ErrorCode.INVALID_VOTER_KEY
    info = replica.leader_info(inbound.listener)
    return begin_epoch_response(info, inbound.version, error or ErrorCode.NONE)


def take_begin_epoch(
    replica: "Replica", source: Destination, response: BeginQuorumEpochResponse, now: Moment
) -> bool:
    """Take note of what a voter says to a new leader. That it follows will show by its fetches."""
    result, handled = _take(replica, response, now)
    if result is None or handled is not None:
        return bool(handled)
    if result.error_code is not ErrorCode.NONE:
        return replica.refuse(f"node {source.node_id} answers {result.error_code.name} to a new leader")
    return True


def handle_end_epoch(replica: "Replica", inbound: Inbound, now: Moment) -> EndQuorumEpochResponse:
    """Prepare for an election, since the leader resigns: the first of its successors at once."""
    refusal, wanted = _open(replica, inbound)
    if refusal is not None:
        response: EndQuorumEpochResponse = refusal
        return response
    error = _find_epoch_error(replica, wanted.leader_id, wanted.leader_epoch)
    if error is None and not _follow(replica, wanted, inbound.request.leader_endpoints, now):
        error = ErrorCode.INVALID_REQUEST
    state = replica.state
    if error is None and isinstance(state, Follower) and state.leader_id == wanted.leader_id:
        state.deadline_ms = now.ms + _backoff_ms(replica, wanted)
        # Deviation: Kafka lets a follower that has fetched refuse pre-votes here too (KAFKA-20895), so that
        # the first successor of five may lack a majority. The leader has just said that it is none.
        state.has_fetched = False
    info = replica.leader_info(inbound.listener)
    return end_epoch_response(info, inbound.version, error or ErrorCode.NONE)


def _backoff_ms(replica: "Replica", wanted: EndEpochPartition) -> int:
    """Return how long to wait before standing for election, by the place among the successors."""
    candidates = [
        ReplicaKey(one.candidate_id, one.candidate_directory_id) for one in wanted.preferred_candidates
    ]
    if not candidates:
        candidates = [ReplicaKey(node_id) for node_id in wanted.preferred_successors]
    place = next(
        (at for at, key in enumerate(candidates) if key.covers(replica.settings.me)), len(candidates)
    )
    backoff_ms_max = replica.settings.election_backoff_max_ms
    if place == 0:
        # Who is the only one, and not even that, waits for nobody.
        return 0
    if place >= len(candidates):
        return backoff_ms_max
    base_ms = backoff_ms_max >> (len(candidates) - 1)
    return min(backoff_ms_max, base_ms << (place - 1))


def take_end_epoch(
    replica: "Replica", source: Destination, response: EndQuorumEpochResponse, now: Moment
) -> bool:
    """Take note that a voter knows of the resignation."""
    result, handled = _take(replica, response, now)
    if result is None or handled is not None:
        return bool(handled)
    if result.error_code is not ErrorCode.NONE:
        return replica.refuse(
            f"node {source.node_id} answers {result.error_code.name} to a leader that resigns"
        )
    if isinstance(replica.state, Resigned) and source.node_id in replica.state.unacknowledged:
        replica.state.unacknowledged.remove(source.node_id)
    return True


def poll_nominee(replica: "Replica", nominee: Prospective | Candidate, now: Moment) -> int:
    """Ask for votes as long as that can help."""
    is_stopping = replica.stop_ms is not None
    if not is_stopping and now.ms >= nominee.deadline_ms:
        if isinstance(nominee, Prospective):
            replica.lose_prospect(nominee, now)
        elif replica.may_stand:
            replica.become_prospective(now)
        else:
            replica.become_unattached(nominee.epoch + 1, now)
        return now.ms
    wake_ms = NEVER if is_stopping else nominee.deadline_ms
    if nominee.tally.is_lost:
        return wake_ms
    is_pre_vote = isinstance(nominee, Prospective)
    for key in nominee.tally.unrecorded():
        destination = replica.destination_of(key.node_id, nominee.tally.voters.endpoints_of(key.node_id))
        if destination is None:
            continue
        if replica.connections.is_ready(key.node_id, now.ms):
            request = vote_request(
                replica.settings, key, nominee.epoch, replica.log.end, is_pre_vote=is_pre_vote
            )
            replica.send(destination, request, now)
        wake_ms = min(wake_ms, replica.connections.ready_ms(key.node_id, now.ms))
    return max(wake_ms, now.ms + 1)


# What the three have in common.


def _open(replica: "Replica", inbound: Inbound) -> tuple[Any | None, Any]:
    """Return a refusal, or what a request says about the partition."""
    ask = inbound.request
    if not replica.is_of_cluster(ask.cluster_id):
        return refusal_of(ask, ErrorCode.INCONSISTENT_CLUSTER_ID), None
    wanted = find_partition(ask.topics)
    return (refusal_of(ask, ErrorCode.INVALID_REQUEST) if wanted is None else None), wanted


def _find_epoch_error(replica: "Replica", node_id: int, epoch: int) -> ErrorCode | None:
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if node_id < 0 else None


def _is_for_me(replica: "Replica", voter_id: int, directory_id: Any) -> bool:
    """Say whether a voter is meant that is this one. Old versions do not say who is meant."""
    return voter_id < 0 or ReplicaKey(voter_id, directory_id).covers(replica.settings.me)


def _follow(replica: "Replica", wanted: Any, listeners: Any, now: Moment) -> bool:
    endpoints = tuple([Endpoint(one.name, one.host, one.port) for one in listeners])
    return hear_of(replica, wanted.leader_id, wanted.leader_epoch, endpoints, now)


def _take(replica: "Replica", response: Any, now: Moment) -> tuple[Any | None, bool | None]:
    """Return what an answer says about the partition, and whether that has been dealt with already."""
    if response.error_code is not ErrorCode.NONE:
        if response.error_code not in (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION):
            replica.refuse(f"{type(response).__name__} says {response.error_code.name}")
        return None, False
    result = find_partition(response.topics)
    if result is None:
        return None, replica.refuse(f"{type(response).__name__} is not about the metadata")
    endpoints = endpoints_in(response, result.leader_id, replica.settings.listener)
    told = LeaderInfo(result.leader_id, result.leader_epoch, endpoints)
    handled = take_common(replica, result.error_code, told, now)
    return result, handled
