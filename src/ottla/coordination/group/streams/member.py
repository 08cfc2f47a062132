"""A member of a streams group, as its two records describe it: who it is, and what it has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from ottla.coordination.group.modern.member import LEFT
from ottla.coordination.group.streams.tasks import NOTHING_HELD, HeldTasks, TasksWithEpochs, tasks_of
from ottla.wire.coordinator_records.streams_group import (
    CurrentTaskIds,
    Endpoint,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
)


class MemberState(IntEnum):
    """The state of a member, by the number in its record."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


_STATES: Final = {state.value: state for state in MemberState}


@dataclass(slots=True)
class Assignment:
    """What a member has, and in which epoch. Nobody changes one."""

    member_epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    held: HeldTasks = NOTHING_HELD
    pending_revocation: HeldTasks = NOTHING_HELD

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Say whether nothing is left to do for the target of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch


_NEVER_ASSIGNED: Final = Assignment()
_GONE: Final = Assignment(member_epoch=LEFT, previous_epoch=LEFT)


@dataclass(slots=True)
class Member:
    """One member. It changes by being replaced; nobody sets its fields."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    """Where the application of the member answers queries about its state."""
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assignment: Assignment = field(default_factory=lambda: _NEVER_ASSIGNED)

    @property
    def epoch(self) -> int:
        """The epoch that the member was given."""
        return self.assignment.member_epoch

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> "Member":
        """Return the member as a record describes it."""
        return Member(
            self.member_id,
            value.instance_id,
            value.rack_id,
            value.client_id,
            value.client_host,
            value.rebalance_timeout_ms,
            value.topology_epoch,
            value.process_id,
            value.user_endpoint,
            {tag.key: tag.value for tag in value.client_tags},
            self.assignment,
        )

    def with_current(self, value: StreamsGroupCurrentMemberAssignmentValue) -> "Member":
        """Return the member with what a record says that it has."""
        return self.with_assignment(assignment_of_record(value))

    def without_current(self) -> "Member":
        """Return the member as it is without such a record."""
        return self.with_assignment(_GONE)

    def with_assignment(self, assignment: Assignment) -> "Member":
        """Return the member with what it has now."""
        return Member(
            self.member_id,
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.topology_epoch,
            self.process_id,
            self.user_endpoint,
            self.client_tags,
            assignment,
        )


def assignment_of_record(value: StreamsGroupCurrentMemberAssignmentValue) -> Assignment:
    """Return what a record says a member has."""
    epoch = value.member_epoch
    return Assignment(
        epoch,
        value.previous_member_epoch,
        _STATES.get(value.state, MemberState.UNKNOWN),
        HeldTasks(
            _with_epochs(value.active_tasks, epoch),
            tasks_of(value.standby_tasks),
            tasks_of(value.warmup_tasks),
        ),
        HeldTasks(
            _with_epochs(value.active_tasks_pending_revocation, epoch),
            tasks_of(value.standby_tasks_pending_revocation),
            tasks_of(value.warmup_tasks_pending_revocation),
        ),
    )


def _with_epochs(task_ids: tuple[CurrentTaskIds, ...], member_epoch: int) -> TasksWithEpochs:
    # Before 4.3 records had no epochs for the tasks: the member's stands for them.
    tasks: dict[str, dict[int, int]] = {}
    for one in task_ids:
        epochs = one.assignment_epochs
        if epochs is None or len(epochs) != len(one.partitions):
            tasks[one.subtopology_id] = dict.fromkeys(one.partitions, member_epoch)
        else:
            tasks[one.subtopology_id] = dict(zip(one.partitions, epochs, strict=True))
    return tasks
