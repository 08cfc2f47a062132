"""Members of groups in the clients' hostile world, and what a group owes them.

Records of a topic without transactions have offsets without gaps. So it can be seen at once whether one is
left out: whoever reads it, nothing before it may be new to the whole group. And the callbacks say what a
member owns: a share is taken on once, let go of once, and nothing else is handed over.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Final

from ottla.client.consumer import Consumer, ConsumerRecord
from ottla.model.ids import TopicPartition

_NOTHING_YET: Final = -1
Dawdle = Callable[[], Awaitable[None]]


class Wrong(AssertionError):
    """Something that must hold does not."""


def must(holds: bool, complaint: str) -> None:
    """Complain if something does not hold that must."""
    if not holds:
        raise Wrong(complaint)


class Group:
    """How far the members of one group have come together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: set[bytes | None] = set()
        self.members: dict[int, Consumer] = {}
        self.wrong: Wrong | None = None
        """What a member has found. Its own call may have been cut off just then."""
        self._ends: dict[TopicPartition, int] = defaultdict(int)

    def take(self, record: ConsumerRecord) -> None:
        """Take note of a record that one of the members has got."""
        end = self._ends[record.where]
        self.must(record.offset <= end, f"{record.where} was read up to {end}, then {record.offset}")
        self._ends[record.where] = max(end, record.offset + 1)
        self.values.add(record.value)

    def must(self, holds: bool, complaint: str) -> None:
        """Complain for good, whoever is in the middle of a call."""
        if not holds:
            self.wrong = self.wrong or Wrong(f"group {self.name}: {complaint}")
            raise self.wrong

    def is_shared_out(self, partitions: frozenset[TopicPartition]) -> bool:
        """Say whether each partition has one reader, and each member has partitions."""
        shares = [consumer.assignment() for consumer in self.members.values()]
        return all(shares) and sum(map(len, shares)) == len(partitions) == len(frozenset().union(*shares))

    def shares(self) -> str:
        """Say who has what."""
        found = {number: sorted(consumer.assignment()) for number, consumer in self.members.items()}
        return ", ".join(
            f"{number} has {[where.partition for where in share]}" for number, share in found.items()
        )


class Member:
    """One life of a member: what it owns by what its callbacks were told, and what it is handed."""

    def __init__(self, group: Group, dawdle: Dawdle) -> None:
        self._group = group
        self._dawdle = dawdle
        self._owned: dict[TopicPartition, int] = {}
        """With the last offset of each."""
        self._is_told = False

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Take on a share."""
        both = partitions & self._owned.keys()
        self._group.must(not both, f"{sorted(both)} was assigned twice")
        self._owned |= dict.fromkeys(partitions, _NOTHING_YET)
        await self._be_told()

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Let go of a share, or lose it."""
        strange = partitions - self._owned.keys()
        self._group.must(not strange, f"{sorted(strange)} was taken away from one that does not own it")
        for where in partitions:
            del self._owned[where]
        await self._be_told()

    async def _be_told(self) -> None:
        self._group.must(not self._is_told, "two callbacks of one member run at once")
        self._is_told = True
        try:
            await self._dawdle()
        finally:
            self._is_told = False

    def handed_over(self, records: list[ConsumerRecord]) -> None:
        """See that records are its own, and follow those before."""
        self._group.must(not (records and self._is_told), "records came during a callback")
        for record in records:
            before = self._owned.get(record.where)
            self._group.must(before is not None, f"{record.where} was handed to one that does not own it")
            if before is not None and before != _NOTHING_YET:
                follows = record.offset == before + 1
                self._group.must(follows, f"{record.where}: {before} is followed by {record.offset}")
            self._owned[record.where] = record.offset
            self._group.take(record)
