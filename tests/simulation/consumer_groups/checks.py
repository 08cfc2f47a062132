"""What must hold for consumer groups, whatever happens. Each check is named, and a failure says which.

SingleOwner          a partition is given to a member only when no other member in good standing has it
AcknowledgedCommit   a member never resumes before an offset whose commit was acknowledged
MonotonicCommit      acknowledged commits of a partition never go back
NothingSkipped       what lies before an acknowledged commit was processed
ReplayEqualsMemory   a shard that is loaded from its log equals the one that wrote it
KafkaCanLoad         the log breaks none of the rules by which Apache Kafka's coordinator refuses to load one
EverybodyWorks       when the trouble is over, every partition has one owner, and the owners have equal shares
"""

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.simulation.consumer_groups.member import SimulatedMember
from tests.simulation.groups.checks import Broken, compare_offsets, load_again
from tests.support.group_world import GroupWorld

from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_fetch import OffsetFetchResponseGroup

if TYPE_CHECKING:
    from tests.simulation.consumer_groups.world import Simulation

REPLAYED = (
    "epoch", "metadata_hash", "assignment_epoch", "assignment_timestamp_ms", "members", "static_members",
    "targets", "resolved_regexes", "name_counts", "regex_counts", "assignor_counts", "classic_member_count",
)  # fmt: skip


class Checks:
    """What was seen so far, and what follows from it."""

    def __init__(self, simulation: "Simulation") -> None:
        self._simulation = simulation
        self._acknowledged: dict[tuple[str, TopicPartition], int] = defaultdict(int)
        self._processed_to: dict[tuple[str, TopicPartition], int] = defaultdict(int)
        self.assignments = 0
        self.commits = 0
        self.records = 0

    def assigned(self, member: SimulatedMember, target: dict[TopicPartition, Uuid]) -> None:
        """A member was told what it has. Nobody else in good standing may have any of it."""
        self.assignments += 1
        new = target.keys() - member.owned.keys()
        if not new:
            return
        group = self._simulation.find_group(member.group)
        for other in self._simulation.members:
            if other is member or other.group != member.group or not other.is_alive:
                continue
            shared = new & other.owned.keys()
            if shared and group is not None and _is_in_good_standing(other, group):
                raise Broken(f"SingleOwner: {member} gets {sorted(shared)}, but so has {other}")

    def fetched(self, answer: OffsetFetchResponseGroup) -> None:
        """The coordinator tells a member where to go on."""
        if answer.error_code is not ErrorCode.NONE:
            return
        for topic in answer.topics:
            for part in topic.partitions:
                where = TopicPartition(topic.name, part.partition_index)
                acknowledged = self._acknowledged[answer.group_id, where]
                if max(part.committed_offset, 0) < acknowledged:
                    raise Broken(
                        f"AcknowledgedCommit: {answer.group_id} is to resume {where} at "
                        f"{part.committed_offset}, but {acknowledged} was acknowledged"
                    )

    def processed(self, member: SimulatedMember, where: TopicPartition, count: int) -> None:
        """A member has processed records from its position on."""
        self.records += count
        key = (member.group, where)
        start = member.positions[where]
        if start > self._processed_to[key]:
            raise Broken(f"NothingSkipped: {member} starts {key} at {start} > {self._processed_to[key]}")
        self._processed_to[key] = max(self._processed_to[key], start + count)

    def commit_answered(self, ask: OffsetCommitRequest, answer: OffsetCommitResponse) -> None:
        """The coordinator has accepted a commit, or has not."""
        for asked, told in zip(ask.topics, answer.topics, strict=True):
            for part, outcome in zip(asked.partitions, told.partitions, strict=True):
                if outcome.error_code is ErrorCode.NONE:
                    self._acknowledge(ask, TopicPartition(asked.name, part.partition_index), part)

    def _acknowledge(self, ask: OffsetCommitRequest, where: TopicPartition, part: Any) -> None:
        self.commits += 1
        key, offset = (ask.group_id, where), part.committed_offset
        if offset < self._acknowledged[key]:
            raise Broken(
                f"MonotonicCommit: {ask.member_id} commits {offset} for {key} after {self._acknowledged[key]}"
            )
        if offset > self._processed_to[key]:
            raise Broken(f"NothingSkipped: {ask.member_id} commits {offset} for {key} unprocessed")
        self._acknowledged[key] = offset

    # The log

    def log_is_good(self, world: GroupWorld) -> None:
        """Load each log once more, compare, and see whether Kafka could."""
        for log in world.logs:
            state = log.shard.state
            replayed = load_again(world, log)
            compare_offsets(state, replayed)
            if state.groups.keys() != replayed.groups.keys():
                raise Broken(f"ReplayEqualsMemory: {set(state.groups)} and {set(replayed.groups)}")
            for group_id in state.groups:
                self._compare(state.consumers.find(group_id), replayed.consumers.find(group_id))
            strict = StrictReplay()
            for record in log.records():
                strict.replay(record)

    def _compare(self, memory: ConsumerGroup | None, replayed: ConsumerGroup | None) -> None:
        for name in REPLAYED:
            ours, theirs = getattr(memory, name, None), getattr(replayed, name, None)
            if ours != theirs:
                raise Broken(f"ReplayEqualsMemory: {name} is {ours} in memory, {theirs} in the log")

    # The end

    def everybody_works(self) -> None:
        """Look at the groups when there was no trouble for long."""
        groups: dict[str, list[SimulatedMember]] = defaultdict(list)
        for member in self._simulation.members:
            if member.is_alive:
                groups[member.group].append(member)
        for group_id, members in groups.items():
            self._check_shares(group_id, members)

    def _check_shares(self, group_id: str, members: list[SimulatedMember]) -> None:
        group = self._simulation.find_group(group_id)
        if group is None or group.state_name != "Stable":
            raise Broken(f"EverybodyWorks: {group_id} is {group and group.state_name}")
        if set(group.members) != {member.name for member in members}:
            raise Broken(f"EverybodyWorks: {group_id} has {set(group.members)}, alive are {members}")
        owners: dict[TopicPartition, str] = {}
        for member in members:
            wanted = self._simulation.topics_of(member)
            for where in member.owned:
                if where in owners:
                    raise Broken(f"EverybodyWorks: {where} has two owners")
                if where.topic not in wanted:
                    raise Broken(f"EverybodyWorks: {member} does not want {where}")
                owners[where] = member.name
        everything = self._simulation.partitions_of(members)
        if owners.keys() != everything:
            raise Broken(f"EverybodyWorks: nobody has {sorted(everything - owners.keys())}")
        if len({self._simulation.topics_of(member) for member in members}) == 1:
            shares = [len(member.owned) for member in members]
            # The range assignor is fair for each topic, the uniform one for all together.
            is_uniform = self._simulation.world.settings.consumer_assignors[0] == "uniform"
            most = 1 if is_uniform else len(self._simulation.topics_of(members[0]))
            if max(shares) - min(shares) > most:
                raise Broken(f"EverybodyWorks: shares of {shares} are not equal")


