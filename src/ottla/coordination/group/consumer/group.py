"""A consumer group (KIP-848): all of it is described by its records.

The group's epoch increases whenever members, subscriptions or the subscribed topics change. The target is
computed for an epoch of the group; each member follows in its own epoch, which becomes that of the target
when it has given up what it must. So `member epoch <= assignment epoch <= group epoch`.

What is derived from the members (who holds a partition, how many subscribe to a topic) is kept up to date
with every change, so that a heartbeat costs the same in a group of ten members as in one of ten thousand.
"""

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.consumer.member import Member
from ottla.coordination.group.consumer.reconciliation import Assignment, MemberState
from ottla.coordination.group.consumer.records import (
    TOMBSTONES,
    partition_metadata_tombstone,
    regex_tombstone,
)
from ottla.coordination.group.kinds import Commit, GroupKind
from ottla.coordination.group.modern.group import count
from ottla.coordination.group.modern.offset_rules import OffsetRules
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode

NO_PARTITIONS: Final[Partitions] = {}

_TOPICS_CHECK_INTERVAL_MS: Final = (1 << 31) - 1
"""Groups are notified when topics change, so this is only for changes that were missed."""


class GroupState(Enum):
    """The state of a consumer group, by the name that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched, as of which metadata, and when."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerGroup(OffsetRules[Member, Partitions]):
    """A group in memory."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.static_members: dict[str, str] = {}
        """Instance id to member id."""
        self.resolved_regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata = False
        """Whether a release before 4.1 left a record that is to be deleted."""
        # Derived from the members.
        self.name_counts: Counter[str] = Counter()
        self.regex_counts: Counter[str] = Counter()
        self.assignor_counts: Counter[str] = Counter()
        self.classic_protocol_counts: Counter[str] = Counter()
        self.classic_member_count = 0
        self._regex_topic_counts: Counter[str] = Counter()
        self._holders: dict[Uuid, dict[int, str]] = {}
        # In no record: until when the topics are known to be those of the hash.
        self._topics_checked_until_ms = 0

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
        if old is not None:
            if member.says_the_same_as(old):
                return
            self._uncount(old)
        count(self.name_counts, member.topic_names, 1)
        count(self.regex_counts, _some(member.topic_regex), 1)
        count(self.assignor_counts, _some(member.server_assignor), 1)
        if member.classic is not None:
            self.classic_member_count += 1
            count(self.classic_protocol_counts, _protocols(member), 1)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Let a member go. One that is not there is fine."""
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self._let_go(old)
        self._uncount(old)
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]

    def find_static(self, instance_id: str | None) -> Member | None:
        """Return the member that has this instance id."""
        if instance_id is None:
            return None
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def find_target(self, member: Member) -> Partitions:
        """Return what a member should have; one that takes a static member's place, what that one should."""
        member_id = member.member_id
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id, member_id)
        return self.targets.get(member_id, NO_PARTITIONS)

    def _uncount(self, member: Member) -> None:
        count(self.name_counts, member.topic_names, -1)
        count(self.regex_counts, _some(member.topic_regex), -1)
        count(self.assignor_counts, _some(member.server_assignor), -1)
        if member.classic is not None:
            self.classic_member_count -= 1
            count(self.classic_protocol_counts, _protocols(member), -1)

    # Partitions

    def is_held(self, topic_id: Uuid, partition: int) -> bool:
        """Say whether a member has a partition, or has yet to give it up."""
        holders = self._holders.get(topic_id)
        return holders is not None and partition in holders

    def waits_for_others(self, member: Member) -> bool:
        """Say whether a member of its target's epoch misses something that somebody still has."""
        if member.assignment.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        assigned = member.assignment.assigned
        return any(
            number not in assigned.get(topic, ()) and self.is_held(topic, number)
            for topic, numbers in self.targets.get(member.member_id, NO_PARTITIONS).items()
            for number in numbers
        )

    def _hold(self, member: Member) -> None:
        for topic, numbers in _held_topics(member.assignment):
            holders = self._holders.setdefault(topic, {})
            for number in numbers:
                holders[number] = member.member_id

    def _let_go(self, member: Member) -> None:
        for topic, numbers in _held_topics(member.assignment):
            holders = self._holders.get(topic, {})
            for number in numbers:
                # After a compaction an old owner may be replayed after the new one: leave it the partition.
                if holders.get(number) == member.member_id:
                    del holders[number]
            if not holders:
                self._holders.pop(topic, None)

    # Subscriptions

    def put_regex(self, regex: str, resolved: ResolvedRegex) -> None:
        """Take note of the topics that an expression matches."""
        self.remove_regex(regex)
        self.resolved_regexes[regex] = resolved
        count(self._regex_topic_counts, resolved.topics, 1)

    def remove_regex(self, regex: str) -> None:
        """Forget an expression. One that is not there is fine."""
        old = self.resolved_regexes.pop(regex, None)
        if old is not None:
            count(self._regex_topic_counts, old.topics, -1)

    def is_subscribed_to(self, topic: str) -> bool:
        """Say whether a member reads the topic."""
        return topic in self.name_counts or topic in self._regex_topic_counts

    def topics_of(self, member: Member) -> frozenset[str]:
        """Return the names of what a member subscribes to. An expression not yet resolved matches nothing."""
        resolved = self.resolved_regexes.get(member.topic_regex) if member.topic_regex else None
        if resolved is None or not resolved.topics:
            return member.topic_names
        return member.topic_names | resolved.topics if member.topic_names else resolved.topics

    def topics_with(self, old: Member | None, new: Member) -> set[str]:
        """Return what the group subscribes to once `new` is there, in the place of `old` if there is one."""
        return self._topics_after([] if old is None else [old], [new])

    def topics_without(self, members: Iterable[Member]) -> set[str]:
        """Return what the group subscribes to once these members are gone."""
        return self._topics_after(members, [])

    def regexes_only_of(self, members: Iterable[Member]) -> list[str]:
        """Return the expressions that nobody but these members subscribes to."""
        counts = Counter(member.topic_regex for member in members if member.topic_regex)
        return [regex for regex, uses in counts.items() if self.regex_counts[regex] == uses]

    def _topics_after(self, gone: Iterable[Member], come: Iterable[Member]) -> set[str]:
        names, regexes = Counter(self.name_counts), Counter(self.regex_counts)
        for members, by in ((gone, -1), (come, 1)):
            for member in members:
                count(names, member.topic_names, by)
                count(regexes, _some(member.topic_regex), by)
        topics = set(names)
        for regex, resolved in self.resolved_regexes.items():
            if regex in regexes:
                topics |= resolved.topics
        return topics

    def topics_are_checked(self, now_ms: int) -> bool:
        """Say whether the subscribed topics are known to be as they were when the epoch last increased."""
        return now_ms < self._topics_checked_until_ms

    def expect_topics_unchanged(self, now_ms: int) -> None:
        """The topics have been looked at, and if they had changed the epoch has increased."""
        self._topics_checked_until_ms = now_ms + _TOPICS_CHECK_INTERVAL_MS

    def topics_have_changed(self) -> None:
        """Have the next heartbeat look at the topics."""
        self._topics_checked_until_ms = 0

    # Assignors

    def preferred_assignor(self, old: Member | None = None, new: Member | None = None) -> str | None:
        """Return what most members ask for, once `new` is there, in the place of `old` if there is one."""
        counts = Counter(self.assignor_counts)
        if old is not None:
            count(counts, _some(old.server_assignor), -1)
        if new is not None:
            count(counts, _some(new.server_assignor), 1)
        return max(counts, key=lambda name: (counts[name], name), default=None)

    # Members of the classic protocol

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Say whether a classic member with these protocols can be in the group."""
        counts, needed = self.classic_protocol_counts, self.classic_member_count
        return protocol_type == self.protocol_type_name and any(counts[name] == needed for name in protocols)

    # Offsets

    def sends_epochs(self, member: Member) -> bool:
        """Say whether a member must commit with its epoch. One of the classic protocol has a generation."""
        return member.classic is None

    def stale_error(self, member: Member) -> ErrorCode:
        """Return the error for a member whose epoch is not the current one, in the member's protocol."""
        return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION

    def find_assigned_epoch(
        self, member: Member, _commit: Commit, _topic: str, topic_id: Uuid, partition: int
    ) -> int | None:
        """Return the epoch in which a partition was assigned to a member, or None if it does not have it."""
        has = member.assignment
        since = has.assigned.get(topic_id, {}).get(partition)
        if since is None:
            since = has.pending_revocation.get(topic_id, {}).get(partition)
        return since

    # What all kinds of groups have

    @property
    def kind(self) -> GroupKind:
        """The kind of group."""
        return GroupKind.CONSUMER

    @property
    def protocol_type_name(self) -> str:
        """The protocol type, by the name that ListGroups shows."""
        return "consumer"

    @property
    def state(self) -> GroupState:
        """How far the group has come. It takes a look at all members, so heartbeats do not ask."""
        if not self.members:
            return GroupState.EMPTY
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
        """Return the records that delete the group, without its offsets."""
        return self.tombstones_of(self.members)

    def tombstones_of(self, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
        """Return the records that delete the group with these members, in the only order Kafka accepts."""
        group_id = self.group_id
        return [
            *TOMBSTONES.members_and_target(group_id, member_ids),
            *(regex_tombstone(group_id, regex) for regex in self.resolved_regexes),
            partition_metadata_tombstone(group_id),
            TOMBSTONES.group(group_id),
        ]


def _held_topics(assignment: Assignment) -> Iterable[tuple[Uuid, Iterable[int]]]:
    yield from assignment.assigned.items()
    yield from assignment.pending_revocation.items()


def _protocols(member: Member) -> list[str]:
    assert member.classic is not None, "the caller has looked"
    return [protocol.name for protocol in member.classic.supported_protocols]


def _some(text: str | None) -> tuple[str, ...]:
    return (text,) if text else ()
