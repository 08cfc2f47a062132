"""What must hold whatever happens, looked at after each step of the simulation.

SingleOwner          in one generation of a group no partition has two owners
AcknowledgedCommit   nobody who takes a partition over starts before the last acknowledged commit
MonotonicCommit      acknowledged commits of a partition never go back
NothingSkipped       what lies before an acknowledged commit was processed
ReplayEqualsMemory   a shard that is loaded from its log equals the one that wrote it
EverybodyWorks       when the trouble is over, every live member has an assignment, each partition an owner
"""

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.simulation.groups.consumer import TOPIC, Consumer
from tests.support.group_world import GroupWorld, MemoryLog

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.state import GroupShard
from ottla.coordination.runtime.shard import Shard
from ottla.model.ids import TopicPartition
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_fetch import OffsetFetchResponseGroup

if TYPE_CHECKING:
    from tests.simulation.groups.world import Simulation


class Broken(AssertionError):
    """Something that must hold does not."""


class Checks:
    """What was seen so far, and what follows from it."""

    def __init__(self, simulation: "Simulation") -> None:
        self._simulation = simulation
        self._owners: dict[tuple[str, int, int], str] = {}
        """Group, generation and partition to owner."""
        self._acknowledged: dict[tuple[str, int], int] = defaultdict(int)
        self._processed_to: dict[tuple[str, int], int] = defaultdict(int)
        self.assignments = 0
        self.commits = 0
        self.records = 0

    def assigned(self, consumer: Consumer, partitions: tuple[int, ...]) -> None:
        """A member was told what it owns."""
        self.assignments += 1
        for partition in partitions:
            key = (consumer.group, consumer.generation, partition)
            owner = self._owners.setdefault(key, consumer.owner)
            if owner != consumer.owner:
                raise Broken(f"SingleOwner: {key} belongs to {owner} and to {consumer.owner}")

    def fetched(self, answer: OffsetFetchResponseGroup) -> None:
        """The coordinator tells a member where to go on."""
        for part in answer.topics[0].partitions if answer.topics else ():
            acknowledged = self._acknowledged[answer.group_id, part.partition_index]
            if max(part.committed_offset, 0) < acknowledged:
                raise Broken(
                    f"AcknowledgedCommit: {answer.group_id} is to resume partition {part.partition_index} at "
                    f"{part.committed_offset}, but {acknowledged} was acknowledged"
                )

    def processed(self, consumer: Consumer, partition: int, count: int) -> None:
        """A member has processed records from its position on."""
        self.records += count
        key = (consumer.group, partition)
        start = consumer.positions[partition]
        if start > self._processed_to[key]:
            raise Broken(f"NothingSkipped: {consumer} starts {key} at {start} > {self._processed_to[key]}")
        self._processed_to[key] = max(self._processed_to[key], start + count)

    def commit_sent(self, consumer: Consumer, offsets: dict[int, int]) -> None:
        """A member commits what it has processed."""
        for partition, offset in offsets.items():
            if offset > self._processed_to[consumer.group, partition]:
                raise Broken(f"NothingSkipped: {consumer} commits {offset} unprocessed")

    def commit_acknowledged(self, request: OffsetCommitRequest) -> None:
        """The coordinator says that it has a commit. (When its sender hears of it, others may be further.)"""
        self.commits += 1
        for part in request.topics[0].partitions:
            partition, offset = part.partition_index, part.committed_offset
            before = self._acknowledged[request.group_id, partition]
            if offset < before:
                raise Broken(
                    f"MonotonicCommit: {request} has {offset} for partition {partition} after {before}"
                )
            self._acknowledged[request.group_id, partition] = offset

    def replay_equals_memory(self, world: GroupWorld) -> None:
        """Load each log once more, and compare."""
        for log in world.logs:
            state = log.shard.state
            replayed = load_again(world, log)
            compare_offsets(state, replayed)
            for group_id, group in state.groups.items():
                assert isinstance(group, ClassicGroup)
                compare_groups(group, replayed.find_classic(group_id))

    def committed_is_acknowledged(self, world: GroupWorld) -> None:
        """After a crash nothing that was acknowledged is missing."""
        for (group, partition), offset in self._acknowledged.items():
            shard = world.coordinator.shards.find(group)
            assert isinstance(shard, Shard)
            found = shard.state.offsets.find(group, TopicPartition(TOPIC, partition))
            if offset and (found is None or found.offset < offset):
                raise Broken(
                    f"AcknowledgedCommit: {group}-{partition} has {found}, acknowledged was {offset}"
                )

    def everybody_works(self, consumers: list[Consumer], partitions: int) -> None:
        """Look at the groups when there was no trouble for long."""
        groups: dict[str, list[Consumer]] = defaultdict(list)
        for consumer in consumers:
            if consumer.is_alive:
                groups[consumer.group].append(consumer)
        for group, members in groups.items():
            idle = [member for member in members if member.owned is None]
            if idle:
                raise Broken(f"EverybodyWorks: {idle} of {group} have no assignment")
            generations = {member.generation for member in members}
            if len(generations) > 1:
                raise Broken(f"EverybodyWorks: {group} is in generations {generations}")
            owned = sorted(partition for member in members for partition in member.owned or ())
            if owned != list(range(partitions)):
                raise Broken(f"EverybodyWorks: {group} owns {owned} of {partitions}")


def load_again(world: GroupWorld, log: MemoryLog) -> GroupShard:
    state = GroupShard(world.coordinator.environment_of(0))
    shard = Shard(0, 1, state, log)
    for _ in shard.load():
        pass
    return state


def compare_offsets(memory: GroupShard, replayed: GroupShard) -> None:
    ours, theirs = list(memory.offsets.groups()), list(replayed.offsets.groups())
    if sorted(ours) != sorted(theirs):
        raise Broken(f"ReplayEqualsMemory: offsets of {ours} and {theirs}")
    for group in ours:
        if _plain(memory, group) != _plain(replayed, group):
            raise Broken(f"ReplayEqualsMemory: {_plain(memory, group)} and {_plain(replayed, group)}")


def _plain(state: GroupShard, group: str) -> dict[TopicPartition, Any]:
    return {where: offset._replace(place=0) for where, offset in state.offsets.of_group(group).items()}


def compare_groups(memory: ClassicGroup, replayed: ClassicGroup | None) -> None:
    """A settled group is what its last record says; one that is not settled is ahead of it."""
    if replayed is None:
        raise Broken(f"ReplayEqualsMemory: {memory.group_id} is in memory only")
    if replayed.generation > memory.generation:
        raise Broken(f"ReplayEqualsMemory: generation {replayed.generation} and {memory.generation}")
    if memory.state not in (GroupState.STABLE, GroupState.EMPTY):
        return
    if _essence(memory) != _essence(replayed):
        raise Broken(f"ReplayEqualsMemory: {_essence(memory)} and {_essence(replayed)}")


def _essence(group: ClassicGroup) -> tuple[Any, ...]:
    members = {
        member.member_id: (
            member.instance_id,
            member.assignment,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.protocols.get(group.protocol_name or ""),
        )
        for member in group.members.values()
    }
    return (
        group.state, group.generation, group.leader_id, group.protocol_name, members, group.static_members,
    )  # fmt: skip
