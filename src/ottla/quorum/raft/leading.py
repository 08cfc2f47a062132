"""What a leader does: append, count, tell the voters that it leads, and resign when it cannot."""

from typing import TYPE_CHECKING, Any

from ottla.model.ids import Offset
from ottla.quorum.raft import changes
from ottla.quorum.raft.effects import SyncLog
from ottla.quorum.raft.messages import begin_epoch_request, end_epoch_request
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.states import NEVER, Leader, Resigned
from ottla.quorum.raft.voter_sets import FORMAT_OFFSET, ReplicaKey
from ottla.wire.control_records import KRaftVersionRecord, LeaderChangeMessage, LeaderChangeVoter

if TYPE_CHECKING:
    from ottla.quorum.raft.replica import Replica


def first_records(replica: "Replica", granting: list[int]) -> tuple[Any, ...]:
    """Return the control records with which an epoch begins."""
    change = LeaderChangeMessage(
        version=0,
        leader_id=replica.settings.me.node_id,
        voters=tuple([LeaderChangeVoter(voter_id=node_id) for node_id in replica.voters.ids]),
        granting_voters=tuple([LeaderChangeVoter(voter_id=node_id) for node_id in granting]),
    )
    if not replica.history.is_dynamic:
        return (change,)
    me = replica.me_as_voter()
    # The snapshot of formatting is not sent to anybody, so the log has to say what it says.
    if replica.history.voters_offset != FORMAT_OFFSET and not replica.voters.differs(me):
        return (change,)
    voters = replica.voters.update(me) or replica.voters
    return (
        change,
        KRaftVersionRecord(version=0, kraft_version=replica.history.kraft_version),
        voters.record(),
    )


def append(replica: "Replica", leader: Leader, batch: bytearray, now: Moment) -> Offset:
    """Append a batch, ask for a sync, and let those have it who wait for records.

    The others may have it synced before the leader has. It counts itself only afterwards.
    """
    last_offset = replica.log.append_as_leader(batch, leader.epoch, now.wall_ms)
    replica.add(SyncLog())
    replica.parked.wake_all(replica)
    return last_offset


def note_synced(replica: "Replica", leader: Leader) -> None:
    """Count the leader's own log as far as it is synced."""
    leader.progress.synced(replica.log.synced_offset)
    maybe_commit(replica, leader)


def note_fetch(replica: "Replica", leader: Leader, key: ReplicaKey, offset: Offset, now: Moment) -> None:
    """Take note that a replica has synced everything below `offset`."""
    leader.progress.of(key).fetched(offset, replica.log.end_offset, now)
    note_alive(replica, leader, key, now)
    if leader.progress.is_voter(key):
        maybe_commit(replica, leader)


def note_alive(replica: "Replica", leader: Leader, key: ReplicaKey, now: Moment) -> None:
    """Take note that a replica follows. While a majority does, the leader need not resign."""
    if leader.progress.heard_from(key):
        leader.check_quorum_ms = replica.check_quorum_deadline_ms(now)


def maybe_commit(replica: "Replica", leader: Leader) -> None:
    """Move the high watermark to where a majority has come.

    A leader commits what others before it appended only together with a record of its own epoch. Otherwise
    one with a later epoch, but without these records, could still be elected.
    """
    committed = leader.progress.find_committed()
    if committed is None or committed <= leader.start_offset:
        return
    if leader.high_watermark is not None and committed <= leader.high_watermark:
        # It can seem to go back when voters are added. What was committed stays so.
        return
    leader.high_watermark = committed
    replica.move_high_watermark(committed)
    changes.note_committed(replica, leader, committed)
    replica.parked.wake_all(replica)


def poll_leader(replica: "Replica", leader: Leader, now: Moment) -> int:
    """Do what is due for a leader."""
    is_alone = len(leader.progress.voters) == 1
    check_quorum_ms = NEVER if is_alone else leader.check_quorum_ms
    if replica.stop_ms is not None or leader.is_resigning or now.ms >= check_quorum_ms:
        replica.become_resigned(leader, now)
        return now.ms
    change_ms = changes.expire(replica, leader, now)
    if now.ms >= leader.begin_epoch_ms:
        _send_begin_epoch(replica, leader, now)
    leader.progress.forget_silent_observers(now)
    return min(check_quorum_ms, change_ms, NEVER if is_alone else leader.begin_epoch_ms)


def _send_begin_epoch(replica: "Replica", leader: Leader, now: Moment) -> None:
    """Tell voters that have not fetched for a while who leads."""
    period_ms = replica.settings.fetch_timeout_ms // 2
    for key in leader.progress.silent_voters(now.ms - period_ms):
        destination = replica.destination_of(key.node_id, replica.voters.endpoints_of(key.node_id))
        if destination is not None and replica.connections.is_ready(key.node_id, now.ms):
            replica.send(destination, begin_epoch_request(replica.settings, key, leader.epoch), now)
    leader.begin_epoch_ms = now.ms + period_ms


def poll_resigned(replica: "Replica", resigned: Resigned, now: Moment) -> int:
    """Tell the voters, and after a while stand by for the next election."""
    if replica.stop_ms is None and now.ms >= resigned.deadline_ms:
        # In a later epoch, so that nobody takes this replica for the leader it was.
        replica.become_unattached(resigned.epoch + 1, now)
        return now.ms
    request = end_epoch_request(replica.settings, resigned.epoch, resigned.successors)
    wake_ms = resigned.deadline_ms if replica.stop_ms is None else NEVER
    for node_id in resigned.unacknowledged:
        destination = replica.destination_of(node_id, replica.voters.endpoints_of(node_id))
        if destination is None:
            continue
        if replica.connections.is_ready(node_id, now.ms):
            replica.send(destination, request, now)
        wake_ms = min(wake_ms, replica.connections.ready_ms(node_id, now.ms))
    return max(wake_ms, now.ms + 1)
