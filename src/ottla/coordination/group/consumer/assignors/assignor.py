"""What every assignor is given, and what it gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.model.uuid import Uuid

Partitions = Mapping[Uuid, frozenset[int]]
"""Partition numbers by topic. A topic without partitions is left out."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One member: the topics it wants, and what the last target gave it."""

    member_id: str
    topics: frozenset[Uuid]
    """Only topics that exist."""
    instance_id: str | None = None
    assigned: Partitions = field(default_factory=dict)

    @property
    def rank(self) -> tuple[bool, str]:
        """Sort by: static members first, by the name that stays theirs across restarts."""
        if self.instance_id is None:
            return (True, self.member_id)
        return (False, self.instance_id)


Assignor = Callable[[Mapping[str, Wish], Mapping[Uuid, int]], Mapping[str, Partitions]]
"""(wishes by member id, partition counts by topic) -> partitions by member id, for every member."""
