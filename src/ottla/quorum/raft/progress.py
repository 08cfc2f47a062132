"""What a leader knows of its replicas: how far each has come, what is therefore committed, and who is alive.

An offset counts when its replica has synced everything below. For a follower that is the offset it fetches
from; for the leader itself it is how far its own log was synced.
"""

from dataclasses import dataclass, field
from typing import Final

from ottla.model.ids import NO_OFFSET, Offset
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.voter_sets import ReplicaKey, VoterSet, key_of

OBSERVER_SESSION_MS: Final = 300_000
NOT_YET: Final = Moment(-1, -1)
_CAUGHT_UP_WITHIN_MS: Final = 3_600_000


@dataclass(slots=True)
class ReplicaProgress:
    """One replica, as its leader sees it. -1 stands for a time that has not come."""

    key: ReplicaKey
    end_offset: Offset | None = None
    last_fetch: Moment = NOT_YET
    last_caught_up: Moment = NOT_YET
    leader_end_at_fetch: Offset = NO_OFFSET

    def fetched(self, offset: Offset, leader_end: Offset, now: Moment) -> None:
        """Take note of a fetch from `offset` on."""
        if offset >= leader_end:
            self.last_caught_up = now
        elif 0 < self.leader_end_at_fetch <= offset:
            # It has now what the leader had when it fetched before. So it had caught up with that moment.
            self.last_caught_up = max(self.last_caught_up, self.last_fetch)
        self.leader_end_at_fetch = leader_end
        self.last_fetch = now
        self.end_offset = offset


@dataclass(slots=True)
class Progress:
    """All replicas of a leader."""

    me: ReplicaKey
    voters: dict[int, ReplicaProgress] = field(default_factory=dict)
    observers: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    # Those who have fetched since a majority last had.
    fetched_voters: set[int] = field(default_factory=set)

    def set_voters(self, voters: VoterSet) -> None:
        """Keep what is known of each replica, and count those as voters that are."""
        known = {one.key: one for one in self.voters.values()} | self.observers
        self.voters = {}
        for voter in voters.voters:
            key = key_of(voter)
            # A voter of a static quorum becomes the one with the directory that fetched.
            found = known.pop(key, None) or known.pop(ReplicaKey(key.node_id), None)
            if found is None:
                found = ReplicaProgress(key)
            found.key = key
            self.voters[voter.voter_id] = found
        self.observers = known
        self.fetched_voters.intersection_update(self.voters)

    @property
    def counts_me(self) -> bool:
        """Say whether the leader is a voter. One that was removed leads on until that is committed."""
        mine = self.voters.get(self.me.node_id)
        return mine is not None and mine.key.covers(self.me)

    def is_voter(self, key: ReplicaKey) -> bool:
        voter = self.voters.get(key.node_id)
        return voter is not None and voter.key.covers(key)

    def of(self, key: ReplicaKey) -> ReplicaProgress:
        """Return what is known of a replica, a voter or not."""
        if self.is_voter(key):
            return self.voters[key.node_id]
        return self.observers.setdefault(key, ReplicaProgress(key))

    def synced(self, offset: Offset) -> None:
        """Take note of how far the leader's own log is synced."""
        self.of(self.me).end_offset = offset

    def find_committed(self) -> Offset | None:
        """Return the offset that a majority of the voters has reached, or None if too many are unknown."""
        ends = [one.end_offset for one in self.voters.values() if one.end_offset is not None]
        needed = len(self.voters) // 2 + 1
        return sorted(ends, reverse=True)[needed - 1] if len(ends) >= needed else None

    def heard_from(self, key: ReplicaKey) -> bool:
        """Take note that a replica is alive. Says whether a majority has been since the last time it did."""
        if self.is_voter(key):
            self.fetched_voters.add(key.node_id)
        needed = len(self.voters) // 2 + 1 - self.counts_me
        if len(self.fetched_voters) < needed:
            return False
        self.fetched_voters.clear()
        return True

    def is_caught_up(self, key: ReplicaKey, now: Moment) -> bool:
        """Say whether an observer had once all that the leader had, and is still there."""
        observer = self.observers.get(key)
        if observer is None or observer.last_caught_up.ms < 0:
            return False
        return observer.last_fetch.ms > now.ms - _CAUGHT_UP_WITHIN_MS

    def silent_voters(self, since_ms: int) -> list[ReplicaKey]:
        """Return the voters that have not fetched after a time."""
        others = [one for one in self.voters.values() if not one.key.covers(self.me)]
        return [one.key for one in others if one.last_fetch.ms <= since_ms]

    def successors(self) -> list[ReplicaKey]:
        """Return the other voters, those first that have come farthest."""
        others = [one for one in self.voters.values() if not one.key.covers(self.me)]
        others.sort(key=lambda one: -1 if one.end_offset is None else one.end_offset, reverse=True)
        return [one.key for one in others]

    def forget_silent_observers(self, now: Moment) -> None:
        """Forget observers that have not fetched for long."""
        for key, observer in list(self.observers.items()):
            if key != self.me and now.ms - observer.last_fetch.ms >= OBSERVER_SESSION_MS:
                del self.observers[key]
