"""Which replicas to move so that every broker holds and leads its share. Pure: nothing is asked or changed.

In this order, and each with as few moves as it takes:

1. Replicas leave brokers that are to be emptied.
2. Replicas of a partition come to lie in different racks, as far as there are racks.
3. Replicas go from brokers with much to brokers with little, by number, bytes and bytes a second alike.
4. The preferred leader of partitions changes, which moves no data, until all brokers lead about as much.

A replica moves only where that makes things clearly better, so a plan for what a plan has brought about is
empty.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count, islice
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ottla.model.ids import TopicPartition

_TOLERANCE: Final = 0.02
"""By which part of an average share two brokers may differ without a move that evens it out."""
_CANDIDATES_MAX: Final = 64
"""How many replicas of a broker are weighed against each other for one move."""
_NOTHING: Final = 1e-9
_BYTES_MIN: Final = 1 << 20
"""A replica counts as this many bytes at least, so that a few bytes here and there make no difference."""


class Node(NamedTuple):
    """A broker that may hold replicas."""

    node_id: int
    rack: str | None = None


class Placed(NamedTuple):
    """A partition: the brokers that hold it, its preferred leader first, and what a replica of it costs."""

    where: "TopicPartition"
    replicas: tuple[int, ...]
    size_bytes: int = 0
    bytes_per_s: float = 0.0


class Move(NamedTuple):
    """A change of a partition's replicas. If both have the same members, no data moves."""

    where: "TopicPartition"
    before: tuple[int, ...]
    after: tuple[int, ...]
    size_bytes: int

    @property
    def added(self) -> tuple[int, ...]:
        """The brokers that have to fetch the partition."""
        return tuple(one for one in self.after if one not in self.before)

    @property
    def bytes_to_copy(self) -> int:
        """How much has to be copied."""
        return len(self.added) * self.size_bytes


class TooFewBrokers(Exception):
    """A partition has more replicas than there would be brokers to hold them."""

    def __init__(self, where: "TopicPartition", replicas: int, brokers: int) -> None:
        super().__init__(
            f"{where} has {replicas} replicas, and only {brokers} brokers would be left for them"
        )


class Share(NamedTuple):
    """What a broker holds."""

    replicas: int = 0
    leaders: int = 0
    size_bytes: int = 0
    bytes_per_s: float = 0.0


def shares(partitions: Iterable[Placed], node_ids: Iterable[int]) -> dict[int, Share]:
    """Return what each broker holds and leads by preference."""
    found = dict.fromkeys(node_ids, Share())
    for partition in partitions:
        for position, node_id in enumerate(partition.replicas):
            share = found.get(node_id, Share())
            found[node_id] = Share(
                share.replicas + 1,
                share.leaders + (position == 0),
                share.size_bytes + partition.size_bytes,
                share.bytes_per_s + partition.bytes_per_s,
            )
    return found


def plan_moves(
    nodes: Collection[Node],
    partitions: Sequence[Placed],
    *,
    empty: Collection[int] = (),
    moves_replicas: bool = True,
    moves_max: int | None = None,
) -> list[Move]:
    """Return the moves that give every broker its share.

    Brokers in `empty` get nothing and lose all they have. Without `moves_replicas` only they lose replicas,
    and otherwise only leaders change. With `moves_max`, evening out ends after so many replicas. Raises
    `TooFewBrokers`.
    """
    planner = _Planner([node for node in nodes if node.node_id not in empty], partitions)
    planner.leave(empty)
    if moves_replicas:
        planner.spread_over_racks()
        planner.even_out(moves_max)
    planner.even_out_leaders()
    return [
        Move(partition.where, partition.replicas, after, partition.size_bytes)
        for partition, after in zip(partitions, planner.replicas, strict=True)
        if after != partition.replicas
    ]


class _Loads:
    """What brokers hold of one thing, such as bytes."""

    def __init__(self, node_ids: Iterable[int]) -> None:
        self.by_node: dict[int, float] = dict.fromkeys(node_ids, 0.0)

    def add(self, node_id: int, amount: float) -> None:
        if node_id in self.by_node:
            self.by_node[node_id] += amount

    @property
    def mean(self) -> float:
        return sum(self.by_node.values()) / len(self.by_node) if self.by_node else 0.0

    def gain(self, source: int, target: int, amount: float, mean: float) -> float:
        """Return by how much it evens out to move `amount`: how much the squares of shares go down."""
        if mean <= _NOTHING:
            return 0.0
        held = self.by_node.get(source)
        difference = (mean if held is None else held) - self.by_node[target] - amount
        return 2 * amount * difference / (mean * mean)


