"""The recent past of each group: what a diagnosis needs to answer "why was it processed twice".

Kept in memory, bounded for each group and for the number of groups. Adding an entry makes one tuple and
appends it: nothing is formatted before somebody reads.
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
    """A reason, a member's assignment, or the offsets: whatever the event is about, as it was at hand."""


class Journal:
    """The last entries of the groups that were active last."""

    def __init__(self, entries_max: int = 256, groups_max: int = 10_000) -> None:
        self._entries_max = entries_max
        self._groups_max = groups_max
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
            entries = self._groups[group_id] = deque(maxlen=self._entries_max)
            if len(self._groups) > self._groups_max:
                self._groups.popitem(last=False)
        entries.append(Entry(at_ms, event, member_id, generation, detail))

    def of(self, group_id: str) -> list[Entry]:
        """Return what is still known of a group, oldest first."""
        return list(self._groups.get(group_id, ()))
