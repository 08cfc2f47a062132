"""The uniform assignor: everybody gets as many partitions as the others, and keeps what it had if it can.

When all members want the same topics, nobody has two partitions more than anybody else, and no more
partitions move than that takes. When they do not, partitions are moved until no move would make it more even,
and no chain of moves in which each member passes on what it got. Partitions that nobody has are dealt out one
by one, so that the load of a busy topic is shared.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import chain

from ottla.coordination.group.consumer.assignors.assignor import Partitions, Wish
from ottla.model.uuid import Uuid

# Subscriptions that overlap in a chain may need a round for each of its links. This many even out all but
# contrived groups; after them the group is left a little uneven rather than the broker busy.
_ROUNDS_MAX = 64
# To look for a chain is to look at all subscriptions once.
_CHAINS_MAX = 64


def assign_uniformly(wishes: Mapping[str, Wish], topics: Mapping[Uuid, int]) -> dict[str, Partitions]:
    """Spread the partitions of all wanted topics over the members that want them."""
    shares = _Shares(wishes, topics)
    if len({wish.topics for wish in wishes.values()}) <= 1:
        _spread_evenly(shares)
    else:
        wanted_by = _wanted_by(wishes)
        _spread_by_interest(shares, wanted_by)
        _even_out(shares, wanted_by)
        _even_out_by_chains(shares, wanted_by)
    return shares.result()


class _Shares:
    """Who has what while the assignor works."""

    def __init__(self, wishes: Mapping[str, Wish], topics: Mapping[Uuid, int]) -> None:
        """Let everybody keep what it had, if that exists and is still wanted; the rest is free."""
        self.owned: dict[str, dict[Uuid, set[int]]] = {}
        self.load: dict[str, int] = {}
        wanted = set(chain.from_iterable(wish.topics for wish in wishes.values()))
        self.free: dict[Uuid, set[int]] = {topic: set(range(topics[topic])) for topic in sorted(wanted)}
        for member_id in sorted(wishes):
            wish = wishes[member_id]
            kept: dict[Uuid, set[int]] = {}
            for topic, numbers in wish.assigned.items():
                if topic in wish.topics and (still := self.free[topic].intersection(numbers)):
                    kept[topic] = still
                    self.free[topic] -= still
            self.owned[member_id] = kept
            self.load[member_id] = sum(map(len, kept.values()))

    def free_partitions(self) -> Iterator[tuple[Uuid, int]]:
        """Return what nobody has, topic by topic."""
        for topic, numbers in self.free.items():
            for number in sorted(numbers):
                yield topic, number

    def give(self, member_id: str, topic: Uuid, number: int) -> None:
        """Give a partition that nobody has to a member."""
        self.owned[member_id].setdefault(topic, set()).add(number)
        self.load[member_id] += 1

    def move(self, topic: Uuid, giver: str, taker: str) -> None:
        """Move the last partition that the giver has of a topic."""
        number = max(self.owned[giver][topic])
        self._take(giver, topic, number)
        self.give(taker, topic, number)

    def shrink(self, member_id: str, goal: int) -> None:
        """Take from a member what it has above its goal; it keeps some of every topic as far as possible."""
        if self.load[member_id] <= goal:
            return
        by_place = sorted(
            (place, topic, number)
            for topic, numbers in self.owned[member_id].items()
            for place, number in enumerate(sorted(numbers))
        )
        for _, topic, number in by_place[goal:]:
            self._take(member_id, topic, number)
            self.free[topic].add(number)

    def result(self) -> dict[str, Partitions]:
        """Return what everybody has now."""
        return {
            member_id: {topic: frozenset(numbers) for topic, numbers in owned.items()}
            for member_id, owned in self.owned.items()
        }

    def _take(self, member_id: str, topic: Uuid, number: int) -> None:
        numbers = self.owned[member_id][topic]
        numbers.remove(number)
        self.load[member_id] -= 1
        if not numbers:
            del self.owned[member_id][topic]


def _spread_evenly(shares: _Shares) -> None:
    """Bring everybody to the same number. Those who have most may keep the one that is left over."""
    if not shares.owned:
        return
    total = sum(shares.load.values()) + sum(map(len, shares.free.values()))
    quota, extras = divmod(total, len(shares.owned))
    by_load = sorted(shares.owned, key=lambda member_id: (-shares.load[member_id], member_id))
    goals = {member_id: quota + (place < extras) for place, member_id in enumerate(by_load)}
    for member_id in by_load:
        shares.shrink(member_id, goals[member_id])
    hungry = deque(member_id for member_id in by_load if shares.load[member_id] < goals[member_id])
    for topic, number in shares.free_partitions():
        member_id = hungry.popleft()
        shares.give(member_id, topic, number)
        if shares.load[member_id] < goals[member_id]:
            hungry.append(member_id)
    assert not hungry, "the goals add up to all partitions"


def _spread_by_interest(shares: _Shares, wanted_by: Mapping[Uuid, list[str]]) -> None:
    """Give each free partition to the member with the fewest among those that want its topic."""

    def few_choices_first(topic: Uuid) -> tuple[float, int, Uuid]:
        members = len(wanted_by[topic])
        return (-len(shares.free[topic]) / members, members, topic)

    for topic in sorted(filter(shares.free.__getitem__, shares.free), key=few_choices_first):
        least = [(shares.load[member_id], member_id) for member_id in wanted_by[topic]]
        heapify(least)
        for number in sorted(shares.free[topic]):
            load, member_id = heappop(least)
            shares.give(member_id, topic, number)
            heappush(least, (load + 1, member_id))


def _even_out(shares: _Shares, wanted_by: Mapping[Uuid, list[str]]) -> None:
    """Move partitions from those who have many to those who have few, until no move makes it more even."""
    topics = [topic for topic in sorted(wanted_by) if len(wanted_by[topic]) > 1]
    for _ in range(_ROUNDS_MAX):
        if sum(_even_out_topic(shares, topic, wanted_by[topic]) for topic in topics) == 0:
            return


def _even_out_topic(shares: _Shares, topic: Uuid, members: Iterable[str]) -> int:
    """Move partitions of one topic; return how many. Each move makes the sum of squared loads smaller."""
    load, owned = shares.load, shares.owned
    takers = [(load[member_id], member_id) for member_id in members]
    givers = [(-load[member_id], member_id) for member_id in members if topic in owned[member_id]]
    heapify(takers)
    heapify(givers)
    moved = 0
    while givers:
        most, giver = givers[0]
        least, taker = takers[0]
        if -most != load[giver] or topic not in owned[giver]:
            heappop(givers)
        elif least != load[taker]:
            heappop(takers)
        elif least + 1 >= -most:
            break
        else:
            shares.move(topic, giver, taker)
            for member_id in (giver, taker):
                heappush(takers, (load[member_id], member_id))
                heappush(givers, (-load[member_id], member_id))
            moved += 1
    return moved


_Link = tuple[str, Uuid, str]
"""Who passes on a partition of which topic to whom."""


def _even_out_by_chains(shares: _Shares, wanted_by: Mapping[Uuid, list[str]]) -> None:
    """Let partitions go from those who have many to those who have few, by way of others who keep as many."""
    for _ in range(_CHAINS_MAX):
        links = _find_chain(shares, wanted_by)
        if not links:
            return
        for giver, topic, taker in links:
            shares.move(topic, giver, taker)


def _find_chain(shares: _Shares, wanted_by: Mapping[Uuid, list[str]]) -> list[_Link]:
    """Find a chain that ends with a member who has two less than the first, at least. Its last link is first.

    Those with most are tried first. Members that they have reached without success need not be tried again:
    nobody behind them has few enough, and they themselves have no more than who reached them.
    """
    load = shares.load
    reached: set[str] = set()
    reached_topics: set[Uuid] = set()
    for first in sorted(load, key=lambda member_id: (-load[member_id], member_id)):
        if first in reached:
            continue
        reached.add(first)
        link_to: dict[str, _Link] = {}
        waiting = deque((first,))
        while waiting:
            giver = waiting.popleft()
            for topic in sorted(shares.owned[giver].keys() - reached_topics):
                reached_topics.add(topic)
                for taker in wanted_by[topic]:
                    if taker in reached:
                        continue
                    reached.add(taker)
                    link_to[taker] = (giver, topic, taker)
                    if load[taker] <= load[first] - 2:
                        return _links_back(link_to, taker)
                    waiting.append(taker)
    return []


def _links_back(link_to: Mapping[str, _Link], last: str) -> list[_Link]:
    links = []
    while last in link_to:
        links.append(link_to[last])
        last = links[-1][0]
    return links


def _wanted_by(wishes: Mapping[str, Wish]) -> dict[Uuid, list[str]]:
    wanted_by: dict[Uuid, list[str]] = {}
    for member_id in sorted(wishes):
        for topic in wishes[member_id].topics:
            wanted_by.setdefault(topic, []).append(member_id)
    return wanted_by
