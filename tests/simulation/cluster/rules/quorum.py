"""What must hold in the quorum of a simulated cluster, looked at before each turn of a node."""

from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.cluster.rules.elections import ElectionRules
from tests.simulation.cluster.rules.voters import VoterRules
from tests.simulation.cluster.rules.wrong import Wrong, must

from ottla.model.uuid import Uuid
from ottla.quorum.raft.replica import Replica
from ottla.quorum.raft.states import Leader
from ottla.quorum.raft.voter_sets import ReplicaKey, VoterSet
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.node import SimulatedNode


class Word(NamedTuple):
    """What a voter has said, and must not forget: its epoch, and who got its vote or is the leader."""

    directory_id: Uuid
    epoch: int
    voted: ReplicaKey | None
    leader_id: int | None


class QuorumRules:
    """Looks at the quorum before each turn: what a turn has changed is on disk by then."""

    def __init__(self, cluster: SimulatedCluster, has_settled: Callable[[SimulatedNode], bool]) -> None:
        self._cluster = cluster
        self._has_settled = has_settled
        # The last high watermark that was compared with the disks of the voters.
        self._committed = 0
        self._words: dict[int, Word] = {}
        self._elections = ElectionRules(cluster)
        self._voters = VoterRules()
        # What was seen of the last leader. If it is the same, there is nothing to check.
        self._seen: tuple[Leader, int | None, VoterSet, int] | None = None

    def look(self, one: SimulatedNode) -> None:
        """Look at a node. This is done for each turn, so what is the same is passed over quickly."""
        self._elections.look_at_disk(one)
        if one.node is None:
            return
        driver = one.node.parts.quorum.driver
        replica, end = driver.replica, driver.log.log_end_offset
        state = replica.state
        known = self._words.get(one.node_id)
        if (
            known is None
            or known.epoch != state.epoch
            or known.voted != state.voted
            or known.leader_id != state.leader_id
        ):
            self._check_word(one, known)
            self._elections.look_at_word(one, state)
        self._elections.look(one, replica)
        self._voters.look(one, replica)
        committed = replica.high_watermark
        if committed is not None and committed > end:
            raise Wrong(f"quorum: node {one.node_id} has {end}, but says {committed} are committed")
        if isinstance(state, Leader):
            if committed is not None and committed > self._committed:
                self._committed = committed
                self._check_committed(one, committed)
            seen, voters, counted = self._seen, replica.voters, len(state.progress.voters)
            if (
                seen is None
                or seen[0] is not state
                or seen[1] != committed
                or seen[2] is not voters
                or seen[3] != counted
            ):
                self._seen = (state, committed, voters, counted)
                self._check_leader(one, replica, state)

    def _check_leader(self, one: SimulatedNode, replica: Replica, leader: Leader) -> None:
        """A leader counts who votes, and commits nothing before a record of its own epoch (Raft, 5.4.2)."""
        must(
            leader.high_watermark is None or leader.high_watermark > leader.start_offset,
            f"quorum: node {one.node_id} has committed {leader.high_watermark} in epoch {leader.epoch}, "
            f"which begins at {leader.start_offset}",
        )
        must(
            leader.progress.counts_me or leader.is_resigning or not self._is_removed(replica, leader),
            f"quorum: node {one.node_id} was removed from the voters, and leads on",
        )
        counted = {voter.key.node_id for voter in leader.progress.voters.values()}
        must(
            counted == set(replica.voters.ids),
            f"quorum: node {one.node_id} counts {sorted(counted)}, but voters are {replica.voters.ids}",
        )

    @staticmethod
    def _is_removed(replica: Replica, leader: Leader) -> bool:
        """Say whether it is committed who votes."""
        offset, committed = replica.history.voters_offset, leader.high_watermark
        return offset is not None and committed is not None and offset < committed

    def _check_word(self, one: SimulatedNode, known: Word | None) -> None:
        """An epoch does not go back, a vote is not forgotten, and an epoch has one vote and one leader."""
        assert one.node is not None
        state = one.node.parts.quorum.driver.replica.state
        said = Word(one.directory_id, state.epoch, state.voted, state.leader_id)
        self._words[one.node_id] = said
        if known is None or known.directory_id != said.directory_id:
            # With a new disk it is another voter.
            return
        must(said.epoch >= known.epoch, f"vote: node {one.node_id} was in epoch {known}, and now in {said}")
        if said.epoch == known.epoch and known.voted is not None:
            must(said.voted == known.voted, f"vote: node {one.node_id} has said {known}, and now {said}")
        if said.epoch == known.epoch and known.leader_id is not None:
            must(
                said.leader_id == known.leader_id,
                f"vote: node {one.node_id} has said {known}, and now {said}",
            )

    def _check_committed(self, one: SimulatedNode, committed: int) -> None:
        """What is committed is on the disks of a majority of the voters.

        If they are changed in the same turn, those before may have committed it.
        """
        assert one.node is not None
        replica = one.node.parts.quorum.driver.replica
        changed_at = replica.history.voters_offset
        lacking = self._lacking(replica.voters, committed)
        must(
            2 * len(lacking) < len(replica.voters)
            or (
                changed_at is not None
                and changed_at >= committed
                and 2 * len(self._lacking(replica.history.voters_before, committed))
                < len(replica.history.voters_before)
            ),
            f"quorum: node {one.node_id} has committed {committed}, which voters {lacking} have not synced",
        )

    def _lacking(self, voters: VoterSet, committed: int) -> list[int]:
        return [key.node_id for key in voters.keys if self._lacks(key, committed)]

    def _lacks(self, voter: ReplicaKey, committed: int) -> bool:
        """Say whether a voter surely does not have something on its disk."""
        one = next((one for one in self._cluster if one.node_id == voter.node_id), None)
        if one is None or one.directory_id != voter.directory_id:
            return True
        if one.node is None or not self._has_settled(one):
            return False
        return one.node.parts.quorum.driver.log.recovery_point < committed
