"""Counting votes, and the rule by which one is given."""

from dataclasses import dataclass, field

from ottla.quorum.raft.voter_sets import ReplicaKey, VoterSet


@dataclass(slots=True)
class Tally:
    """The votes of one election, or of one pre-vote. Only those who were voters at its start are counted."""

    voters: VoterSet
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    # Nobody listens where they did.
    gone: set[int] = field(default_factory=set)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= self.majority

    @property
    def is_lost(self) -> bool:
        """Say whether those who have not answered could not turn it any more."""
        return len(self.voters) - len(self.rejected) < self.majority

    @property
    def is_hopeless(self) -> bool:
        """Say whether only voters that are gone could turn it."""
        return bool(self.gone) and len(self.voters) - len(self.rejected | self.gone) < self.majority

    def record(self, node_id: int, *, is_granted: bool) -> None:
        """Count the vote of a voter. One that changes its mind is counted once."""
        if self.voters.find(node_id) is None:
            return
        self.gone.discard(node_id)
        (self.granted if is_granted else self.rejected).add(node_id)
        (self.rejected if is_granted else self.granted).discard(node_id)

    def unrecorded(self) -> list[ReplicaKey]:
        """Return who has not answered."""
        return [key for key in self.voters.keys if key.node_id not in self.granted | self.rejected]

    def granting(self) -> list[int]:
        """Return who gave its vote, in the order of ids."""
        return sorted(self.granted)


def may_vote(
    voted: ReplicaKey | None, leader_id: int | None, candidate: ReplicaKey, *, is_up_to_date: bool
) -> bool:
    """Say whether a replica that neither leads, follows nor stands itself gives its vote to a candidate.

    There is one vote in an epoch, and none once its leader is known: that leader has been elected.
    """
    if voted is not None:
        return voted.covers(candidate)
    return leader_id is None and is_up_to_date
