"""The states of a replica, and every legal change from one to another.

    unattached     no leader is known in the epoch; a vote may have been given
    prospective    asks whether it would be elected, without a new epoch (pre-vote, KIP-996)
    candidate      asks for votes in a new epoch, in which it has voted for itself
    leader         was elected
    follower       fetches from the leader it knows
    resigned       led the epoch, and leads no more; nobody else can lead it

A replica that does not vote is unattached or a follower. A leader that was removed from the voters resigns.
"""

from enum import Enum
from typing import Final


class StateName(Enum):
    """What a replica is at the moment."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


class Step(Enum):
    """How the epoch changes with the state."""

    SAME = "stays in its epoch"
    NEXT = "goes to the epoch after its own"
    LATER = "goes to any later epoch"


_UNATTACHED, _PROSPECTIVE, _CANDIDATE = StateName.UNATTACHED, StateName.PROSPECTIVE, StateName.CANDIDATE
_LEADER, _FOLLOWER, _RESIGNED = StateName.LEADER, StateName.FOLLOWER, StateName.RESIGNED

TRANSITIONS: Final[dict[tuple[StateName, StateName], dict[Step, str]]] = {
    (_UNATTACHED, _UNATTACHED): {
        Step.SAME: "gave its vote",
        Step.LATER: "heard of a later epoch",
    },
    (_UNATTACHED, _PROSPECTIVE): {Step.SAME: "heard of no leader for an election timeout"},
    (_UNATTACHED, _FOLLOWER): {
        Step.SAME: "found the leader of its epoch",
        Step.LATER: "found the leader of a later epoch",
    },
    (_PROSPECTIVE, _UNATTACHED): {
        Step.SAME: "would not be elected, and knows no leader",
        Step.LATER: "heard of a later epoch",
    },
    (_PROSPECTIVE, _PROSPECTIVE): {Step.SAME: "gave its vote"},
    (_PROSPECTIVE, _CANDIDATE): {Step.NEXT: "would be elected"},
    (_PROSPECTIVE, _FOLLOWER): {
        Step.SAME: "would not be elected, or found the leader of its epoch",
        Step.LATER: "found the leader of a later epoch",
    },
    (_CANDIDATE, _UNATTACHED): {Step.LATER: "heard of a later epoch"},
    (_CANDIDATE, _PROSPECTIVE): {Step.SAME: "was not elected within an election timeout"},
    (_CANDIDATE, _LEADER): {Step.SAME: "has the votes of a majority"},
    (_CANDIDATE, _FOLLOWER): {
        Step.SAME: "another candidate of the epoch was elected",
        Step.LATER: "found the leader of a later epoch",
    },
    (_LEADER, _UNATTACHED): {Step.LATER: "heard of a later epoch"},
    (_LEADER, _FOLLOWER): {Step.LATER: "found the leader of a later epoch"},
    (_LEADER, _RESIGNED): {Step.SAME: "stops, was removed, gives up, or a majority does not fetch"},
    (_FOLLOWER, _UNATTACHED): {Step.LATER: "heard of a later epoch"},
    (_FOLLOWER, _PROSPECTIVE): {Step.SAME: "could not fetch for a fetch timeout"},
    (_FOLLOWER, _FOLLOWER): {
        Step.SAME: "learned more endpoints of its leader",
        Step.LATER: "found the leader of a later epoch",
    },
    (_RESIGNED, _UNATTACHED): {
        Step.NEXT: "waited an election timeout",
        Step.LATER: "heard of a later epoch",
    },
    (_RESIGNED, _PROSPECTIVE): {Step.SAME: "starts again as the only voter"},
    (_RESIGNED, _FOLLOWER): {Step.LATER: "found the leader of a later epoch"},
}

VOTERS_ONLY: Final = frozenset({_PROSPECTIVE, _CANDIDATE, _LEADER})


def check_transition(
    old: StateName, old_epoch: int, new: StateName, new_epoch: int, *, may_stand: bool
) -> None:
    """See that a change of state is one of the table's."""
    steps = TRANSITIONS.get((old, new), {})
    is_legal = (
        (Step.SAME in steps and new_epoch == old_epoch)
        or (Step.NEXT in steps and new_epoch == old_epoch + 1)
        or (Step.LATER in steps and new_epoch > old_epoch)
    )
    assert is_legal, f"{old.value} in epoch {old_epoch} must not become {new.value} in epoch {new_epoch}"
    assert may_stand or new not in VOTERS_ONLY, f"an observer must not become {new.value}"
