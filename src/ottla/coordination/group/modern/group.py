"""A modern group in memory: its epochs, its members, and what each of them is to have.

The group's epoch increases when members, subscriptions or topics change. The target is computed for an epoch
of the group, and each member follows in its own epoch. So `member epoch <= assignment epoch <= group epoch`.

What a target consists of, and what a group derives from its members, differs between the kinds.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from ottla.coordination.group.modern.member import ModernMember
from ottla.coordination.group.refusal import Refused
from ottla.wire.error_code import ErrorCode

FIRST_EPOCH: Final = 1

M = TypeVar("M", bound=ModernMember)
"""A member."""
T = TypeVar("T")
"""The target of a member."""


class ModernGroup(ABC, Generic[M, T]):
    """What all kinds have. Only the replay of records changes it."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """When the target was computed; 0 when that is not known."""
        self.members: dict[str, M] = {}
        self.targets: dict[str, T] = {}

    @abstractmethod
    def new_member(self, member_id: str) -> M:
        """Return a member of which only the id is known."""

    @abstractmethod
    def put(self, member: M) -> None:
        """Add a member, or replace what is known of it."""

    @abstractmethod
    def remove(self, member_id: str) -> None:
        """Remove a member. One that is not there is fine."""

    def put_target(self, member_id: str, target: T | None) -> None:
        """Replace what a member is to have. None removes it."""
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def expires(self) -> bool:
        """Whether the group goes by itself once it has neither members nor committed offsets."""
        return True

    def check_delete(self) -> None:
        """Refuse to delete a group that has members."""
        if self.members:
            raise Refused(ErrorCode.NON_EMPTY_GROUP)


def count(counts: Counter[str], names: Iterable[str], by: int) -> None:
    """Add to the counts of names. A name whose count becomes 0 is removed."""
    for name in names:
        new_count = counts[name] + by
        if new_count:
            counts[name] = new_count
        else:
            del counts[name]
