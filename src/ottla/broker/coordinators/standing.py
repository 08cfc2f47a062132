"""Whether a node still leads a partition, or another one may lead it without this node's knowledge.

A node that is cut off goes on leading in its own eyes, until it reads in the metadata that another one leads.
Writes need no care: followers of the next leader do not copy them, so they are never acknowledged. But what
is answered from memory can be old. A consumer that begins at an old committed offset processes records twice.

1. The controller lets nobody take over from a broker for half a second after a heartbeat that it has answered
   with "caught up": neither at the end of a session, nor because the process seems to be gone, nor to bring a
   preferred leader back. And it says so only to a broker that has read all that was taken from it until then,
   for instance while it was fenced (`Membership.stands_until_ms`). So if the last heartbeat is older than
   that, another one is sent. Normally that is enough.
2. After that, all replicas that could lead instead have to fetch twice. The first fetch may have been on its
   way for long. The second one is sent after the answer to the first, by a broker that follows this leader.
   What a new leader acknowledges, if there is one by now, is acknowledged later than that. So groups go on
   while there is no controller.
3. Otherwise the client has to look for the coordinator again.

Deviation: Kafka answers from memory in each case.

A leader that an operator moves elsewhere learns of it as soon as the metadata gets there. Until then it may
still answer.
"""

from collections.abc import Mapping
from typing import Final

from ottla.broker.coordinators.coordinators_node import CoordinatorsNode
from ottla.broker.deferred import Deferred
from ottla.broker.logs.partition import Partition
from ottla.world.scheduler import Scheduler

FETCHES: Final = 2
LOOK_MS: Final = 50
WAIT_MS_MAX: Final = 2_000
"""Followers fetch every half second if there is nothing new, unless configured otherwise."""


class Standing:
    """Finds out whether this node still leads."""

    def __init__(self, broker: CoordinatorsNode, scheduler: Scheduler) -> None:
        self._broker = broker
        self._scheduler = scheduler

    def confirm(self, partition: Partition) -> Deferred[bool]:
        """Say whether this node leads a partition at a moment from now on."""
        confirmed: Deferred[bool] = Deferred()
        others = self._find_others(partition)
        now_ms = self._broker.clock.monotonic_ms()
        if not others or now_ms < self._broker.membership.stands_until_ms:
            confirmed.resolve(partition.is_leader)
            return confirmed
        leader_epoch, fetches = partition.leader_epoch, _count_fetches(partition)

        def look() -> None:
            if confirmed.is_done:
                return
            if not partition.is_leader or partition.leader_epoch != leader_epoch:
                confirmed.resolve(False)
                return
            if self._broker.clock.monotonic_ms() < self._broker.membership.stands_until_ms:
                confirmed.resolve(True)
                return
            counts = _count_fetches(partition)
            if all(counts.get(one, 0) >= fetches.get(one, 0) + FETCHES for one in others):
                confirmed.resolve(True)
            elif self._broker.clock.monotonic_ms() - now_ms >= WAIT_MS_MAX:
                confirmed.resolve(False)
            else:
                self._scheduler.call_later(LOOK_MS, look)

        def answered() -> None:
            # Only once: who looks now and then does so already.
            is_standing = self._broker.clock.monotonic_ms() < self._broker.membership.stands_until_ms
            if is_standing and not confirmed.is_done:
                confirmed.resolve(partition.is_leader and partition.leader_epoch == leader_epoch)

        look()
        if not confirmed.is_done:
            self._broker.membership.ask_whether_it_stands(answered)
        return confirmed

    def _find_others(self, partition: Partition) -> frozenset[int]:
        """Return who can be elected in place of this node."""
        if partition.leading is None:
            return frozenset()
        topic = self._broker.image.topics.find_by_id(partition.topic_id)
        record = None if topic is None else topic.partitions.get(partition.index)
        eligible = () if record is None else record.eligible_leader_replicas or ()
        return partition.leading.maximal_in_sync.union(eligible) - {self._broker.node_id}


def _count_fetches(partition: Partition) -> Mapping[int, int]:
    followers = {} if partition.leading is None else partition.leading.followers
    return {one: follower.fetches for one, follower in followers.items()}
