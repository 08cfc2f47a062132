"""What all requests and answers have in common: they tell of an epoch and of its leader."""

from typing import TYPE_CHECKING

from ottla.quorum.raft.messages import LeaderInfo
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.states import Follower, Leader, Prospective, Resigned, Unattached
from ottla.quorum.voters import Endpoint
from ottla.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.quorum.raft.replica import Replica


def hear_of(
    replica: "Replica", leader_id: int | None, epoch: int, endpoints: tuple[Endpoint, ...], now: Moment
) -> bool:
    """Go with an epoch and a leader that somebody told of. Returns False if they cannot be right."""
    if leader_id is not None and not endpoints:
        endpoints = replica.voters.endpoints_of(leader_id)
    if not _is_consistent(replica, leader_id, epoch):
        return replica.refuse(
            f"node {leader_id} is said to lead epoch {epoch}, but {replica.leader_id} leads {replica.epoch}"
        )
    if epoch < replica.epoch or (epoch == replica.epoch and leader_id is None):
        return True
    if leader_id is None:
        replica.become_unattached(epoch, now)
    elif epoch > replica.epoch or replica.state.leader_id is None or _knows_less(replica, endpoints):
        if leader_id == replica.settings.me.node_id:
            # It leads this epoch already.
            return True
        if not endpoints:
            if epoch > replica.epoch:
                replica.become_unattached(epoch, now)
            return replica.refuse(f"node {leader_id} leads epoch {epoch}, but nobody says where it listens")
        replica.become_follower(epoch, leader_id, endpoints, now)
    return True


def _knows_less(replica: "Replica", endpoints: tuple[Endpoint, ...]) -> bool:
    is_following = isinstance(replica.state, Follower | Unattached | Prospective)
    return is_following and len(endpoints) > len(replica.state.leader_endpoints)


def _is_consistent(replica: "Replica", leader_id: int | None, epoch: int) -> bool:
    if leader_id is not None and leader_id == replica.settings.me.node_id:
        leads = isinstance(replica.state, Leader | Resigned)
        return epoch < replica.epoch or (epoch == replica.epoch and leads)
    if epoch != replica.epoch or leader_id is None or replica.state.leader_id is None:
        return True
    return leader_id == replica.state.leader_id


def take_common(replica: "Replica", error: ErrorCode, told: LeaderInfo, now: Moment) -> bool | None:
    """Go with what an answer says about the leader. None: the rest of the answer counts as well."""
    leader_id, epoch, endpoints = told
    known_leader = leader_id if leader_id >= 0 else None
    if error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        # Who answers has not heard of this epoch yet.
        # Deviation: Kafka asks again at once, however often it gets the same answer.
        return False
    if epoch < replica.epoch:
        return True
    if epoch > replica.epoch or error in (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ):
        before = replica.state
        is_good = hear_of(replica, known_leader, epoch, endpoints, now)
        # Deviation: Kafka asks again at once, however often it gets the same answer.
        return is_good and (replica.state is not before or error is not ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if known_leader is not None and (replica.state.leader_id is None or _knows_less(replica, endpoints)):
        is_good = hear_of(replica, known_leader, epoch, endpoints, now)
        return None if is_good and error is ErrorCode.NONE else is_good
    if error is ErrorCode.BROKER_NOT_AVAILABLE:
        return False
    if error is ErrorCode.INVALID_VOTER_KEY:
        return True
    if not _is_consistent(replica, known_leader, epoch):
        return hear_of(replica, known_leader, epoch, endpoints, now)
    return None
