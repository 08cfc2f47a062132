"""What a replica remembers in each of its states. `transitions` says which may follow which."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

from ottla.model.ids import Offset
from ottla.model.uuid import ZERO_UUID
from ottla.quorum.quorum_state import QuorumState
from ottla.quorum.raft.election import Tally
from ottla.quorum.raft.progress import Progress
from ottla.quorum.raft.snapshot_files import Download
from ottla.quorum.raft.transitions import StateName
from ottla.quorum.raft.voter_sets import ReplicaKey, VoterSet
from ottla.quorum.voters import Endpoint

NEVER: Final = 1 << 62
"""A time that does not come."""


@dataclass(slots=True)
class Unattached:
    """No leader can be asked. Its id may be known all the same, without an address."""

    name: ClassVar[StateName] = StateName.UNATTACHED
    epoch: int
    deadline_ms: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None
    leader_endpoints: tuple[Endpoint, ...] = ()


@dataclass(slots=True)
class Prospective:
    """Asks whether it would be elected. The leader that it knew may still be there."""

    name: ClassVar[StateName] = StateName.PROSPECTIVE
    epoch: int
    deadline_ms: int
    tally: Tally
    leader_id: int | None = None
    voted: ReplicaKey | None = None
    leader_endpoints: tuple[Endpoint, ...] = ()
    # Nobody listens where the leader did.
    is_leader_gone: bool = False


@dataclass(slots=True)
class Candidate:
    """Has voted for itself."""

    name: ClassVar[StateName] = StateName.CANDIDATE
    epoch: int
    deadline_ms: int
    tally: Tally
    voted: ReplicaKey | None
    leader_id: None = None
    leader_endpoints: tuple[Endpoint, ...] = ()
    # It cannot win, and does not wait for the end of the election timeout.
    tries_again: bool = False


@dataclass(slots=True)
class Follower:
    """Fetches from its leader."""

    name: ClassVar[StateName] = StateName.FOLLOWER
    epoch: int
    deadline_ms: int
    leader_id: int
    leader_endpoints: tuple[Endpoint, ...]
    # When to look next whether the leader knows this replica as it is.
    update_ms: int
    voted: ReplicaKey | None = None
    # Whether this leader has answered a fetch. If so, it is refused that another be elected.
    has_fetched: bool = False
    # Whether nobody listens where the leader did.
    is_leader_gone: bool = False
    # In a static quorum this replica describes itself to each leader once.
    has_updated_leader: bool = False
    download: Download | None = None


@dataclass(slots=True)
class PendingAdd:
    """A voter that is being added. It is asked for its levels, and then in the log at `last_offset`."""

    token: Any
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    deadline_ms: int
    is_acked_when_committed: bool
    last_offset: Offset | None = None


@dataclass(slots=True)
class PendingRemove:
    """A voter that is being removed."""

    token: Any
    deadline_ms: int
    last_offset: Offset


@dataclass(slots=True)
class Leader:
    """Appends, and counts who has what."""

    name: ClassVar[StateName] = StateName.LEADER
    epoch: int
    leader_id: int
    leader_endpoints: tuple[Endpoint, ...]
    start_offset: Offset
    progress: Progress
    check_quorum_ms: int
    begin_epoch_ms: int
    voted: ReplicaKey | None = None
    # None until a record of this epoch is committed.
    high_watermark: Offset | None = None
    add: PendingAdd | None = None
    remove: PendingRemove | None = None
    is_resigning: bool = False
    # What voters of a static quorum said about themselves. It is needed to make the quorum dynamic.
    volatile_voters: VoterSet | None = None


@dataclass(slots=True)
class Resigned:
    """Leads no more, but must not vote for another in this epoch, nor lead it again."""

    name: ClassVar[StateName] = StateName.RESIGNED
    epoch: int
    deadline_ms: int
    leader_id: int
    unacknowledged: list[int]
    successors: list[ReplicaKey] = field(default_factory=list)
    leader_endpoints: tuple[Endpoint, ...] = ()
    voted: ReplicaKey | None = None


State: TypeAlias = Unattached | Prospective | Candidate | Leader | Follower | Resigned


def election_of(state: State) -> QuorumState:
    """Return what must be on disk before anybody hears of a state."""
    leader_id = -1 if state.leader_id is None else state.leader_id
    if state.voted is None:
        return QuorumState(leader_id, state.epoch, -1, ZERO_UUID)
    return QuorumState(leader_id, state.epoch, state.voted.node_id, state.voted.directory_id)
