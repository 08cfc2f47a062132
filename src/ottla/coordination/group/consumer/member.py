"""A member of a consumer group, as its two records describe it: who it is, and what it has."""

from dataclasses import dataclass, field
from typing import Final

from ottla.coordination.group.consumer.reconciliation import Assignment, Held, MemberState
from ottla.coordination.group.modern.member import LEFT
from ottla.wire.coordinator_records.consumer_group import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    CurrentTopicPartitions,
)

_NEVER_ASSIGNED: Final = Assignment()
_GONE: Final = Assignment(member_epoch=LEFT, previous_epoch=LEFT)
_STATES: Final = {state.value: state for state in MemberState}


@dataclass(slots=True)
class Member:
    """One member. It changes by being replaced.

    Nobody sets its fields. It is not frozen because making it would take four times as long, and each step of
    each member makes two.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    """Empty when the member subscribes to none."""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    """What a member that still uses the classic protocol has said when it joined."""
    assignment: Assignment = field(default_factory=lambda: _NEVER_ASSIGNED)

    @property
    def epoch(self) -> int:
        """The epoch that the member was given."""
        return self.assignment.member_epoch

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "Member":
        """Return the member as a record describes it."""
        return Member(
            self.member_id,
            value.instance_id,
            value.rack_id,
            value.client_id,
            value.client_host,
            frozenset(value.subscribed_topic_names),
            value.subscribed_topic_regex or "",
            value.rebalance_timeout_ms,
            value.server_assignor,
            value.classic_member_metadata,
            self.assignment,
        )

    def with_current(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "Member":
        """Return the member with what a record says that it has."""
        return self.with_assignment(assignment_of_record(value))

    def without_current(self) -> "Member":
        """Return the member as it is without such a record."""
        return self.with_assignment(_GONE)

    def with_assignment(self, assignment: Assignment) -> "Member":
        """Return the member with what it has now. (Written out: `replace` takes three times as long.)"""
        return Member(
            self.member_id,
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            self.topic_names,
            self.topic_regex,
            self.rebalance_timeout_ms,
            self.server_assignor,
            self.classic,
            assignment,
        )

    def says_the_same_as(self, other: "Member") -> bool:
        """Say whether two members differ, if at all, in what they have, as after each step to a target."""
        return (
            self.topic_names is other.topic_names
            and self.topic_regex is other.topic_regex
            and self.server_assignor is other.server_assignor
            and self.classic is other.classic
            and self.instance_id is other.instance_id
        )


def assignment_of_record(value: ConsumerGroupCurrentMemberAssignmentValue) -> Assignment:
    """Return what a record says a member has."""
    return Assignment(
        value.member_epoch,
        value.previous_member_epoch,
        _STATES.get(value.state, MemberState.UNKNOWN),
        _held(value.assigned_partitions, value.member_epoch),
        _held(value.partitions_pending_revocation, value.member_epoch),
    )


def _held(topics: tuple[CurrentTopicPartitions, ...], member_epoch: int) -> Held:
    # Before 4.3 records had no epochs for the partitions: the member's stands for them.
    default = max(member_epoch, 0)
    held = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            held[topic.topic_id] = dict.fromkeys(topic.partitions, default)
        else:
            held[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return held