class _Planner:
    def __init__(self, nodes: Sequence[Node], partitions: Sequence[Placed]) -> None:
        self._racks = {node.node_id: node.rack for node in nodes}
        self._partitions = partitions
        self.replicas = [partition.replicas for partition in partitions]
        self._costs = [(1.0, float(_BYTES_MIN + one.size_bytes), one.bytes_per_s) for one in partitions]
        self._loads = [_Loads(self._racks) for _ in range(3)]
        for number, replicas in enumerate(self.replicas):
            for node_id in replicas:
                self._add(number, node_id, 1)

    def leave(self, empty: Collection[int]) -> None:
        """Move replicas away from brokers that are to be emptied."""
        for number, partition in enumerate(self._partitions):
            for node_id in partition.replicas:
                if node_id in empty:
                    target = self._best_target(number, node_id)
                    if target is None:
                        raise TooFewBrokers(partition.where, len(partition.replicas), len(self._racks))
                    self._move(number, node_id, target)

    def spread_over_racks(self) -> None:
        """Move replicas to racks that have none of their partition, where two share a rack."""
        for number, replicas in enumerate(self.replicas):
            for node_id in reversed(replicas):
                racks = Counter(self._rack_of(one) for one in self.replicas[number])
                if node_id in self._racks and racks[self._rack_of(node_id)] > 1:
                    elsewhere = [one for one in self._racks if racks[self._rack_of(one)] == 0]
                    target = self._lightest(number, node_id, elsewhere)
                    if target is not None:
                        self._move(number, node_id, target)

    def even_out(self, moves_max: int | None = None) -> None:
        """Move replicas from brokers with much to brokers with little, while that makes it clearly better."""
        held: dict[int, set[int]] = {node_id: set() for node_id in self._racks}
        for number, replicas in enumerate(self.replicas):
            for node_id in replicas:
                if node_id in held:
                    held[node_id].add(number)
        for _ in count() if moves_max is None else range(moves_max):
            found = self._best_move(held)
            if found is None:
                return
            number, source, target = found
            self._move(number, source, target)
            held[source].discard(number)
            held[target].add(number)

    def _best_move(self, held: Mapping[int, set[int]]) -> tuple[int, int, int] | None:
        """Return the move that evens out most between brokers that differ most, if one is worth it."""
        means = [loads.mean for loads in self._loads]
        by_weight = sorted(self._racks, key=lambda one: (self._weight(one, means), one))
        for target in by_weight:
            for source in reversed(by_weight):
                if source == target or self._weight(source, means) <= self._weight(target, means):
                    break
                movable = (one for one in sorted(held[source]) if self._may_move(one, source, target))
                worth = [
                    (gain, -number)
                    for number in islice(movable, _CANDIDATES_MAX)
                    for gain in (self._gain(number, source, target, means),)
                    if gain > 2 * _TOLERANCE * self._effort(number, means)
                ]
                if worth:
                    return -max(worth)[1], source, target
        return None

    def _effort(self, number: int, means: Sequence[float]) -> float:
        """Return what a replica is, in average shares."""
        costs = self._costs[number]
        return sum(cost / mean for cost, mean in zip(costs, means, strict=True) if mean > _NOTHING)

    def even_out_leaders(self) -> None:
        """Let other replicas be preferred leaders until all brokers lead about as much as they hold."""
        leaders = Counter(replicas[0] for replicas in self.replicas if replicas)
        is_changed = True
        while is_changed:
            is_changed = False
            for number, replicas in enumerate(self.replicas):
                able = [one for one in replicas if one in self._racks]
                if not able:
                    continue
                heir = min(able, key=lambda one: (leaders[one], replicas.index(one)))
                if leaders[replicas[0]] - leaders[heir] >= 2:
                    leaders[replicas[0]] -= 1
                    leaders[heir] += 1
                    self.replicas[number] = (heir, *(one for one in replicas if one != heir))
                    is_changed = True

    def _best_target(self, number: int, source: int) -> int | None:
        """Return who takes over a replica: in a rack of its own if there is one, and with little to hold."""
        others = [one for one in self.replicas[number] if one != source]
        free = [one for one in self._racks if one not in others and one != source]
        used = {self._rack_of(one) for one in others}
        elsewhere = [one for one in free if self._rack_of(one) not in used]
        return self._lightest(number, source, elsewhere or free)

    def _lightest(self, number: int, source: int, candidates: Iterable[int]) -> int | None:
        means = [loads.mean for loads in self._loads]
        free = [one for one in candidates if one not in self.replicas[number]]
        return max(free, key=lambda one: (self._gain(number, source, one, means), -one), default=None)

    def _may_move(self, number: int, source: int, target: int) -> bool:
        """Say whether a move leaves the replicas of a partition in as many racks as before."""
        replicas = self.replicas[number]
        if target in replicas:
            return False
        rack = self._rack_of(target)
        others = {self._rack_of(one) for one in replicas if one != source}
        return rack == self._rack_of(source) or rack not in others

    def _gain(self, number: int, source: int, target: int, means: Sequence[float]) -> float:
        costs = self._costs[number]
        return sum(
            loads.gain(source, target, cost, mean)
            for loads, cost, mean in zip(self._loads, costs, means, strict=True)
        )

    def _weight(self, node_id: int, means: Sequence[float]) -> float:
        return sum(
            loads.by_node[node_id] / mean
            for loads, mean in zip(self._loads, means, strict=True)
            if mean > _NOTHING
        )

    def _move(self, number: int, source: int, target: int) -> None:
        self.replicas[number] = tuple(target if one == source else one for one in self.replicas[number])
        self._add(number, source, -1)
        self._add(number, target, 1)

    def _add(self, number: int, node_id: int, sign: int) -> None:
        for loads, cost in zip(self._loads, self._costs[number], strict=True):
            loads.add(node_id, sign * cost)

    def _rack_of(self, node_id: int) -> str | int:
        """Return the rack of a broker. One without a rack counts as a rack of its own."""
        return self._racks.get(node_id) or node_id
