"""Groups that Apache Kafka left and that this node does not coordinate: share groups and streams groups.

They are known by their records, so that their ids are not taken for free, nobody commits in their name, and
their offsets do not expire. A node that coordinates them again finds them as they were.
"""

from typing import Any, Final

from ottla.coordination.group.kinds import Commit, Group, GroupKind, Replay
from ottla.coordination.group.offsets.committed_offsets import CommittedOffset
from ottla.coordination.group.refusal import Refused
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records import share_group, streams_group
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode


class ForeignGroup:
    """A group of another kind. Implements `Group`."""

    def __init__(self, group_id: str, kind: GroupKind) -> None:
        self.group_id = group_id
        self._kind = kind
        self.member_ids: set[str] = set()

    @property
    def kind(self) -> GroupKind:
        """The kind of group."""
        return self._kind

    @property
    def state_name(self) -> str:
        """Whether it had members when its coordinator was last heard of."""
        return "Stable" if self.member_ids else "Empty"

    @property
    def is_empty(self) -> bool:
        """It is never empty in the sense that it may be taken away."""
        return False

    @property
    def protocol_type_name(self) -> str:
        """The protocol type, by the name that ListGroups shows: that of the kind."""
        return self._kind.value

    def check_commit(self, commit: Commit) -> None:
        """Only an administrator may commit, and only where nobody reads."""
        if self._kind is GroupKind.SHARE:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)
        if commit.generation >= 0 or self.member_ids:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_commit_to(self, commit: Commit, topic_id: Uuid, partition: int) -> None:
        """A client that may commit may do so for every partition."""

    def check_fetch(self, _member_id: str | None, _member_epoch: int) -> None:
        """Anybody may see the offsets."""

    def check_offset_delete(self) -> None:
        """Refuse: whether somebody reads is not known here."""
        raise Refused(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        """Refuse: which records belong to the group is for its own coordinator to know."""
        raise Refused(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, _topic: str) -> bool:
        """In doubt somebody reads everything."""
        return True

    def expiry_base_ms(self, _committed: CommittedOffset) -> int | None:
        """Nothing ages."""
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        """None are known: nothing takes such a group away here."""
        return []


def foreign_replays(groups: dict[str, Group]) -> dict[type[Any], Replay]:
    """Return how the records of share groups and streams groups are applied, by the type of the key."""

    def replay_with(kind: GroupKind, is_member: bool) -> Replay:
        return lambda key, value, _producer: _replay(groups, kind, is_member, key, value)

    return {key_type: replay_with(*about) for key_type, about in _APPLY.items()}


def _replay(groups: dict[str, Group], kind: GroupKind, is_member: bool, key: Any, value: Any) -> None:
    group = groups.get(key.group_id)
    if not isinstance(group, ForeignGroup):
        if value is None:
            return
        group = groups[key.group_id] = ForeignGroup(key.group_id, kind)
    if not is_member:
        if value is None:
            del groups[key.group_id]
    elif value is None:
        group.member_ids.discard(key.member_id)
    else:
        group.member_ids.add(key.member_id)


_APPLY: Final[dict[type[Any], tuple[GroupKind, bool]]] = {
    share_group.ShareGroupMetadataKey: (GroupKind.SHARE, False),
    share_group.ShareGroupMemberMetadataKey: (GroupKind.SHARE, True),
    streams_group.StreamsGroupMetadataKey: (GroupKind.STREAMS, False),
    streams_group.StreamsGroupMemberMetadataKey: (GroupKind.STREAMS, True),
}
"""Of which kind the records tell, and whether they are about a member."""
