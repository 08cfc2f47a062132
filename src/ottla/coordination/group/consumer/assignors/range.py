"""The range assignor: each topic is cut into one block of neighbouring partitions for each member.

The members stand in one row, static ones first, by the names that stay theirs. Along this row every topic is
cut. So topics with as many partitions, wanted by the same members, are cut alike: the member with partition 3
of one has partition 3 of the other, and streams that are joined by key meet in one member. What a member had
before plays no part, as in Kafka.
"""

from collections.abc import Mapping

from ottla.coordination.group.consumer.assignors.assignor import Partitions, Wish
from ottla.model.uuid import Uuid


def assign_ranges(wishes: Mapping[str, Wish], topics: Mapping[Uuid, int]) -> dict[str, Partitions]:
    """Cut every wanted topic into blocks."""
    row = sorted(wishes.values(), key=lambda wish: wish.rank)
    wanted_by: dict[Uuid, list[str]] = {}
    for wish in row:
        for topic in wish.topics:
            wanted_by.setdefault(topic, []).append(wish.member_id)
    result: dict[str, dict[Uuid, frozenset[int]]] = {member_id: {} for member_id in wishes}
    for topic in sorted(wanted_by):
        members = wanted_by[topic]
        quota, extras = divmod(topics[topic], len(members))
        start = 0
        for place, member_id in enumerate(members):
            stop = start + quota + (place < extras)
            if stop == start:
                break
            result[member_id][topic] = frozenset(range(start, stop))
            start = stop
    return dict(result)
