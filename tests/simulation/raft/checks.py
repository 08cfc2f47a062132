"""The invariants of a quorum, by name. They are checked after each step of each node."""

from typing import TYPE_CHECKING

from tests.simulation.raft.truth import Truth, Violation

from ottla.model.ids import Offset
from ottla.quorum.quorum_state import QuorumState
from ottla.quorum.raft.effects import (
    BecameLeader,
    Effect,
    HighWatermarkMoved,
    LogTruncated,
    Reply,
    Send,
    SnapshotLoaded,
)
from ottla.quorum.raft.replica import Replica
from ottla.quorum.raft.states import Leader
from ottla.quorum.raft.voter_sets import ControlHistory, ReplicaKey
from ottla.records.batch import iter_batches
from ottla.wire.messages.vote import VoteRequest, VoteResponse

if TYPE_CHECKING:
    from tests.simulation.raft.node import Node


class Checks:
    """What has been seen so far, and what must therefore not be seen."""

    def __init__(self, truth: Truth, nodes: dict[int, "Node"]) -> None:
        self._truth = truth
        self._nodes = nodes
        # Which start of which node led an epoch.
        self._leaders: dict[int, tuple[ReplicaKey, int]] = {}
        self._epochs: dict[ReplicaKey, int] = {}
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        self._kept_votes: dict[tuple[ReplicaKey, int], int] = {}
        # What replicas had on disks that are not there any more.
        self.gone: dict[ReplicaKey, int] = {}
        self._high_watermarks: dict[tuple[ReplicaKey, int], int] = {}
        # How far leaders committed, and in which epoch each did.
        self._committed: list[tuple[int, int]] = []

    def stepped(self, node: "Node", replica: Replica, effects: list[Effect]) -> None:
        """Check what one step did."""
        key = replica.settings.me
        self._check_epoch(node, key, replica.epoch)
        leader = replica.state
        self._check_vote_in_state(node, key, replica)
        if isinstance(leader, Leader):
            self._check_single_leader(node, key, leader.epoch)
            self._check_one_change(node, replica, leader)
            if leader.high_watermark is not None and leader.high_watermark <= leader.start_offset:
                raise Violation(
                    f"CommittedWithOwnEpoch: {node} commits up to {leader.high_watermark} in epoch "
                    f"{leader.epoch}, which begins at {leader.start_offset}"
                )
        for effect in effects:
            match effect:
                case HighWatermarkMoved(offset):
                    self._check_high_watermark(node, key, offset)
                    if isinstance(leader, Leader) and leader.high_watermark == offset:
                        self._check_on_disks(node, replica, offset)
                        self._committed.append((offset, leader.epoch))
                case BecameLeader():
                    self._check_complete(node, replica)
                    self._check_voters(node, replica)
                case LogTruncated() | SnapshotLoaded():
                    self._check_voters(node, replica)
                case Send(_, _, VoteRequest() as request):
                    wanted = request.topics[0].partitions[0]
                    if not wanted.pre_vote:
                        self._check_vote(node, key, wanted.replica_epoch, key)
                case Reply(token, VoteResponse() as response) if response.topics:
                    self._check_answer(node, key, token, response)

    def _check_answer(self, node: "Node", key: ReplicaKey, token: object, response: VoteResponse) -> None:
        result = response.topics[0].partitions[0]
        request = getattr(token, "request", None)
        if result.vote_granted and isinstance(request, VoteRequest):
            wanted = request.topics[0].partitions[0]
            if not wanted.pre_vote:
                candidate = ReplicaKey(wanted.replica_id, wanted.replica_directory_id)
                self._check_vote(node, key, wanted.replica_epoch, candidate)

    def _check_epoch(self, node: "Node", key: ReplicaKey, epoch: int) -> None:
        if epoch < self._epochs.get(key, 0):
            raise Violation(f"EpochsNeverGoBack: {node} is in epoch {epoch}, was in {self._epochs[key]}")
        self._epochs[key] = epoch

    def _check_single_leader(self, node: "Node", key: ReplicaKey, epoch: int) -> None:
        known = self._leaders.setdefault(epoch, (key, node.starts))
        if known != (key, node.starts):
            raise Violation(
                f"SingleLeaderPerEpoch: {node} leads epoch {epoch}, and so did node {known[0].node_id}"
            )

    def _check_vote(self, node: "Node", key: ReplicaKey, epoch: int, candidate: ReplicaKey) -> None:
        known = self._votes.setdefault((key, epoch), candidate)
        if known != candidate:
            raise Violation(
                f"VoteKept: {node} voted for node {candidate.node_id} in epoch {epoch}, and before for "
                f"node {known.node_id}"
            )

    def _check_one_change(self, node: "Node", replica: Replica, leader: Leader) -> None:
        """See that voters are changed one at a time, and by nobody who has not committed anything yet."""
        since = leader.start_offset if leader.high_watermark is None else leader.high_watermark
        # The first batch of an epoch may say again who the voters are.
        named = [at for at, _ in replica.history._voters if at >= since]
        changes = [at for at in named if at > leader.start_offset + 2]
        if len(changes) > (leader.high_watermark is not None):
            raise Violation(
                f"OneChangeAtATime: {node} has changes of the voters at {changes}, committed {since}"
            )

    def _check_voters(self, node: "Node", replica: Replica) -> None:
        """See that the voters are those that the log names, no more and no less."""
        again = ControlHistory(replica.settings.static_voters)
        offset = replica.log.start_offset
        latest = replica.log.snapshots.latest
        if latest is not None:
            again.restart_from(latest.end_offset, replica.log.snapshots.read_quorum(latest))
            offset = latest.end_offset
        for batch in replica.log.control_batches(offset):
            again.add(batch.base_offset, batch.records)
        if (again.voters, again.kraft_version) != (replica.voters, replica.history.kraft_version):
            raise Violation(
                f"VotersAreThoseOfTheLog: {node} goes by {replica.voters.ids}, its log by {again.voters.ids}"
            )

    def _check_vote_in_state(self, node: "Node", key: ReplicaKey, replica: Replica) -> None:
        """See that a vote is not forgotten while its epoch lasts, not even by a crash."""
        voted = replica.state.voted
        known = self._kept_votes.get((key, replica.epoch))
        if known is not None and (voted is None or voted.node_id != known):
            raise Violation(
                f"VoteKept: {node} forgot that it voted for node {known} in epoch {replica.epoch}"
            )
        if voted is not None:
            self._kept_votes[key, replica.epoch] = voted.node_id

    def started(self, node: "Node", replica: Replica, election: QuorumState | None) -> None:
        """See that the leader of an epoch was on disk before its records were."""
        last_epoch = replica.log.last_epoch
        election = election or QuorumState()
        if last_epoch == 0:
            return
        if (election.leader_epoch, election.leader_id) < (last_epoch, 0):
            raise Violation(
                f"LeaderOnDiskBeforeRecords: {node} has records of {last_epoch}, but remembers {election}"
            )

    def _check_high_watermark(self, node: "Node", key: ReplicaKey, offset: int) -> None:
        before = self._high_watermarks.get((key, node.starts), 0)
        if offset < before:
            raise Violation(f"HighWatermarkMonotonic: {node} went from {before} back to {offset}")
        self._high_watermarks[key, node.starts] = offset

    def _check_on_disks(self, node: "Node", replica: Replica, offset: int) -> None:
        """See that a majority would still have what is committed if all lost power now."""
        voters = replica.voters
        safe = 0
        for voter in voters.keys:
            other = self._nodes[voter.node_id]
            if voter.covers(other.settings.me):
                safe += max(other.durable_end, other.lost_end) >= offset
            else:
                # Its disk was taken away. What it had said before was true.
                safe += self.gone.get(voter, 0) >= offset
        if safe * 2 <= len(voters):
            raise Violation(
                f"CommittedIsOnMajorityOfDisks: {node} committed {offset}, which {safe} of {len(voters)} have"
            )

    def _check_complete(self, node: "Node", replica: Replica) -> None:
        """See that a new leader has everything that was committed in earlier epochs.

        A vote may arrive so late that others have gone on. Such a leader lacks what was committed in epochs
        after its own, and commits nothing.
        """
        end = max([offset for offset, epoch in self._committed if epoch < replica.epoch], default=0)
        if end == 0 or end > self._truth.end:
            # The one who committed the last of it may have lost its power before anybody was told.
            return
        wanted = self._truth.epoch_at(end)
        log = replica.log
        if log.start_offset >= end:
            # It is in a snapshot before the log, whose content is compared when it is loaded.
            return
        epoch = log.log.leader_epochs.epoch_for(Offset(end - 1)) if log.end_offset > end else -1
        if epoch != wanted:
            raise Violation(
                f"CommittedNeverLostOrChanged: {node} leads epoch {replica.epoch} without what was "
                f"committed up to {end} in epoch {wanted}: its log has {log.start_offset} to {log.end_offset}"
            )

    def check_at_end(self) -> None:
        """Compare all logs with what was committed, byte by byte."""
        committed = {batch.base_offset: batch for batch in self._truth.batches()}
        for node in self._nodes.values():
            replica = node.replica
            if replica is None or replica.high_watermark is None:
                continue
            self._check_voters(node, replica)
            log = replica.log
            offset = log.start_offset
            if log.end_offset < replica.high_watermark:
                raise Violation(f"HighWatermarkMonotonic: {node} has less than what it knows to be committed")
            while offset < replica.high_watermark:
                for batch in iter_batches(memoryview(log.read(offset, 1 << 20))):
                    header = batch.header
                    offset = Offset(header.last_offset + 1)
                    if header.base_offset < log.start_offset or offset > replica.high_watermark:
                        continue
                    known = committed.get(header.base_offset)
                    if known is None or known.content != bytes(batch.view):
                        raise Violation(
                            f"LogPrefixesEqualBelowHighWatermark: {node} differs at {header.base_offset}"
                        )
