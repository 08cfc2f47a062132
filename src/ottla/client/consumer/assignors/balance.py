"""The heart of both sticky assignors: as even as can be, and moving as little as can be.

Three steps. Each member keeps what it owned and may still have. What nobody has goes to the member with the
least of those that want the topic. Then, while it makes the shares more even, one partition wanders from a
fuller member to an emptier one, along a chain of members if the two ends have no topic in common. When no
chain is left that ends at a member with at least two partitions less than where it starts, none is more even.

Deviation: Kafka's own goes through the partitions again and again, and with unlike subscriptions may stop
earlier, where a single move does not help. Racks are not looked at.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from ottla.client.consumer.assignors.assignor import Members, PartitionCounts, Shares
from ottla.model.ids import TopicPartition

Owned = Mapping[str, tuple[Sequence[TopicPartition], int]]
"""What each member says it owned, and in which generation."""


def assign_evenly(members: Members, partitions: PartitionCounts, owned: Owned) -> Shares:
    """Share out the partitions."""
    shares = _Shares(members, partitions)
    for member_id, where in _kept(members, partitions, owned):
        shares.give(member_id, where)
    kept = dict(shares.owner)
    _fill(shares, members, partitions)
    _even_out(shares, kept)
    return {
        member_id: sorted(where for held in topics.values() for where in held)
        for member_id, topics in shares.held.items()
    }


class _Shares:
    """Who has what, by topic."""

    def __init__(self, members: Members, partitions: PartitionCounts) -> None:
        self.wanted = {
            member_id: [topic for topic in sorted(set(members[member_id].topics)) if topic in partitions]
            for member_id in sorted(members)
        }
        self.takers: dict[str, list[str]] = {}
        for member_id, topics in self.wanted.items():
            for topic in topics:
                self.takers.setdefault(topic, []).append(member_id)
        self.held: dict[str, dict[str, list[TopicPartition]]] = {
            member_id: {topic: [] for topic in topics} for member_id, topics in self.wanted.items()
        }
        self.load = dict.fromkeys(self.wanted, 0)
        self.owner: dict[TopicPartition, str] = {}

    def give(self, member_id: str, where: TopicPartition) -> None:
        self.held[member_id][where.topic].append(where)
        self.load[member_id] += 1
        self.owner[where] = member_id

    def move(self, where: TopicPartition, target: str) -> None:
        source = self.owner[where]
        self.held[source][where.topic].remove(where)
        self.load[source] -= 1
        self.give(target, where)


def _kept(
    members: Members, partitions: PartitionCounts, owned: Owned
) -> Iterable[tuple[str, TopicPartition]]:
    """Return who keeps what. The newest claim counts; where two are equally new, both are stale."""
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member_id in sorted(owned):
        held, generation = owned[member_id]
        wanted = set(members[member_id].topics)
        for where in dict.fromkeys(held):
            if where.topic in wanted and 0 <= where.partition < partitions.get(where.topic, 0):
                claims.setdefault(where, []).append((generation, member_id))
    for where in sorted(claims):
        newest = max(generation for generation, _ in claims[where])
        claimants = [member_id for generation, member_id in claims[where] if generation == newest]
        if len(claimants) == 1:
            yield claimants[0], where


def _fill(shares: _Shares, members: Members, partitions: PartitionCounts) -> None:
    """Give what nobody has to the member with the least. Topics that few members want come first."""
    order = {member_id: index for index, member_id in enumerate(sorted(members))}
    for topic in sorted(shares.takers, key=lambda name: (len(shares.takers[name]), name)):
        # Loads only grow here, so an entry that is out of date is put back where it belongs.
        heap = [(shares.load[member_id], order[member_id], member_id) for member_id in shares.takers[topic]]
        heapq.heapify(heap)
        for number in range(partitions[topic]):
            where = TopicPartition(topic, number)
            if where in shares.owner:
                continue
            _, index, member_id = heap[0]
            shares.give(member_id, where)
            heapq.heapreplace(heap, (shares.load[member_id], index, member_id))


def _even_out(shares: _Shares, kept: Mapping[TopicPartition, str]) -> None:
    """Move partitions along chains from fuller members to emptier ones until none of them helps."""
    settled: set[str] = set()
    while True:
        fullest = max(
            (member_id for member_id in shares.load if member_id not in settled),
            key=lambda member_id: shares.load[member_id],
            default=None,
        )
        if fullest is None:
            return
        chain = _find_chain(shares, fullest)
        if chain is None:
            # Nothing that this member reaches is two below it, and moves elsewhere do not change that.
            settled.add(fullest)
            continue
        settled.clear()
        for source, topic, target in reversed(chain):
            held = shares.held[source][topic]
            # What was only just given out may move freely; what was owned before should stay.
            shares.move(min(held, key=lambda where: (kept.get(where) == source, -where.partition)), target)


def _find_chain(shares: _Shares, start: str) -> list[tuple[str, str, str]] | None:
    """Return the shortest chain (from, topic, to) that ends at a member at least two below the start."""
    goal = shares.load[start] - 2
    came_by: dict[str, tuple[str, str]] = {}
    seen_topics: set[str] = set()
    seen = {start}
    queue = deque([start])
    while queue:
        member_id = queue.popleft()
        for topic, held in shares.held[member_id].items():
            if not held or topic in seen_topics:
                continue
            seen_topics.add(topic)
            emptiest = None
            for target in shares.takers[topic]:
                if target in seen:
                    continue
                seen.add(target)
                came_by[target] = (member_id, topic)
                queue.append(target)
                if shares.load[target] <= goal and (
                    emptiest is None or shares.load[target] < shares.load[emptiest]
                ):
                    emptiest = target
            if emptiest is not None:
                return _chain_to(emptiest, start, came_by)
    return None


def _chain_to(end: str, start: str, came_by: Mapping[str, tuple[str, str]]) -> list[tuple[str, str, str]]:
    chain: list[tuple[str, str, str]] = []
    while end != start:
        source, topic = came_by[end]
        chain.append((source, topic, end))
        end = source
    chain.reverse()
    return chain
