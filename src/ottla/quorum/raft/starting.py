"""Where a replica goes on when its node starts: by its log, and by what it promised before it stopped."""

from typing import TYPE_CHECKING

from ottla.quorum.quorum_state import QuorumState
from ottla.quorum.raft.election import Tally
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.states import NEVER, Candidate, Follower, Resigned, State, Unattached
from ottla.quorum.raft.voter_sets import ReplicaKey

if TYPE_CHECKING:
    from ottla.quorum.raft.replica import Replica


def read_control_records(replica: "Replica") -> None:
    """Learn from the latest snapshot and the log who votes."""
    latest = replica.log.snapshots.latest
    offset = replica.log.start_offset
    if latest is not None:
        replica.history.restart_from(latest.end_offset, replica.log.snapshots.read_quorum(latest))
        offset = latest.end_offset
    for batch in replica.log.control_batches(offset):
        replica.history.add(batch.base_offset, batch.records)


def initial_state(replica: "Replica", election: QuorumState, now: Moment) -> State:
    """Return the state in which a replica goes on that promised `election` before it stopped."""
    me = replica.settings.me
    deadline_ms = replica.election_deadline_ms(now) if replica.may_stand else NEVER
    voted = ReplicaKey(election.voted_id, election.voted_directory_id) if election.voted_id >= 0 else None
    epoch = election.leader_epoch
    if epoch < replica.log.last_epoch:
        return Unattached(replica.log.last_epoch, deadline_ms)
    if election.leader_id == me.node_id:
        # It led when it stopped. It must not vote in that epoch, nor lead it again: what it had appended
        # and not synced may be gone.
        others = [node_id for node_id in replica.voters.ids if node_id != me.node_id]
        deadline_ms = replica.election_deadline_ms(now)
        return Resigned(
            epoch, deadline_ms, me.node_id, others, leader_endpoints=replica.settings.endpoints, voted=voted
        )
    if election.leader_id >= 0:
        endpoints = replica.voters.endpoints_of(election.leader_id)
        if not endpoints:
            return Unattached(epoch, deadline_ms, election.leader_id, voted)
        fetch_ms = now.ms + replica.settings.fetch_timeout_ms
        return Follower(epoch, fetch_ms, election.leader_id, endpoints, update_ms=fetch_ms, voted=voted)
    if voted is not None and voted.covers(me) and replica.may_stand:
        tally = Tally(replica.voters)
        tally.record(me.node_id, is_granted=True)
        return Candidate(epoch, deadline_ms, tally, voted)
    return Unattached(epoch, deadline_ms, voted=voted)
