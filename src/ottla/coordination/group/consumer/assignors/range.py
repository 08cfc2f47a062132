"""The range assignor: each topic is cut into one block of neighbouring partitions for each member.

Topics with as many partitions, wanted by the same members, are cut alike: whoever has partition 3 of one has
partition 3 of the other, so streams that are joined by key meet in one member. Members keep their place in
the row across restarts if they are static, and as far as possible if they are not.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ottla.coordination.group.consumer.assignors.assignor import Wish
from ottla.model.uuid import Uuid


def assign_ranges(
    wishes: Mapping[str, Wish], topics: Mapping[Uuid, int]
) -> dict[str, dict[Uuid, frozenset[int]]]:
    """Cut every wanted topic into blocks."""
    result: dict[str, dict[Uuid, frozenset[int]]] = {member_id: {} for member_id in wishes}
    alike: dict[tuple[tuple[str, ...], int], list[Uuid]] = defaultdict(list)
    for topic in sorted(topics):
        members = tuple(sorted(member_id for member_id, wish in wishes.items() if topic in wish.topics))
        if members:
            alike[members, topics[topic]].append(topic)
    for (members, partition_count), same in alike.items():
        row = _row(members, wishes, same)
        quota, extras = divmod(partition_count, len(row))
        start = 0
        for place, member_id in enumerate(row):
            stop = start + quota + (place < extras)
            if stop > start:
                for topic in same:
                    result[member_id][topic] = frozenset(range(start, stop))
            start = stop
    return result


def _row(members: Sequence[str], wishes: Mapping[str, Wish], topics: Sequence[Uuid]) -> list[str]:
    """Return the members in the order of their blocks.

    Who has a block already is sorted by where it begins, so that a newcomer goes to the end and a leaver only
    moves the borders. Members without one follow by their names.
    """

    def first_partition(member_id: str) -> int | None:
        numbers = [min(have) for topic in topics if (have := wishes[member_id].assigned.get(topic))]
        return min(numbers, default=None)

    def order(member_id: str) -> tuple[bool, int, tuple[bool, str]]:
        first = first_partition(member_id)
        return (first is None, first or 0, wishes[member_id].rank)

    return sorted(members, key=order)