def _is_in_good_standing(member: SimulatedMember, group: ConsumerGroup) -> bool:
    """Say whether the coordinator would take the member's next heartbeat."""
    known = group.members.get(member.name)
    if known is None or member.epoch == 0:
        return False
    return member.epoch in (known.epoch, known.assignment.previous_epoch)


class StrictReplay:
    """The rules by which Apache Kafka's coordinator refuses to load a log."""

    def __init__(self) -> None:
        self._members: dict[tuple[str, str], Any] = {}
        self._left: set[tuple[str, str]] = set()
        self._targets: set[tuple[str, str]] = set()
        self._has_target_epoch: set[str] = set()
        self._epochs: dict[tuple[str, Uuid, int], int] = {}

    def replay(self, record: CoordinatorRecord) -> None:
        key, value = record.key, record.value
        match key:
            case ConsumerGroupMemberMetadataKey():
                self._replay_member((key.group_id, key.member_id), value)
            case ConsumerGroupTargetAssignmentMemberKey():
                change = self._targets.discard if value is None else self._targets.add
                change((key.group_id, key.member_id))
            case ConsumerGroupTargetAssignmentMetadataKey():
                if value is None and any(group_id == key.group_id for group_id, _ in self._targets):
                    raise Broken(f"KafkaCanLoad: the target of {key.group_id} ends before its members'")
                change_epoch = self._has_target_epoch.discard if value is None else self._has_target_epoch.add
                change_epoch(key.group_id)
            case ConsumerGroupCurrentMemberAssignmentKey():
                self._replay_current((key.group_id, key.member_id), value)
            case ConsumerGroupMetadataKey() if value is None:
                rest = {group_id for group_id, _ in (*self._members, *self._targets)}
                if key.group_id in rest | self._has_target_epoch:
                    raise Broken(f"KafkaCanLoad: {key.group_id} ends before what it has")

    def _replay_member(self, who: tuple[str, str], value: Any) -> None:
        if value is not None:
            self._members.setdefault(who, None)
            self._left.discard(who)
        elif who in self._members:
            if who not in self._left or who in self._targets:
                raise Broken(f"KafkaCanLoad: {who} ends before its assignment or its target")
            del self._members[who]

    def _replay_current(self, who: tuple[str, str], value: Any) -> None:
        old: Any = self._members.get(who)
        for where in _held(who[0], old):
            if self._epochs.get(where) == old.member_epoch:
                del self._epochs[where]
        if value is None:
            if who in self._members:
                self._members[who] = None
                self._left.add(who)
            return
        self._members[who] = value
        self._left.discard(who)
        for where in _held(who[0], value):
            if self._epochs.get(where, value.member_epoch - 1) >= value.member_epoch:
                raise Broken(f"KafkaCanLoad: {where} is given to {who} while somebody has it")
            self._epochs[where] = value.member_epoch


def _held(group_id: str, value: Any) -> list[tuple[str, Uuid, int]]:
    if value is None:
        return []
    topics = (*value.assigned_partitions, *value.partitions_pending_revocation)
    return [(group_id, topic.topic_id, number) for topic in topics for number in topic.partitions]
