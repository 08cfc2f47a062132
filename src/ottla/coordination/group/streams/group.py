"""A streams group (KIP-1071): all that counts is described by its records.

The group's epoch increases whenever members, the topics of its topology or its configs change. The target is
computed for an epoch of the group; each member follows in its own epoch. So
`member epoch <= assignment epoch <= group epoch`.

Which process holds a task is derived from the members, and kept up to date with every change. What is in
memory only is lost when the coordinator moves, and comes back with the next heartbeats: how the topology fits
the topics, who asked for the application to be shut down, and the epoch of the endpoints.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ottla.coordination.group.kinds import Commit, GroupKind
from ottla.coordination.group.modern.offset_rules import OffsetRules
from ottla.coordination.group.streams.internal_topics import ConfiguredTopology
from ottla.coordination.group.streams.member import Member
from ottla.coordination.group.streams.records import TOMBSTONES, topology_tombstone
from ottla.coordination.group.streams.tasks import NO_TARGET, HeldTasks, TargetTasks, Tasks
from ottla.coordination.group.streams.topology import Topology
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord

NOT_VALIDATED: Final = -1
"""The topology epoch of a group whose topology has not been found to fit the topics yet."""
_NO_PROCESSES: Final[frozenset[str]] = frozenset()


class GroupState(Enum):
    """The state of a streams group, by the name that clients see."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class StreamsGroup(OffsetRules[Member, TargetTasks]):
    """A group in memory."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}
        """The configs for which the epoch holds."""
        self.topology: Topology | None = None
        # In no record.
        self.configured: ConfiguredTopology | None = None
        self.topics_are_checked = False
        """Whether the topics are known to be those of the hash."""
        self.shutdown_requested_by: str | None = None
        self.endpoint_epoch = 0
        # Derived from the members: which process has a task.
        self._active: dict[tuple[str, int], str] = {}
        self._copies: dict[tuple[str, int], set[str]] = {}

    # Members

    def new_member(self, member_id: str) -> Member:
        """Return a member of which only the id is known."""
        return Member(member_id)

    def put(self, member: Member) -> None:
        """Take a member in, or what has changed of it."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is not None:
            self._let_go(old)
        self._hold(member)

    def remove(self, member_id: str) -> None:
        """Let a member go. One that is not there is fine."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self._let_go(old)
        if not self.members:
            self.shutdown_requested_by = None

    def find_target(self, member_id: str) -> TargetTasks:
        """Return what a member should have."""
        return self.targets.get(member_id, NO_TARGET)

    # Tasks

    def is_active(self, subtopology: str, partition: int) -> bool:
        """Say whether a process has a task as an active one, or has yet to give it up."""
        return (subtopology, partition) in self._active

    def is_active_on(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Say whether this process has a task as an active one, or has yet to give it up."""
        return self._active.get((subtopology, partition)) == process_id

    def is_copied_on(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Say whether this process has a standby or warm-up task, or has yet to give it up."""
        return process_id in self._copies.get((subtopology, partition), _NO_PROCESSES)

    def _hold(self, member: Member) -> None:
        process = member.process_id
        for tasks in (member.assignment.held, member.assignment.pending_revocation):
            for subtopology, numbers in tasks.active.items():
                for number in numbers:
                    self._active[subtopology, number] = process
            for task in _copies(tasks):
                self._copies.setdefault(task, set()).add(process)

    def _let_go(self, member: Member) -> None:
        process = member.process_id
        for tasks in (member.assignment.held, member.assignment.pending_revocation):
            for subtopology, numbers in tasks.active.items():
                for number in numbers:
                    # After a compaction an old owner may be replayed after the new one: leave it the task.
                    if self._active.get((subtopology, number)) == process:
                        del self._active[subtopology, number]
            for task in _copies(tasks):
                processes = self._copies.get(task)
                if processes is not None:
                    processes.discard(process)
                    if not processes:
                        del self._copies[task]

    # Offsets

    def find_assigned_epoch(
        self, member: Member, commit: Commit, topic: str, topic_id: Uuid, partition: int
    ) -> int | None:
        """Return the epoch in which the partition's task was assigned to a member, or None if it was not."""
        subtopology = None if self.topology is None else self.topology.by_source_topic.get(topic)
        if subtopology is None or (commit.is_transactional and topic_id == ZERO_UUID):
            return None
        has = member.assignment
        since = has.held.active.get(subtopology, {}).get(partition)
        if since is None:
            since = has.pending_revocation.active.get(subtopology, {}).get(partition)
        return since

    def is_subscribed_to(self, topic: str) -> bool:
        """Say whether the group reads the topic. Without members it reads nothing."""
        return bool(self.members) and self.topology is not None and topic in self.topology.by_source_topic

    # What all kinds of groups have

    @property
    def kind(self) -> GroupKind:
        """The kind of group."""
        return GroupKind.STREAMS

    @property
    def protocol_type_name(self) -> str:
        """The protocol type, by the name that ListGroups shows."""
        return "streams"

    @property
    def state(self) -> GroupState:
        """How far the group has come. It takes a look at all members, so heartbeats do not ask."""
        if not self.members:
            return GroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return GroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        epoch = self.assignment_epoch
        settled = all(member.assignment.is_reconciled_to(epoch) for member in self.members.values())
        return GroupState.STABLE if settled else GroupState.RECONCILING

    @property
    def state_name(self) -> str:
        """The state, by the name that clients see."""
        return self.state.value

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group, without its offsets, in the only order Kafka accepts."""
        return [
            *TOMBSTONES.members_and_target(self.group_id, self.members),
            TOMBSTONES.group(self.group_id),
            topology_tombstone(self.group_id),
        ]


def _copies(tasks: HeldTasks) -> list[tuple[str, int]]:
    """Return the tasks of a member that are copies. The two kinds differ for the client alone."""
    both: tuple[Tasks, Tasks] = (tasks.standby, tasks.warmup)
    return [(one, number) for of_kind in both for one, numbers in of_kind.items() for number in numbers]
