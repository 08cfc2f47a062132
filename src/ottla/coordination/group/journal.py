"""The recent past of each group: what a diagnosis needs to answer "why was it processed twice".

Kept in memory and bounded: so many entries for each group, and so many items for all groups together, where
a commit counts one for each of its partitions. The group that was quiet for longest is forgotten first.
Adding an entry makes one tuple and appends it: nothing is formatted before somebody reads.
"""

from collections import OrderedDict, deque
from enum import Enum
from typing import Any, NamedTuple


class Event(Enum):
    """What happened."""

    MEMBER_JOINED = "member joined"
    MEMBER_LEFT = "member left"
    REBALANCE_STARTED = "rebalance started"
    GENERATION_STARTED = "generation started"
    ASSIGNED = "assigned"
    COMMIT_ACCEPTED = "commit accepted"
    COMMIT_REFUSED = "commit refused"
    OFFSETS_DELETED = "offsets deleted"
    OFFSETS_EXPIRED = "offsets expired"
    GROUP_DELETED = "group deleted"


class Entry(NamedTuple):
    """One thing that happened to a group."""

    at_ms: int
    event: Event
    member_id: str
    generation: int
    detail: Any
    """A reason, members, assignments, or (partition, offset) pairs: whatever the event is about."""


class Journal:
    """The last entries of the groups that were active last."""

    def __init__(self, entries_max: int = 256, items_max: int = 500_000) -> None:
        self._entries_max = entries_max
        self._items_max = items_max
        self._items = 0
        self._groups: OrderedDict[str, deque[Entry]] = OrderedDict()

    def add(
        self,
        group_id: str,
        at_ms: int,
        event: Event,
        member_id: str = "",
        generation: int = -1,
        detail: Any = None,
    ) -> None:
        """Note that something happened."""
        entries = self._groups.get(group_id)
        if entries is None:
            entries = self._groups[group_id] = deque()
        else:
            self._groups.move_to_end(group_id)
        entries.append(Entry(at_ms, event, member_id, generation, detail))
        self._items += _items_of(detail)
        if len(entries) > self._entries_max:
            self._items -= _items_of(entries.popleft().detail)
        while self._items > self._items_max and len(self._groups) > 1:
            _, forgotten = self._groups.popitem(last=False)
            self._items -= sum(_items_of(entry.detail) for entry in forgotten)

    def of(self, group_id: str) -> list[Entry]:
        """Return what is still known of a group, oldest first."""
        return list(self._groups.get(group_id, ()))


def _items_of(detail: Any) -> int:
    return 1 + len(detail) if type(detail) is tuple else 1
