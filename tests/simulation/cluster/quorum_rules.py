"""What must hold in the quorum of a simulated cluster, looked at before each turn of a node."""

from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.cluster.wrong import must

from ottla.model.uuid import Uuid
from ottla.quorum.raft.states import Leader
from ottla.quorum.raft.voter_sets import ReplicaKey
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

    def look(self, one: SimulatedNode) -> None:
        """Look at a node."""
        if one.node is None:
            return
        replica = one.node.parts.quorum.driver.replica
        state = replica.state
        known = self._words.get(one.node_id)
        if known is None or known[1:] != (state.epoch, state.voted, state.leader_id):
            self._check_word(one, known)
        committed = replica.high_watermark
        if committed is not None and committed > self._committed and isinstance(state, Leader):
            self._committed = committed
            self._check_committed(one, committed)

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
            is_kept = said.voted == known.voted or (said.voted is None and said.leader_id is not None)
            must(is_kept, f"vote: node {one.node_id} has said {known}, and now {said}")
        if said.epoch == known.epoch and known.leader_id is not None:
            must(
                said.leader_id == known.leader_id,
                f"vote: node {one.node_id} has said {known}, and now {said}",
            )

    def _check_committed(self, one: SimulatedNode, committed: int) -> None:
        """What is committed is on the disks of a majority of the voters."""
        assert one.node is not None
        voters = one.node.parts.quorum.driver.replica.voters
        lacking = [key.node_id for key in voters.keys if self._lacks(key, committed)]
        must(
            2 * len(lacking) < len(voters),
            f"quorum: node {one.node_id} has committed {committed}, which voters {lacking} have not synced",
        )

    def _lacks(self, voter: ReplicaKey, committed: int) -> bool:
        """Say whether a voter surely does not have something on its disk."""
        one = next((one for one in self._cluster if one.node_id == voter.node_id), None)
        if one is None or one.directory_id != voter.directory_id:
            return True
        if one.node is None or not self._has_settled(one):
            return False
        return one.node.parts.quorum.driver.log.recovery_point < committed
