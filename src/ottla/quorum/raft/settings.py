"""What a node knows about its quorum: who it is, whom it may ask, and how long it waits."""

from typing import NamedTuple, Protocol

from ottla.quorum.raft.voter_sets import EMPTY_VOTER_SET, ReplicaKey, VoterSet
from ottla.quorum.voters import Endpoint


class Moment(NamedTuple):
    """A point in time. Timers go by `ms`, which never goes back; what is written down goes by `wall_ms`."""

    ms: int
    wall_ms: int


class Chance(Protocol):
    """Where chance comes from. `random.Random` is one."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 up to below `stop`."""


class RaftSettings(NamedTuple):
    """The defaults are Apache Kafka's, each named after its setting `controller.quorum.*`."""

    cluster_id: str
    me: ReplicaKey
    # Where this node's controller listens; empty on a node that is no controller.
    endpoints: tuple[Endpoint, ...]
    # The first of `controller.listener.names`: the one by which replicas of the quorum reach each other.
    listener: str
    # Host and port of those to ask for the leader. Without any, the static voters are asked.
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    # They count as long as no record names the voters (kraft.version 0).
    static_voters: VoterSet = EMPTY_VOTER_SET
    can_become_voter: bool = True
    auto_join: bool = False
    fetch_timeout_ms: int = 2000
    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_wait_ms_max: int = 500
    fetch_bytes_max: int = 1 << 20
    fetch_snapshot_bytes_max: int = 1 << 20
