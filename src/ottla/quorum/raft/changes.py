"""Changes of the voters (KIP-853): AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, and kraft.version 0 to 1.

There is one change at a time, and each adds or removes one voter, so that every majority of the old set
shares a voter with every majority of the new one. A leader changes nothing before a record of its own epoch
is committed: a change that an earlier leader began may still be in somebody's log.
"""

from typing import TYPE_CHECKING, Any

from ottla.metadata.features import KRAFT_VERSION
from ottla.model.ids import Offset
from ottla.model.uuid import ZERO_UUID
from ottla.quorum.raft.effects import Destination, Inbound, Reply
from ottla.quorum.raft.messages import update_voter_response
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.states import NEVER, Leader, PendingAdd, PendingRemove
from ottla.quorum.raft.voter_sets import ReplicaKey, VoterSet, supports
from ottla.quorum.voters import STATIC, Endpoint
from ottla.wire.control_records import KRaftVersionFeature, KRaftVersionRecord, Voter, VoterEndpoint
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse

if TYPE_CHECKING:
    from ottla.quorum.raft.replica import Replica


class _Refusal(Exception):
    """Why a change is not made."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


# Adding.


def handle_add_voter(replica: "Replica", inbound: Inbound, now: Moment) -> AddRaftVoterResponse | None:
    """Begin to add a voter: ask it which levels of kraft.version it knows."""
    ask: AddRaftVoterRequest = inbound.request
    try:
        leader = _find_leader(replica, ask.cluster_id, replica.epoch)
        key = _key_in(ask, "add")
        endpoints = tuple([Endpoint(one.name, one.host, one.port) for one in ask.listeners])
        destination = _check_new(replica, leader, key, endpoints, now)
    except _Refusal as refusal:
        return AddRaftVoterResponse(error_code=refusal.error, error_message=refusal.message)
    # Kafka refuses one that does not say what asks.
    hello = ApiVersionsRequest(client_software_name="ottla-node", client_software_version="unknown")
    replica.send(destination, hello, now)
    deadline_ms = now.ms + replica.settings.request_timeout_ms
    leader.add = PendingAdd(inbound.token, key, endpoints, deadline_ms, ask.ack_when_committed)
    return None


def _check_new(
    replica: "Replica", leader: Leader, key: ReplicaKey, endpoints: tuple[Endpoint, ...], now: Moment
) -> Destination:
    destination = replica.destination_of(key.node_id, endpoints)
    if destination is None:
        raise _Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint for the default listener "
            f"{replica.settings.listener}",
        )
    _check_ready(replica, leader)
    if replica.voters.find(key.node_id) is not None:
        raise _Refusal(
            ErrorCode.DUPLICATE_VOTER,
            f"The voter id for {_name(key)} is already part of the set of voters {replica.voters.ids}.",
        )
    if not replica.connections.is_ready(key.node_id, now.ms):
        raise _Refusal(
            ErrorCode.REQUEST_TIMED_OUT, f"New voter {_name(key)} is not ready to receive requests"
        )
    return destination


def take_api_versions(
    replica: "Replica", source: Destination, response: ApiVersionsResponse, now: Moment
) -> bool:
    """Add the voter if it knows the level in force and has caught up. Nobody waits until it has."""
    leader = replica.state
    if not isinstance(leader, Leader) or leader.add is None:
        return True
    pending = leader.add
    if pending.last_offset is not None or pending.key.node_id != source.node_id:
        return True
    if response.error_code is not ErrorCode.NONE:
        text = f"Aborted add voter operation since API_VERSIONS returned an error {response.error_code.name}"
        _end_add(replica, leader, ErrorCode.REQUEST_TIMED_OUT, text)
        return False
    found = [one for one in response.supported_features if one.name == KRAFT_VERSION]
    levels = KRaftVersionFeature(
        min_supported_version=found[0].min_version if found else 0,
        max_supported_version=found[0].max_version if found else 0,
    )
    level = replica.history.kraft_version
    if not supports(levels, level):
        text = (
            f"Aborted add voter operation for {_name(pending.key)} since the {KRAFT_VERSION} range (min: "
            f"{levels.min_supported_version}, max: {levels.max_supported_version}) doesn't support the "
            f"finalized version {level}"
        )
        _end_add(replica, leader, ErrorCode.INVALID_REQUEST, text)
        return True
    if not leader.progress.is_caught_up(pending.key, now):
        text = f"Aborted add voter operation for {_name(pending.key)} since it is lagging behind"
        _end_add(replica, leader, ErrorCode.REQUEST_TIMED_OUT, text)
        return True
    voters = replica.voters.add(_describe(pending.key, pending.endpoints, levels))
    assert voters is not None, "no other change was made meanwhile"
    pending.last_offset = replica.append_control(leader, (voters.record(),), now)
    if not pending.is_acked_when_committed:
        _answer_add(replica, pending, ErrorCode.NONE)
    return True


# Removing.


def handle_remove_voter(replica: "Replica", inbound: Inbound, now: Moment) -> RemoveRaftVoterResponse | None:
    """Remove a voter. It is answered when the remaining ones have committed that."""
    ask: RemoveRaftVoterRequest = inbound.request
    try:
        leader = _find_leader(replica, ask.cluster_id, replica.epoch)
        key = _key_in(ask, "remove")
        _check_ready(replica, leader)
        voters = _without(replica.voters, key)
    except _Refusal as refusal:
        return RemoveRaftVoterResponse(error_code=refusal.error, error_message=refusal.message)
    last_offset = replica.append_control(leader, (voters.record(),), now)
    deadline_ms = now.ms + replica.settings.request_timeout_ms
    leader.remove = PendingRemove(inbound.token, deadline_ms, last_offset)
    return None


def _without(voters: VoterSet, key: ReplicaKey) -> VoterSet:
    left = voters.remove(key)
    if left is None:
        text = f"Cannot remove voter {_name(key)} from the set of voters {voters.ids}"
        raise _Refusal(ErrorCode.VOTER_NOT_FOUND, text)
    return left


# Updating.


def handle_update_voter(replica: "Replica", inbound: Inbound, now: Moment) -> UpdateRaftVoterResponse:
    """Let a voter be known by other endpoints or levels. In a static quorum only this leader remembers it."""
    ask: UpdateRaftVoterRequest = inbound.request
    error = ErrorCode.NONE
    try:
        leader = _find_leader(replica, ask.cluster_id, ask.current_leader_epoch)
        _update(replica, leader, ask, now)
    except _Refusal as refusal:
        error = refusal.error
    return update_voter_response(replica.leader_info(inbound.listener), error)


def _update(replica: "Replica", leader: Leader, ask: UpdateRaftVoterRequest, now: Moment) -> None:
    key = _key_in(ask, "update")
    endpoints = tuple([Endpoint(one.name, one.host, one.port) for one in ask.listeners])
    known = ask.kraft_version_feature
    levels = KRaftVersionFeature(
        min_supported_version=known.min_supported_version, max_supported_version=known.max_supported_version
    )
    if (
        replica.destination_of(key.node_id, endpoints) is None
        or not 0 <= levels.min_supported_version <= levels.max_supported_version
    ):
        raise _Refusal(ErrorCode.INVALID_REQUEST)
    is_dynamic = replica.history.is_dynamic
    _check_ready(replica, leader, is_static_fine=True)
    if not supports(levels, replica.history.kraft_version):
        raise _Refusal(ErrorCode.INVALID_REQUEST)
    voter = _describe(key, endpoints, levels)
    before = replica.voters if is_dynamic else leader.volatile_voters or replica.voters
    voters = before.update(voter, ignores_directory=not is_dynamic)
    if voters is None:
        raise _Refusal(ErrorCode.VOTER_NOT_FOUND)
    if is_dynamic:
        replica.append_control(leader, (voters.record(),), now)
    else:
        leader.volatile_voters = voters
    if leader.progress.heard_from(key):
        leader.check_quorum_ms = replica.check_quorum_deadline_ms(now)


# From a static quorum to a dynamic one.


def upgrade(
    replica: "Replica", epoch: int, kraft_version: int, now: Moment, validates_only: bool
) -> tuple[ErrorCode, str | None]:
    """Raise kraft.version. From then on records say who the voters are."""
    try:
        leader = _find_leader(replica, None, epoch)
        if kraft_version == replica.history.kraft_version:
            return ErrorCode.NONE, None
        voters = _find_upgraded(replica, leader, kraft_version)
    except _Refusal as refusal:
        return refusal.error, refusal.message
    if not validates_only:
        version = KRaftVersionRecord(version=0, kraft_version=kraft_version)
        replica.append_control(leader, (version, voters.record()), now)
    return ErrorCode.NONE, None


def _find_upgraded(replica: "Replica", leader: Leader, kraft_version: int) -> VoterSet:
    if kraft_version < replica.history.kraft_version:
        raise _Refusal(ErrorCode.INVALID_UPDATE_VERSION, f"{KRAFT_VERSION} cannot be lowered")
    if leader.high_watermark is None:
        raise _Refusal(ErrorCode.REQUEST_TIMED_OUT, "the leader has committed nothing yet")
    voters = leader.volatile_voters or replica.voters
    silent = [key.node_id for key in voters.keys if key.directory_id == ZERO_UUID]
    if silent or voters.ids != replica.voters.ids:
        raise _Refusal(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"the directory ids of voters {silent} are not known: they have not talked to this leader yet",
        )
    if not voters.supports(kraft_version):
        raise _Refusal(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid upgrade of {KRAFT_VERSION} to {kraft_version} because not all of the voters support it",
        )
    return voters


# The end of changes.


def note_committed(replica: "Replica", leader: Leader, committed: Offset) -> None:
    """Answer those whose change is committed. A leader that is no voter any more has led long enough."""
    add, remove = leader.add, leader.remove
    if add is not None and add.last_offset is not None and committed > add.last_offset:
        _end_add(replica, leader, ErrorCode.NONE, None)
    if remove is not None and committed > remove.last_offset:
        leader.remove = None
        replica.add(Reply(remove.token, RemoveRaftVoterResponse(error_message=None)))
    voters_offset = replica.history.voters_offset
    if not leader.progress.counts_me and voters_offset is not None and committed > voters_offset:
        leader.is_resigning = True


def expire(replica: "Replica", leader: Leader, now: Moment) -> int:
    """Answer those whose change takes too long. It may still be committed. Returns when to look again."""
    text = "Request timed out waiting for voters to commit the latest voter change"
    if leader.add is not None and now.ms >= leader.add.deadline_ms:
        _end_add(replica, leader, ErrorCode.REQUEST_TIMED_OUT, text)
    if leader.remove is not None and now.ms >= leader.remove.deadline_ms:
        _end_remove(replica, leader, ErrorCode.REQUEST_TIMED_OUT, text)
    pending = [change.deadline_ms for change in (leader.add, leader.remove) if change is not None]
    return min(pending, default=NEVER)


def give_up(replica: "Replica", leader: Leader) -> None:
    """Answer those whose change is left to the next leader."""
    _end_add(replica, leader, ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
    _end_remove(replica, leader, ErrorCode.NOT_LEADER_OR_FOLLOWER, None)


def _end_add(replica: "Replica", leader: Leader, error: ErrorCode, message: str | None) -> None:
    pending, leader.add = leader.add, None
    # Who did not want to wait for the commit was answered when the voter was in the log.
    if pending is not None and (pending.is_acked_when_committed or pending.last_offset is None):
        _answer_add(replica, pending, error, message)


def _answer_add(
    replica: "Replica", pending: PendingAdd, error: ErrorCode, message: str | None = None
) -> None:
    replica.add(Reply(pending.token, AddRaftVoterResponse(error_code=error, error_message=message)))


def _end_remove(replica: "Replica", leader: Leader, error: ErrorCode, message: str | None) -> None:
    pending, leader.remove = leader.remove, None
    if pending is not None:
        response = RemoveRaftVoterResponse(error_code=error, error_message=message)
        replica.add(Reply(pending.token, response))


# What is checked.


def _find_leader(replica: "Replica", cluster_id: str | None, epoch: int) -> Leader:
    if not replica.is_of_cluster(cluster_id):
        raise _Refusal(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "{cluster_id}" doesn\'t match the cluster id "{replica.settings.cluster_id}"',
        )
    error = replica.find_leader_error(epoch)
    if error is not None:
        raise _Refusal(error)
    assert isinstance(replica.state, Leader), "there was no error"
    return replica.state


def _key_in(ask: Any, verb: str) -> ReplicaKey:
    """Return the voter that a request names. In a dynamic quorum that needs a directory."""
    if ask.voter_id < 0 or ask.voter_directory_id == ZERO_UUID:
        text = f"{verb.capitalize()} voter request didn't include a valid voter"
        raise _Refusal(ErrorCode.INVALID_REQUEST, text)
    return ReplicaKey(ask.voter_id, ask.voter_directory_id)


def _check_ready(replica: "Replica", leader: Leader, *, is_static_fine: bool = False) -> None:
    """See that no other change is under way, also none that an earlier leader may have begun."""
    if leader.add is not None or leader.remove is not None:
        raise _Refusal(
            ErrorCode.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to handle previous voter change request",
        )
    committed = leader.high_watermark
    if committed is None:
        raise _Refusal(
            ErrorCode.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to establish HWM and fence previous voter changes",
        )
    if not replica.history.is_dynamic:
        if is_static_fine:
            return
        raise _Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Cluster doesn't support changing voters because the {KRAFT_VERSION} feature is {STATIC}",
        )
    offset = replica.history.voters_offset
    if offset is None or offset >= committed:
        raise _Refusal(
            ErrorCode.REQUEST_TIMED_OUT,
            f"Request timed out waiting for voters to commit the latest voter change at {offset} with HWM "
            f"{committed}",
        )


def _describe(key: ReplicaKey, endpoints: tuple[Endpoint, ...], levels: KRaftVersionFeature) -> Voter:
    return Voter(
        voter_id=key.node_id,
        voter_directory_id=key.directory_id,
        endpoints=tuple([VoterEndpoint(name=name, host=host, port=port) for name, host, port in endpoints]),
        kraft_version_feature=levels,
    )


def _name(key: ReplicaKey) -> str:
    return f"{key.node_id} with directory {key.directory_id}"
