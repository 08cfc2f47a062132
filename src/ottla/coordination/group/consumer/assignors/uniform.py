"""The uniform assignor: everybody gets as many partitions as the others, and keeps what it had if it can.

When all members want the same topics, nobody has two partitions more than anybody else. When they do not, no
single move of a partition could make it more even. Partitions that need not move do not.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ottla.coordination.group.consumer.assignors.assignor import Wish
from ottla.model.uuid import Uuid

_Partition = tuple[Uuid, int]


def assign_uniformly(
    wishes: Mapping[str, Wish], topics: Mapping[Uuid, int]
) -> dict[str, dict[Uuid, frozenset[int]]]:
    """Spread the partitions of all wanted topics over the members that want them."""
    wanted = {topic for wish in wishes.values() for topic in wish.topics if topic in topics}
    everything = [(topic, number) for topic in sorted(wanted) for number in range(topics[topic])]
    owned, free = _keep(wishes, everything)
    if len({wish.topics for wish in wishes.values()}) <= 1:
        _spread_evenly(owned, free)
    else:
        _spread_by_interest(wishes, owned, free)
        _even_out(wishes, owned)
    return {member_id: _by_topic(partitions) for member_id, partitions in owned.items()}


def _keep(
    wishes: Mapping[str, Wish], everything: list[_Partition]
) -> tuple[dict[str, list[_Partition]], list[_Partition]]:
    """Let everybody keep what exists and is wanted; return that, and what nobody has."""
    existing, taken = set(everything), set()
    owned: dict[str, list[_Partition]] = {}
    for member_id in sorted(wishes):
        wish = wishes[member_id]
        kept = []
        for topic in sorted(wish.assigned):
            for number in sorted(wish.assigned[topic]):
                partition = (topic, number)
                if topic in wish.topics and partition in existing and partition not in taken:
                    taken.add(partition)
                    kept.append(partition)
        owned[member_id] = kept
    return owned, [partition for partition in everything if partition not in taken]


def _spread_evenly(owned: dict[str, list[_Partition]], free: list[_Partition]) -> None:
    """Fill everybody up to the same number. Those who have most may keep the one that is left over."""
    if not owned:
        return
    total = len(free) + sum(map(len, owned.values()))
    quota, extras = divmod(total, len(owned))
    by_need = sorted(owned, key=lambda member_id: (-len(owned[member_id]), member_id))
    goals = {member_id: quota + (place < extras) for place, member_id in enumerate(by_need)}
    for member_id in by_need:
        free.extend(owned[member_id][goals[member_id] :])
        del owned[member_id][goals[member_id] :]
    free.sort(reverse=True)
    for member_id in by_need:
        missing = goals[member_id] - len(owned[member_id])
        owned[member_id].extend(free.pop() for _ in range(missing))


def _spread_by_interest(
    wishes: Mapping[str, Wish], owned: dict[str, list[_Partition]], free: Iterable[_Partition]
) -> None:
    """Give each free partition to the member with the fewest among those that want its topic."""
    interested = _interested(wishes)
    # Topics that few want come first: later there might be nobody with room for them.
    for partition in sorted(free, key=lambda item: (len(interested[item[0]]), item)):
        least = min(interested[partition[0]], key=lambda member_id: (len(owned[member_id]), member_id))
        owned[least].append(partition)


def _even_out(wishes: Mapping[str, Wish], owned: dict[str, list[_Partition]]) -> None:
    """Move partitions from those who have many to those who have few, until no move makes it more even."""
    interested = _interested(wishes)
    moved = True
    while moved:
        moved = False
        for giver in sorted(owned, key=lambda member_id: (-len(owned[member_id]), member_id)):
            for partition in list(owned[giver]):
                taker = min(
                    interested[partition[0]], key=lambda member_id: (len(owned[member_id]), member_id)
                )
                if len(owned[taker]) + 1 < len(owned[giver]):
                    owned[giver].remove(partition)
                    owned[taker].append(partition)
                    moved = True


def _interested(wishes: Mapping[str, Wish]) -> dict[Uuid, list[str]]:
    interested: dict[Uuid, list[str]] = defaultdict(list)
    for member_id in sorted(wishes):
        for topic in wishes[member_id].topics:
            interested[topic].append(member_id)
    return interested


def _by_topic(partitions: Iterable[_Partition]) -> dict[Uuid, frozenset[int]]:
    numbers: dict[Uuid, set[int]] = defaultdict(set)
    for topic, number in partitions:
        numbers[topic].add(number)
    return {topic: frozenset(numbers[topic]) for topic in sorted(numbers)}
