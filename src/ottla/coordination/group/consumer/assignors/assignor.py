"""What every assignor is given, and what it gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.model.uuid import Uuid

Partitions = Mapping[Uuid, frozenset[int]]
"""Partition numbers by topic."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One member: the topics it wants, and what the last target gave it."""

    member_id: str
    topics: frozenset[Uuid]
    instance_id: str | None = None
    assigned: Partitions = field(default_factory=dict)

    @property
    def rank(self) -> tuple[bool, str]:
        """Sort by: static members first, by the name that stays theirs across restarts."""
        return (self.instance_id is None, self.instance_id or self.member_id)


Assignor = Callable[[Mapping[str, Wish], Mapping[Uuid, int]], dict[str, dict[Uuid, frozenset[int]]]]
"""(wishes by member id, partition counts by topic) -> partitions by member id, for every member."""
