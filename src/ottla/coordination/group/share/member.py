"""A member of a share group, as its two records describe it: who it is, and what it has."""

from dataclasses import dataclass, field
from typing import Final

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.modern.member import LEFT
from ottla.wire.coordinator_records.share_group import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
)

STABLE: Final = 0
"""The only state of a member: it has nothing to give up, because others may read the same partitions."""


@dataclass(slots=True)
class Member:
    """One member. It changes by being replaced."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = LEFT
    state: int = STABLE
    assigned: Partitions = field(default_factory=dict)

    def with_metadata(self, value: ShareGroupMemberMetadataValue) -> "Member":
        """Return the member as a record describes it."""
        return Member(
            self.member_id,
            value.rack_id,
            value.client_id,
            value.client_host,
            frozenset(value.subscribed_topic_names),
            self.epoch,
            self.previous_epoch,
            self.state,
            self.assigned,
        )

    def with_current(self, value: ShareGroupCurrentMemberAssignmentValue) -> "Member":
        """Return the member with what a record says that it has."""
        assigned = {topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions}
        return self.with_assignment(value.member_epoch, value.previous_member_epoch, assigned, value.state)

    def without_current(self) -> "Member":
        """Return the member as it is without such a record."""
        return self.with_assignment(LEFT, LEFT, {})

    def with_assignment(
        self, epoch: int, previous_epoch: int, assigned: Partitions, state: int = STABLE
    ) -> "Member":
        """Return the member with what it has now."""
        return Member(
            self.member_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            self.topic_names,
            epoch,
            previous_epoch,
            state,
            assigned,
        )
