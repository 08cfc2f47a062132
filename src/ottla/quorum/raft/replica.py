"""One replica of the metadata quorum, a voter or an observer, as a state machine.

    replica = Replica(settings, log, store, chance)
    replica.load(wall_ms)
    effects = replica.start(now)                       and then, as things happen,
    effects = replica.receive(inbound, now)            a request came
    effects = replica.receive_response(id, answer, now)    an answer to one of its own
    effects = replica.fail(id, error, now)             there will be no answer
    effects = replica.synced(now)                      a sync of the log that it asked for is done
    effects = replica.poll(now)                        it is `replica.wake_ms`
    offset, effects = replica.append(batch, epoch, now)

Each event is one step. What the step decided about epoch and vote is on disk before its effects are handed
out, and before the first record of a new epoch is appended: nobody hears of what a crash could undo.

This module has the state and its changes. What a message tells of the leader is taken by `hearing`, what is
done in each state is in `voting`, `serving`, `leading`, `following`, `abstaining` and `changes`.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.model.ids import Offset
from ottla.model.uuid import ZERO_UUID
from ottla.quorum.batches import encode_control_batch
from ottla.quorum.quorum_protocols import NotLeader
from ottla.quorum.quorum_state import QuorumState
from ottla.quorum.raft import changes, describe, following, leading, serving, starting, voting
from ottla.quorum.raft.connections import Connections
from ottla.quorum.raft.effects import (
    BecameLeader,
    Destination,
    Effect,
    HighWatermarkMoved,
    Inbound,
    LeaderChanged,
    LeadershipLost,
    Refused,
    Reply,
    Send,
    SyncLog,
    VotesAgain,
)
from ottla.quorum.raft.election import Tally
from ottla.quorum.raft.messages import LeaderInfo, refusal_of
from ottla.quorum.raft.metadata_log import ElectionStore, MetadataLog
from ottla.quorum.raft.parked import ParkedFetches
from ottla.quorum.raft.progress import Progress
from ottla.quorum.raft.servers import bootstrap_of
from ottla.quorum.raft.settings import Chance, Moment, RaftSettings
from ottla.quorum.raft.states import (
    NEVER,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    State,
    Unattached,
    election_of,
)
from ottla.quorum.raft.transitions import check_transition
from ottla.quorum.raft.voter_sets import ControlHistory, ReplicaKey, VoterSet
from ottla.quorum.voters import DYNAMIC, Endpoint, voter
from ottla.wire.control_records import (
    Voter,
)
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.api_versions import ApiVersionsResponse
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.wire.messages.vote import VoteRequest, VoteResponse

_STATES_PER_STEP_MAX: Final = 8
_CHECK_QUORUM_FACTOR: Final = (3, 2)


_REQUESTS: Final[dict[type[Any], Callable[["Replica", Inbound, Moment], Any]]] = {
    VoteRequest: voting.handle_vote,
    BeginQuorumEpochRequest: voting.handle_begin_epoch,
    EndQuorumEpochRequest: voting.handle_end_epoch,
    FetchRequest: serving.handle_fetch,
    FetchSnapshotRequest: serving.handle_fetch_snapshot,
    DescribeQuorumRequest: describe.handle_describe,
    AddRaftVoterRequest: changes.handle_add_voter,
    RemoveRaftVoterRequest: changes.handle_remove_voter,
    UpdateRaftVoterRequest: changes.handle_update_voter,
}
_RESPONSES: Final[dict[type[Any], Callable[["Replica", Destination, Any, Moment], bool]]] = {
    VoteResponse: voting.take_vote,
    BeginQuorumEpochResponse: voting.take_begin_epoch,
    EndQuorumEpochResponse: voting.take_end_epoch,
    FetchResponse: following.take_fetch,
    FetchSnapshotResponse: following.take_fetch_snapshot,
    UpdateRaftVoterResponse: following.take_update_voter,
    AddRaftVoterResponse: following.take_add_or_remove_voter,
    RemoveRaftVoterResponse: following.take_add_or_remove_voter,
    ApiVersionsResponse: changes.take_api_versions,
}


class Replica:
    """A replica of the quorum. One thread uses it."""

    def __init__(
        self, settings: RaftSettings, log: MetadataLog, store: ElectionStore, chance: Chance
    ) -> None:
        self.settings = settings
        self.log = log
        self.history = ControlHistory(settings.static_voters)
        self.connections = Connections(settings.request_timeout_ms, settings.retry_backoff_ms)
        self.parked = ParkedFetches()
        # Everything below is committed. It is not known before the first leader said so.
        self.high_watermark: Offset | None = None
        # Its log was damaged, and it lacks what it has acknowledged. See `abstaining`.
        self.abstains = False
        self.wake_ms = 0
        # When a stop that was asked for gives up, or None.
        self.stop_ms: int | None = None
        self.bootstrap = bootstrap_of(settings)
        self._store = store
        self.chance = chance
        self._persisted: QuorumState | None = None
        self._effects: list[Effect] = []
        self._told = LeaderChanged(-1, -1)
        self.state: State = Unattached(0, NEVER)

    # What is asked about it.

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the epoch, or -1 if it is not known."""
        return -1 if self.state.leader_id is None else self.state.leader_id

    @property
    def voters(self) -> VoterSet:
        """The voters in force."""
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        return self.voters.is_voter(self.settings.me)

    @property
    def may_stand(self) -> bool:
        """Say whether this replica may be elected: it votes, or it may still have to commit that it does not.

        Deviation: Kafka's replica never stands once its log says that it was removed, committed or not. If
        nobody else has got so far, nobody can be elected then.
        """
        if self.abstains:
            return False
        if self.is_voter:
            return True
        removed_at = self.history.voters_offset
        is_committed = removed_at is None or (
            self.high_watermark is not None and self.high_watermark > removed_at
        )
        return not is_committed and self.history.voters_before.is_voter(self.settings.me)

    @property
    def is_only_voter(self) -> bool:
        return not self.abstains and self.voters.is_only_voter(self.settings.me)

    @property
    def is_stopped(self) -> bool:
        """Say whether nothing is left to do before the node stops."""
        if self.stop_ms is None:
            return False
        has_remote_leader = self.leader_id not in (-1, self.settings.me.node_id)
        return has_remote_leader or not self.is_voter or self.is_only_voter

    def me_as_voter(self) -> Voter:
        """Describe this replica as a voter."""
        me = self.settings.me
        return voter(me.node_id, me.directory_id, self.settings.endpoints)

    def leader_info(self, listener: str = "") -> LeaderInfo:
        """Return what an answer tells about the leader, to one who came through a listener."""
        wanted = listener or self.settings.listener
        endpoints = [one for one in self.state.leader_endpoints if one.listener == wanted]
        return LeaderInfo(self.leader_id, self.epoch, tuple(endpoints))

    # Events.

    def load(self, wall_ms: int) -> None:
        """Learn from the log who votes, and from the other file what was promised."""
        self.log.settle(wall_ms)
        starting.read_control_records(self)
        self._persisted = self._store.read()
        self.abstains = self._store.abstains()

    def start(self, now: Moment) -> list[Effect]:
        """Go on where the last start left off. The only voter leads at once, without waiting for anything.

        The log must have been loaded.
        """
        self.state = starting.initial_state(self, self._persisted or QuorumState(), now)
        if self.log.synced_offset < self.log.end_offset:
            self.add(SyncLog())
        if isinstance(self.state, Candidate):
            self._maybe_go_forward(now)
        elif self.is_only_voter:
            self.become_prospective(now)
        return self._finish(now)

    def receive(self, inbound: Inbound, now: Moment) -> list[Effect]:
        """Take a request. It is answered at once, or by a later step."""
        response = _REQUESTS[type(inbound.request)](self, inbound, now)
        if response is not None:
            self.add(Reply(inbound.token, response))
        return self._finish(now)

    def receive_response(self, correlation_id: int, response: Any, now: Moment) -> list[Effect]:
        """Take an answer. One that nobody waits for any more is of no interest."""
        destination = self.connections.take(correlation_id)
        if destination is not None:
            state = self.state
            is_good = _RESPONSES[type(response)](self, destination, response, now)
            if not is_good and self.state is state:
                self.connections.back_off(destination, now.ms)
        return self._finish(now)

    def fail(
        self, correlation_id: int, request: Any, now: Moment, error: ErrorCode = ErrorCode.NETWORK_EXCEPTION
    ) -> list[Effect]:
        """Take note that a request will not be answered.

        BROKER_NOT_AVAILABLE says that nobody listens there: the connection was refused.
        """
        return self.receive_response(correlation_id, refusal_of(request, error), now)

    def synced(self, now: Moment) -> list[Effect]:
        """Take note that the log was synced, as far as it says itself."""
        if isinstance(self.state, Leader):
            leading.note_synced(self, self.state)
        return self._finish(now)

    def poll(self, now: Moment) -> list[Effect]:
        """Do what is due."""
        return self._finish(now)

    def append(self, batch: bytearray, epoch: int, now: Moment) -> tuple[Offset, list[Effect]]:
        """Append a batch as the leader of an epoch. Returns the offset of its last record.

        It is committed when the high watermark is above that. It may be undone when the leadership is lost.
        """
        leader = self.state
        if not isinstance(leader, Leader) or leader.epoch != epoch or leader.is_resigning:
            raise NotLeader(f"epoch {epoch} is not led by this node: it is in epoch {self.epoch}")
        last_offset = leading.append(self, leader, batch, now)
        return last_offset, self._finish(now)

    def upgrade_kraft_version(
        self, epoch: int, kraft_version: int, now: Moment, *, validates_only: bool = False
    ) -> tuple[ErrorCode, str | None, list[Effect]]:
        """Make a static quorum a dynamic one. Returns an error and its message, if it cannot be done."""
        error, message = changes.upgrade(self, epoch, kraft_version, now, validates_only)
        return error, message, self._finish(now)

    def resign(self, epoch: int, now: Moment) -> list[Effect]:
        """Give up the leadership of an epoch, if that is not over already."""
        if isinstance(self.state, Leader) and self.state.epoch == epoch:
            self.state.is_resigning = True
        return self._finish(now)

    def stop(self, now: Moment, timeout_ms: int) -> list[Effect]:
        """Hand the leadership over. The node may stop once `is_stopped`, and gives up at `stop_ms`."""
        self.stop_ms = now.ms + timeout_ms
        return self._finish(now)

    def snapshots_changed(self) -> None:
        """Take note that the node has written or deleted snapshots, and may have moved the log's start."""
        self.log.snapshots.look_again()
        self.history.forget_before(self.log.start_offset)

    # What steps are made of.

    def add(self, effect: Effect) -> None:
        self._effects.append(effect)

    def refuse(self, what: str) -> bool:
        """Note that something made no sense. Returns False, for an answer that was of no use."""
        self.add(Refused(what))
        return False

    def send(self, destination: Destination, request: Any, now: Moment) -> None:
        """Send a request to somebody who is ready for one."""
        self.add(Send(self.connections.sent(destination, now.ms), destination, request))

    def destination_of(self, node_id: int, endpoints: tuple[Endpoint, ...]) -> Destination | None:
        """Return where a node is reached through the quorum's listener, or None if that is not known."""
        for endpoint in endpoints:
            if endpoint.listener == self.settings.listener:
                return Destination(node_id, endpoint.host, endpoint.port)
        return None

    def move_high_watermark(self, offset: Offset) -> None:
        """Everything below `offset` is committed. It never goes back."""
        if self.high_watermark is not None and offset <= self.high_watermark:
            return
        self.high_watermark = offset
        self.log.update_high_watermark(offset)
        self.add(HighWatermarkMoved(offset))

    def vote_again(self) -> None:
        """Be a voter like any other again."""
        self._store.vote_again()
        self.abstains = False
        self.add(VotesAgain())

    def append_control(self, leader: Leader, records: tuple[Any, ...], now: Moment) -> Offset:
        """Append control records as one batch, and let them be in force. Returns the last one's offset."""
        first = self.log.end_offset
        batch = encode_control_batch(records, first, leader.epoch, now.wall_ms)
        last = leading.append(self, leader, batch, now)
        self.history.add(first, records)
        leader.progress.set_voters(self.voters)
        return last

    def _finish(self, now: Moment) -> list[Effect]:
        """End a step: do what is due, remember epoch and vote, and only then hand out what to do."""
        for _ in range(_STATES_PER_STEP_MAX):
            self.wake_ms = self._poll_state(now)
            if self.wake_ms > now.ms:
                break
        else:
            # Several changes of state in one step are fine; more come with the next.
            self.wake_ms = now.ms + 1
        self.persist()
        leader_id = -1 if isinstance(self.state, Resigned) else self.leader_id
        # After a start an observer may know who leads, but not yet where.
        told = LeaderChanged(leader_id, self.epoch, self.state.leader_endpoints)
        if told != self._told:
            self._told = told
            self.add(told)
        effects, self._effects = self._effects, []
        return effects

    def _poll_state(self, now: Moment) -> int:
        """Do what is due in the present state. Returns when to come again."""
        self.parked.expire(self, now)
        state = self.state
        match state:
            case Leader():
                wake_ms = leading.poll_leader(self, state, now)
            case Resigned():
                wake_ms = leading.poll_resigned(self, state, now)
            case Candidate() | Prospective():
                wake_ms = voting.poll_nominee(self, state, now)
            case Follower():
                wake_ms = following.poll_follower(self, state, now)
            case Unattached():
                wake_ms = following.poll_unattached(self, state, now)
        return min(wake_ms, self.parked.wake_ms)

    def persist(self) -> None:
        """Have epoch, vote and leader on disk. It costs nothing if they are."""
        election = election_of(self.state)
        if election != self._persisted:
            self._store.write(election, self._level_to_persist(election), self.voters.ids)
            self._persisted = election

    def _level_to_persist(self, election: QuorumState) -> int:
        """Return the kraft.version by which to write. Who abstains does not know it, but keeps its vote."""
        is_dynamic = self.abstains and election.voted_directory_id != ZERO_UUID
        return DYNAMIC if is_dynamic else self.history.kraft_version

    # Changes of state.

    def _enter(self, state: State) -> None:
        old = self.state
        check_transition(old.name, old.epoch, state.name, state.epoch, may_stand=self.may_stand)
        if isinstance(old, Leader):
            changes.give_up(self, old)
            self.parked.refuse_all(self)
            self.add(LeadershipLost(old.epoch))
        if isinstance(old, Follower) and old.download is not None:
            old.download.drop()
        self.state = state
        self.connections.forget_all()

    def become_unattached(self, epoch: int, now: Moment) -> None:
        """Be in an epoch whose leader is not known."""
        old = self.state
        is_same = epoch == old.epoch
        self._enter(
            Unattached(
                epoch,
                self._unattached_deadline_ms(now),
                # The vote of an epoch is kept as long as the epoch lasts, and so is who won it.
                leader_id=old.leader_id if is_same else None,
                voted=old.voted if is_same else None,
            )
        )

    def _unattached_deadline_ms(self, now: Moment) -> int:
        """Return when to stand for election. One that waits already waits no longer than before."""
        if not self.may_stand:
            return NEVER
        match self.state:
            case Unattached(deadline_ms=deadline_ms) | Candidate(deadline_ms=deadline_ms) if (
                deadline_ms < NEVER
            ):
                return deadline_ms
            case Resigned(deadline_ms=deadline_ms):
                return deadline_ms
            case Prospective(deadline_ms=deadline_ms, tally=tally) if not tally.is_lost:
                return deadline_ms
        return self.election_deadline_ms(now)

    def vote_for(self, candidate: ReplicaKey, now: Moment) -> None:
        """Give the vote of this epoch. A new time-out begins: the candidate is as likely to win as any."""
        state = self.state
        assert isinstance(state, Unattached | Prospective), "only who has no leader votes"
        assert candidate.node_id != self.settings.me.node_id, "nobody else asks in the name of this node"
        if state.voted is None:
            deadline_ms = self.election_deadline_ms(now) if self.may_stand else NEVER
            check_transition(state.name, state.epoch, state.name, state.epoch, may_stand=True)
            state.voted = candidate
            state.deadline_ms = deadline_ms

    def become_prospective(self, now: Moment) -> None:
        """Ask whether this replica would be elected."""
        old = self.state
        tally = Tally(self.voters)
        tally.record(self.settings.me.node_id, is_granted=True)
        self._enter(
            Prospective(
                old.epoch,
                self.election_deadline_ms(now),
                tally,
                old.leader_id,
                old.voted,
                old.leader_endpoints,
                is_leader_gone=isinstance(old, Follower) and old.is_leader_gone,
            )
        )
        self._maybe_go_forward(now)

    def become_candidate(self, now: Moment) -> None:
        """Stand for election in a new epoch."""
        tally = Tally(self.voters)
        tally.record(self.settings.me.node_id, is_granted=True)
        self._enter(Candidate(self.epoch + 1, self.election_deadline_ms(now), tally, self.settings.me))
        self._maybe_go_forward(now)

    def _maybe_go_forward(self, now: Moment) -> None:
        """Go on if there are votes enough: at once where this is the only voter."""
        if isinstance(self.state, Prospective) and self.state.tally.is_won:
            self.become_candidate(now)
        elif isinstance(self.state, Candidate) and self.state.tally.is_won:
            self._become_leader(self.state, now)

    def count_vote(self, node_id: int, *, is_granted: bool, now: Moment) -> None:
        """Count the answer of a voter, and go on or give up if it decides the matter."""
        nominee = self.state
        if not isinstance(nominee, Prospective | Candidate):
            return
        nominee.tally.record(node_id, is_granted=is_granted)
        self._maybe_go_forward(now)
        if self.state is nominee and isinstance(nominee, Prospective) and nominee.tally.is_lost:
            self.lose_prospect(nominee, now)

    def lose_prospect(self, prospective: Prospective, now: Moment) -> None:
        """Go back to the leader that was known, if one was."""
        if prospective.leader_id is not None and prospective.leader_endpoints:
            self.become_follower(prospective.epoch, prospective.leader_id, prospective.leader_endpoints, now)
        else:
            self.become_unattached(prospective.epoch, now)

    def _become_leader(self, candidate: Candidate, now: Moment) -> None:
        me = self.settings.me
        assert candidate.tally.is_won, "nobody leads without a majority"
        volatile = (
            None
            if self.history.is_dynamic
            else self.voters.update(self.me_as_voter(), ignores_directory=True)
        )
        leader = Leader(
            candidate.epoch,
            me.node_id,
            self.settings.endpoints,
            self.log.end_offset,
            Progress(me),
            check_quorum_ms=self.check_quorum_deadline_ms(now),
            begin_epoch_ms=now.ms,
            voted=candidate.voted,
            volatile_voters=volatile,
        )
        granting = candidate.tally.granting()
        self._enter(leader)
        # Records of an epoch are distinguished by their offsets. If a crash made this node forget that it
        # led, it could lead again, and append others at the same offsets.
        self.persist()
        leader.progress.set_voters(self.voters)
        leader.progress.synced(self.log.synced_offset)
        self.append_control(leader, leading.first_records(self, granting), now)
        self.add(BecameLeader(leader.epoch, leader.start_offset))

    def become_follower(
        self, epoch: int, leader_id: int, endpoints: tuple[Endpoint, ...], now: Moment
    ) -> None:
        """Follow the leader of an epoch."""
        assert leader_id != self.settings.me.node_id, "nobody follows itself"
        old = self.state
        fetch_timeout_ms = self.settings.fetch_timeout_ms
        self._enter(
            Follower(
                epoch,
                now.ms + fetch_timeout_ms,
                leader_id,
                endpoints,
                update_ms=now.ms + fetch_timeout_ms,
                voted=old.voted if epoch == old.epoch else None,
            )
        )

    def become_resigned(self, leader: Leader, now: Moment) -> None:
        """Lead no more, and tell the others."""
        me = self.settings.me
        successors = leader.progress.successors()
        self._enter(
            Resigned(
                leader.epoch,
                self.election_deadline_ms(now),
                me.node_id,
                unacknowledged=[node_id for node_id in self.voters.ids if node_id != me.node_id],
                successors=successors,
                leader_endpoints=leader.leader_endpoints,
                voted=leader.voted,
            )
        )

    def find_leader_error(self, epoch: int) -> ErrorCode | None:
        """Return why a request for the leader of an epoch cannot be served."""
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if not isinstance(self.state, Leader):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.stop_ms is not None:
            return ErrorCode.BROKER_NOT_AVAILABLE
        return None

    def is_of_cluster(self, cluster_id: str | None) -> bool:
        """Say whether a request is meant for this cluster. One that does not say so is."""
        return cluster_id is None or cluster_id == self.settings.cluster_id

    # Time.

    def election_deadline_ms(self, now: Moment) -> int:
        """Return when to try again. Chance keeps two from trying at the same time for ever."""
        timeout_ms = self.settings.election_timeout_ms
        return now.ms + timeout_ms + self.chance.randrange(timeout_ms)

    def soon_ms(self, now: Moment) -> int:
        """Return when to stand for election if the leader is known to be gone.

        All voters notice that together. They take turns by their ids, so that they do not split the votes.
        """
        settings = self.settings
        turn_ms = settings.election_timeout_ms // 10
        others = [one for one in self.voters.ids if one != self.state.leader_id]
        place = sum(one < settings.me.node_id for one in others)
        return now.ms + settings.retry_backoff_ms + place * turn_ms + self.chance.randrange(turn_ms // 2 + 1)

    def check_quorum_deadline_ms(self, now: Moment) -> int:
        """Return until when a majority has to fetch: later than their time-out, for the network's sake."""
        numerator, denominator = _CHECK_QUORUM_FACTOR
        return now.ms + self.settings.fetch_timeout_ms * numerator // denominator
