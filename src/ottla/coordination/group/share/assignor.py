"""The simple assignor: members share partitions evenly, and keep what they have where that is even.

With M members and P partitions each partition gets ceil(M / P) members, and the members get these places in
equal parts, give or take one. Where all members want the same topics the partitions of all topics are shared
out together, otherwise topic by topic, as Kafka does it.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.model.uuid import Uuid

_Place = tuple[Uuid, int]


def assign(
    wanted: Mapping[str, frozenset[Uuid]],
    had: Mapping[str, Partitions],
    assignable: Mapping[Uuid, Iterable[int]],
) -> dict[str, Partitions]:
    """Return what each member should have: by the topics it wants, and by what it had."""
    held = {member: _places(had.get(member, {})) for member in wanted}
    shares: dict[str, set[_Place]] = {member: set() for member in wanted}
    for members, topics in _rounds(wanted):
        places = sorted(_places({topic: assignable.get(topic, ()) for topic in topics}))
        for member, share in _share_out(members, places, held).items():
            shares[member] |= share
    return {member: _partitions(share) for member, share in shares.items()}


def _rounds(wanted: Mapping[str, frozenset[Uuid]]) -> list[tuple[list[str], frozenset[Uuid]]]:
    """Return who takes part in sharing out what."""
    subscriptions = set(wanted.values())
    if len(subscriptions) == 1:
        return [(list(wanted), subscriptions.pop())]
    topics = sorted(frozenset[Uuid]().union(*subscriptions))
    return [([one for one in wanted if topic in wanted[one]], frozenset((topic,))) for topic in topics]


def _share_out(
    members: Sequence[str], places: Sequence[_Place], held: Mapping[str, set[_Place]]
) -> dict[str, set[_Place]]:
    if not places or not members:
        return {}
    sharing = -(-len(members) // len(places))
    quotas = _quotas(members, sharing * len(places))
    counts = dict.fromkeys(places, 0)
    shares: dict[str, set[_Place]] = {}
    for member in members:
        kept = [place for place in sorted(held[member]) if counts.get(place, sharing) < sharing]
        shares[member] = set(kept[: quotas[member]])
        for place in shares[member]:
            counts[place] += 1
    unfilled = deque(member for member in members if len(shares[member]) < quotas[member])
    for place in places:
        passed = []
        while counts[place] < sharing and unfilled:
            member = unfilled.popleft()
            if place in shares[member]:
                passed.append(member)
                continue
            shares[member].add(place)
            counts[place] += 1
            if len(shares[member]) < quotas[member]:
                unfilled.append(member)
        unfilled.extendleft(reversed(passed))
    return shares


def _quotas(members: Sequence[str], total: int) -> dict[str, int]:
    """Divide `total` among the members. The parts differ by one at most."""
    ends = [-(-total * number // len(members)) for number in range(len(members) + 1)]
    return {member: ends[number + 1] - ends[number] for number, member in enumerate(members)}


def _places(partitions: Mapping[Uuid, Iterable[int]]) -> set[_Place]:
    return {(topic, number) for topic, numbers in partitions.items() for number in numbers}


def _partitions(places: Iterable[_Place]) -> Partitions:
    partitions: dict[Uuid, set[int]] = {}
    for topic, number in places:
        partitions.setdefault(topic, set()).add(number)
    return {topic: frozenset(numbers) for topic, numbers in partitions.items()}
