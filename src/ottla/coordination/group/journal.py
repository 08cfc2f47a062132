"""The recent past of each group: what a diagnosis needs to answer "why was it processed twice".

A commit counts as much as it has partitions; see `ottla.coordination.runtime.journal` for the bounds.
"""

from enum import Enum
from typing import Any, Final, NamedTuple

from ottla.coordination.runtime.journal import BoundedJournal

_new_tuple: Final = tuple.__new__


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
    """A reason, members or assignments: whatever the event is about. Of a commit two tuples: the partitions,
    and their offsets in the same order. Who commits again and again shares the first."""


class Journal(BoundedJournal[Entry]):
    """The last entries of the groups that were active last."""

    def add(
        self,
        group_id: str,
        at_ms: int,
        event: Event,
        member_id: str = "",
        generation: int = -1,
        detail: Any = None,
        items: int = 0,
    ) -> None:
        """Note that something happened. `items` is how much it counts for, if the detail does not say."""
        if not items:
            items = 1 + len(detail) if type(detail) is tuple else 1
        # As a plain tuple: the constructor of a named one takes as long as all the rest.
        entry: Entry = _new_tuple(Entry, (at_ms, event, member_id, generation, detail))
        self.append(group_id, entry, items)
