"""A share group (KIP-932): all of it is described by its records.

The group's epoch increases when members, subscriptions or the subscribed topics change, or when partitions
have got their state. The target is computed for an epoch of the group, and each member gets to its target in
one step: several members may read a partition, so nobody has to wait until another gives it up.
"""

from collections import Counter
from typing import Final

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.kinds import Commit, GroupKind
from ottla.coordination.group.modern.group import ModernGroup, count
from ottla.coordination.group.offsets.committed_offsets import CommittedOffset
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.share.member import Member
from ottla.coordination.group.share.records import TOMBSTONES, state_topics_tombstone
from ottla.coordination.group.share.state_topics import StateTopics
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode

NO_PARTITIONS: Final[Partitions] = {}


class ShareGroup(ModernGroup[Member, Partitions]):
    """A group in memory. Implements `Group`."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.state_topics = StateTopics()
        self.has_state_topics = False
        """Whether there is a record of the topics with state."""
        # Derived from the members.
        self.name_counts: Counter[str] = Counter()
        # Whether some partition with a state is in nobody's target; None when that has to be looked at again.
        self._lacks_assignment: bool | None = None
        # In no record.
        self.are_topics_checked = False
        """Whether the subscribed topics are known to be those of the hash."""
        self.initializing_since_ms = 0
        """When the initialization of states was last begun. It is begun again after a restart."""

    # Members

    def new_member(self, member_id: str) -> Member:
        """Return a member of which only the id is known."""
        return Member(member_id)

    def put(self, member: Member) -> None:
        """Add a member, or replace what is known of it."""
        self._lacks_assignment = None
        self._count(self.members.get(member.member_id), -1)
        self.members[member.member_id] = member
        self._count(member, 1)

    def remove(self, member_id: str) -> None:
        """Remove a member. One that is not there is fine."""
        self._lacks_assignment = None
        self._count(self.members.pop(member_id, None), -1)

    def _count(self, member: Member | None, by: int) -> None:
        if member is not None:
            count(self.name_counts, member.topic_names, by)

    def names_with(self, old: Member | None, new: Member | None) -> set[str]:
        """Return what the group subscribes to once `new` has replaced `old`."""
        counts = Counter(self.name_counts)
        for member, by in ((old, -1), (new, 1)):
            if member is not None:
                count(counts, member.topic_names, by)
        return set(counts)

    def is_subscribed_to(self, topic: str) -> bool:
        """Say whether a member reads the topic."""
        return topic in self.name_counts

    def put_target(self, member_id: str, target: Partitions | None) -> None:
        """Replace what a member is to have. None removes it."""
        self._lacks_assignment = None
        super().put_target(member_id, target)

    def put_state_topics(self, state: StateTopics | None) -> None:
        """Take over which topics have states; None if there is no record of that any more."""
        self._lacks_assignment = None
        self.has_state_topics = state is not None
        self.state_topics = state or StateTopics()

    def lacks_assignment(self) -> bool:
        """Say whether a subscribed topic has partitions with a state that are in nobody's target.

        Each heartbeat asks. In a group of a thousand members it takes a while to find out.
        """
        if self._lacks_assignment is None:
            self._lacks_assignment = self._find_unassigned()
        return self._lacks_assignment

    def _find_unassigned(self) -> bool:
        if not self.state_topics.initialized or not self.name_counts:
            return False
        assigned: dict[Uuid, set[int]] = {}
        for target in self.targets.values():
            for topic, numbers in target.items():
                assigned.setdefault(topic, set()).update(numbers)
        return any(
            name in self.name_counts and assigned.get(topic, set()) != set(partitions)
            for topic, (name, partitions) in self.state_topics.initialized.items()
        )

    # What all kinds of groups have

    @property
    def kind(self) -> GroupKind:
        """The kind of group."""
        return GroupKind.SHARE

    @property
    def protocol_type_name(self) -> str:
        """The protocol type, by the name that ListGroups shows."""
        return "share"

    @property
    def state_name(self) -> str:
        """The state, by the name that clients see."""
        return "Stable" if self.members else "Empty"

    @property
    def expires(self) -> bool:
        """Never: what its members are yet to get begins at positions that would be lost with it."""
        return False

    def check_commit(self, _commit: Commit) -> None:
        """Refuse: a share group commits no offsets."""
        raise self._is_no_consumer_group()

    def check_commit_to(self, _commit: Commit, _topic: str, _topic_id: Uuid, _partition: int) -> None:
        """Refuse: a share group commits no offsets."""
        raise self._is_no_consumer_group()

    def check_fetch(self, _member_id: str | None, _member_epoch: int) -> None:
        """Refuse: a share group has no committed offsets."""
        raise self._is_no_consumer_group()

    def check_offset_delete(self) -> None:
        """Refuse: a share group has no committed offsets."""
        raise self._is_no_consumer_group()

    def expiry_base_ms(self, _committed: CommittedOffset) -> int | None:
        """Nothing expires: there are no committed offsets, and the group stays until it is deleted."""
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group, in the only order that Kafka accepts."""
        return [
            *TOMBSTONES.members_and_target(self.group_id, self.members),
            state_topics_tombstone(self.group_id),
            TOMBSTONES.group(self.group_id),
        ]

    def _is_no_consumer_group(self) -> Refused:
        return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")
