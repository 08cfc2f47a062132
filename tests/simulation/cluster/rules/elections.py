"""What must hold of elections in the quorum of a simulated cluster.

A vote counts only if it is on disk, a leader has the votes of a majority, and none of those who voted for it
had more than it. Who hears from a leader does not help to elect another, and who hears nothing stands itself.
"""

from typing import Final

from tests.simulation.cluster.rules.wrong import Wrong, must

from ottla.metadata.errors import MetadataError
from ottla.quorum.quorum_state import FILE, QuorumState, decode_quorum_state
from ottla.quorum.raft.replica import Replica
from ottla.quorum.raft.states import (
    NEVER,
    Follower,
    Leader,
    Prospective,
    Resigned,
    State,
    Unattached,
    election_of,
)
from ottla.quorum.raft.voter_sets import ReplicaKey
from ottla.storage.names import METADATA_PARTITION, directory_name
from ottla.testing.power_cut import FileNode
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.node import DATA, SimulatedNode

PATH: Final = f"{DATA}/{directory_name(METADATA_PARTITION)}/{FILE}"
LATE_US_MAX: Final = 500_000
"""How long after its time-out a follower may take to stand for election."""


class ElectionRules:
    """Looks at votes and leaders of the quorum."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        # What each voter has on its disk, which is read when the file is another one.
        self._on_disk: dict[ReplicaKey, QuorumState] = {}
        self._files: dict[int, FileNode] = {}
        self._votes: dict[tuple[int, ReplicaKey], ReplicaKey] = {}
        self._leaders: set[tuple[int, int]] = set()
        # Since when a node leads, or hears from a leader, and in which epoch.
        self._has_leader_us: dict[int, tuple[int, int]] = {}
        # Since when a node asks for pre-votes.
        self._prospective_us: dict[int, tuple[int, int]] = {}
        self._late_us: dict[int, tuple[State, int]] = {}

    def look_at_disk(self, one: SimulatedNode) -> None:
        """What a voter has promised stays promised, also while it starts."""
        if one.node is None:
            # It votes already. Whom it heard from in its last life does not matter.
            self._has_leader_us.pop(one.node_id, None)
        file = one.disk.find_durable(PATH)
        if file is None or file is self._files.get(one.node_id):
            return
        try:
            said = decode_quorum_state(bytes(file.durable))
        except MetadataError as error:
            must(False, f"vote: quorum-state of node {one.node_id} cannot be read: {error}")
            return
        key = ReplicaKey(one.node_id, one.directory_id)
        before = self._on_disk.get(key)
        self._files[one.node_id], self._on_disk[key] = file, said
        if before is None:
            return
        must(
            said.leader_epoch > before.leader_epoch
            or (
                said.leader_epoch == before.leader_epoch
                and before.voted_id in (-1, said.voted_id)
                and before.leader_id in (-1, said.leader_id)
            ),
            f"vote: node {one.node_id} had {before} on its disk, and now {said}",
        )

    def look_at_word(self, one: SimulatedNode, state: State) -> None:
        """What a node says is on its disk, since others have heard it."""
        key = ReplicaKey(one.node_id, one.directory_id)
        if state.voted is not None:
            self._votes[state.epoch, key] = state.voted
        found = self._on_disk.get(key)
        must(
            found == election_of(state),
            f"vote: node {one.node_id} says {election_of(state)}, but has {found} on its disk",
        )

    def look(self, one: SimulatedNode, replica: Replica) -> None:
        """Look at what a node does."""
        state, node_id, now_us = replica.state, one.node_id, self._cluster.simulation.now_us
        has_leader, is_late = isinstance(state, Leader), False
        if isinstance(state, Follower):
            is_late = now_us // 1000 >= state.deadline_ms
            has_leader = state.has_fetched and not is_late
        elif isinstance(state, Unattached):
            is_late = not now_us // 1000 < state.deadline_ms < NEVER
        since = self._has_leader_us.get(node_id)
        if not has_leader:
            self._has_leader_us.pop(node_id, None)
        elif since is None or since[0] != state.epoch:
            self._has_leader_us[node_id] = (state.epoch, now_us)
        if isinstance(state, Prospective):
            self._check_pre_votes(one, state, now_us)
        elif node_id in self._prospective_us:
            del self._prospective_us[node_id]
        if isinstance(state, Leader) and (state.epoch, node_id) not in self._leaders:
            self._leaders.add((state.epoch, node_id))
            self._check_elected(one, replica, state)
        if is_late and replica.stop_ms is None and _may_stand(replica):
            self._check_waiting(one, state, now_us)
        elif node_id in self._late_us:
            del self._late_us[node_id]
        if state.leader_id == node_id and not isinstance(state, Leader | Resigned):
            raise Wrong(
                f"vote: node {node_id} has led epoch {state.epoch}, and is {state.name.value} in it now"
            )

    def _check_pre_votes(self, one: SimulatedNode, state: Prospective, now_us: int) -> None:
        epoch, since_us = self._prospective_us.setdefault(one.node_id, (state.epoch, now_us))
        if epoch != state.epoch:
            self._prospective_us[one.node_id] = (state.epoch, now_us)
            return
        for node_id in state.tally.granting():
            led = self._has_leader_us.get(node_id)
            must(
                led is None or led[0] != state.epoch or led[1] >= since_us,
                f"vote: node {node_id} helps to elect node {one.node_id}, but hears from the leader of epoch "
                f"{state.epoch}",
            )

    def _check_elected(self, one: SimulatedNode, replica: Replica, leader: Leader) -> None:
        """Those who have voted for a leader are a majority, and it has all that they have."""
        me = ReplicaKey(one.node_id, one.directory_id)
        votes = [key for key in replica.voters.keys if key == me or self._may_have_voted(key, me, leader)]
        must(
            2 * len(votes) > len(replica.voters),
            f"vote: node {one.node_id} leads epoch {leader.epoch} with the votes of {votes} of "
            f"{replica.voters.keys}",
        )

    def _may_have_voted(self, voter: ReplicaKey, candidate: ReplicaKey, leader: Leader) -> bool:
        one = next((one for one in self._cluster if one.node_id == voter.node_id), None)
        if one is None or one.directory_id != voter.directory_id:
            return False
        vote = self._votes.get((leader.epoch, voter))
        if vote is None and one.node is None:
            return True
        if one.node is not None:
            replica = one.node.parts.quorum.driver.replica
            if replica.epoch == leader.epoch and replica.state.voted is not None:
                vote = replica.state.voted
                self._check_ends(candidate, leader, replica, one)
        return vote is not None and vote.covers(candidate)

    def _check_ends(self, elected: ReplicaKey, leader: Leader, voter: Replica, voted: SimulatedNode) -> None:
        """A vote is given to nobody who has less."""
        if voter.state.voted is None or not voter.state.voted.covers(elected):
            return
        winner = next(one for one in self._cluster if one.node_id == elected.node_id)
        assert winner.node is not None
        log = winner.node.parts.quorum.driver.replica.log
        before = [entry.epoch for entry in log.log.leader_epochs.entries if entry.epoch < leader.epoch]
        epoch = max(before, default=0 if log.snapshots.latest is None else log.snapshots.latest.epoch)
        its = voter.log.end
        must(
            its.epoch >= leader.epoch or (its.epoch, its.offset) <= (epoch, leader.start_offset),
            f"vote: node {voted.node_id} has {its}, but has voted for node {elected.node_id}, which had "
            f"{leader.start_offset} of epoch {epoch}",
        )

    def _check_waiting(self, one: SimulatedNode, state: State, now_us: int) -> None:
        """A voter that hears nothing from a leader does not wait for ever."""
        known, since_us = self._late_us.setdefault(one.node_id, (state, now_us))
        if known is not state:
            self._late_us[one.node_id] = (state, now_us)
        if known is state and now_us - since_us >= LATE_US_MAX:
            raise Wrong(
                f"vote: node {one.node_id} is {state.name.value} in epoch {state.epoch}, has heard of no "
                "leader for long, and does not stand for election"
            )


def _may_stand(replica: Replica) -> bool:
    """Say whether a replica votes, or has voted before a change that may not be committed."""
    history, me = replica.history, replica.settings.me
    if replica.abstains or history.voters.is_voter(me):
        return not replica.abstains
    changed_at, committed = history.voters_offset, replica.high_watermark
    is_open = changed_at is not None and (committed is None or committed <= changed_at)
    return is_open and history.voters_before.is_voter(me)
