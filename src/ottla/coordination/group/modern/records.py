"""What the records of all modern groups have in common: their version, and the order of tombstones."""

from collections.abc import Iterable
from typing import Any, Final

from ottla.wire.coordinator_records.framing import CoordinatorRecord

_VERSION: Final = 0
_TOMBSTONE: Final = -1


def record(key: Any, value: Any) -> CoordinatorRecord:
    """Return a record in the version that Kafka writes."""
    return CoordinatorRecord(key, value, _VERSION)


def tombstone(key: Any) -> CoordinatorRecord:
    """Return the record that deletes what has this key."""
    return CoordinatorRecord(key, None, _TOMBSTONE)


class Tombstones:
    """The tombstones of one kind of group, made of the types of its keys."""

    def __init__(self, *, group: Any, member: Any, target_epoch: Any, target: Any, current: Any) -> None:
        self._group = group
        self._member = member
        self._target_epoch = target_epoch
        self._target = target
        self._current = current

    def group(self, group_id: str) -> CoordinatorRecord:
        """Delete the group. Its members and its target must be gone before."""
        return tombstone(self._group(group_id=group_id))

    def member(self, group_id: str, member_id: str) -> CoordinatorRecord:
        """Delete a member. Its assignment and its target must be gone before."""
        return tombstone(self._member(group_id=group_id, member_id=member_id))

    def target_epoch(self, group_id: str) -> CoordinatorRecord:
        """Delete the target. What each member is to have must be gone before."""
        return tombstone(self._target_epoch(group_id=group_id))

    def target(self, group_id: str, member_id: str) -> CoordinatorRecord:
        """Delete what a member is to have."""
        return tombstone(self._target(group_id=group_id, member_id=member_id))

    def current(self, group_id: str, member_id: str) -> CoordinatorRecord:
        """Delete what a member has."""
        return tombstone(self._current(group_id=group_id, member_id=member_id))

    def all_of_member(self, group_id: str, member_id: str) -> list[CoordinatorRecord]:
        """Delete all records of a member, in the only order that Kafka accepts."""
        return [
            self.current(group_id, member_id),
            self.target(group_id, member_id),
            self.member(group_id, member_id),
        ]

    def members_and_target(self, group_id: str, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
        """Delete all members and the target of a group, in the only order that Kafka accepts."""
        ids = list(member_ids)
        return [
            *(self.current(group_id, member_id) for member_id in ids),
            *(self.target(group_id, member_id) for member_id in ids),
            self.target_epoch(group_id),
            *(self.member(group_id, member_id) for member_id in ids),
        ]
