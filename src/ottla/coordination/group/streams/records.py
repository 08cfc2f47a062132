"""The records of streams groups, in the versions Kafka writes. One without a value deletes something."""

from collections.abc import Mapping
from typing import Final

from ottla.coordination.group.modern.records import Tombstones, record, tombstone
from ottla.coordination.group.streams.member import Member
from ottla.coordination.group.streams.tasks import TargetTasks, Tasks, TasksWithEpochs
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.streams_group import (
    CurrentTaskIds,
    KeyValue,
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    TargetTaskIds,
)

TOMBSTONES: Final = Tombstones(
    group=StreamsGroupMetadataKey,
    member=StreamsGroupMemberMetadataKey,
    target_epoch=StreamsGroupTargetAssignmentMetadataKey,
    target=StreamsGroupTargetAssignmentMemberKey,
    current=StreamsGroupCurrentMemberAssignmentKey,
)
member_tombstones: Final = TOMBSTONES.all_of_member


def member_record(group_id: str, member: Member) -> CoordinatorRecord:
    """Record who a member is and what it runs."""
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.user_endpoint,
        client_tags=tuple(KeyValue(key=key, value=text) for key, text in sorted(member.client_tags.items())),
    )
    key = StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return record(key, value)


def epoch_record(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
) -> CoordinatorRecord:
    """Record the group's epoch, and for which topics, topology and configs it holds."""
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=tuple(
            LastAssignmentConfig(key=key, value=text) for key, text in sorted(assignment_configs.items())
        ),
    )
    return record(StreamsGroupMetadataKey(group_id=group_id), value)


def topology_record(group_id: str, value: StreamsGroupTopologyValue) -> CoordinatorRecord:
    """Record what the group runs."""
    return record(StreamsGroupTopologyKey(group_id=group_id), value)


def topology_tombstone(group_id: str) -> CoordinatorRecord:
    """Delete the topology."""
    return tombstone(StreamsGroupTopologyKey(group_id=group_id))


def target_record(group_id: str, member_id: str, target: TargetTasks) -> CoordinatorRecord:
    """Record what a member should have."""
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target_tasks(target.active),
        standby_tasks=_target_tasks(target.standby),
        warmup_tasks=_target_tasks(target.warmup),
    )
    key = StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return record(key, value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Record for which epoch of the group the target was made, and when."""
    value = StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return record(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: Member) -> CoordinatorRecord:
    """Record what a member has, and what it has yet to give up."""
    has = member.assignment
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=has.member_epoch,
        previous_member_epoch=has.previous_epoch,
        state=has.state,
        active_tasks=_active_tasks(has.held.active),
        standby_tasks=_current_tasks(has.held.standby),
        warmup_tasks=_current_tasks(has.held.warmup),
        active_tasks_pending_revocation=_active_tasks(has.pending_revocation.active),
        standby_tasks_pending_revocation=_current_tasks(has.pending_revocation.standby),
        warmup_tasks_pending_revocation=_current_tasks(has.pending_revocation.warmup),
    )
    key = StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return record(key, value)


def _target_tasks(tasks: Tasks) -> tuple[TargetTaskIds, ...]:
    return tuple(
        TargetTaskIds(subtopology_id=one, partitions=tuple(sorted(tasks[one]))) for one in sorted(tasks)
    )


def _active_tasks(tasks: TasksWithEpochs) -> tuple[CurrentTaskIds, ...]:
    task_ids = []
    for one in sorted(tasks):
        numbers = tuple(sorted(tasks[one]))
        epochs = tuple(tasks[one][number] for number in numbers)
        task_ids.append(CurrentTaskIds(subtopology_id=one, partitions=numbers, assignment_epochs=epochs))
    return tuple(task_ids)


def _current_tasks(tasks: Tasks) -> tuple[CurrentTaskIds, ...]:
    """Only active tasks have epochs: nobody commits offsets for the others."""
    return tuple(
        CurrentTaskIds(subtopology_id=one, partitions=tuple(sorted(tasks[one]))) for one in sorted(tasks)
    )
