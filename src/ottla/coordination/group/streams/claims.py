"""What a member says of itself in a heartbeat, held against what is known of it."""

from typing import Final

from ottla.coordination.group.environment import Client
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.streams.group import StreamsGroup
from ottla.coordination.group.streams.internal_topics import ConfiguredTopology
from ottla.coordination.group.streams.member import Member
from ottla.coordination.group.streams.tasks import TargetTasks, tasks_of
from ottla.wire.coordinator_records.streams_group import Endpoint
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

_UNCHANGED_MS: Final = -1


def known_member(group: StreamsGroup, ask: StreamsGroupHeartbeatRequest) -> Member:
    """Find a member, and fence one whose epoch is not the one it was given.

    The one before is fine while it owns no more than it has now: the answer with the new one may be lost.
    """
    member = group.members.get(ask.member_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, not_a_member(group, ask.member_id))
    asked, known = ask.member_epoch, member.epoch
    if asked == known:
        return member
    if asked < known and asked == member.assignment.previous_epoch:
        has = owned(ask)
        if has is not None and all(
            one in have and numbers <= frozenset(have[one])
            for tasks, have in zip(has, member.assignment.held, strict=True)
            for one, numbers in tasks.items()
        ):
            return member
    relation = "greater" if asked > known else "smaller"
    message = (
        f"The streams group member has a {relation} member epoch ({asked}) than the one known by "
        f"the group coordinator ({known}). The member must abandon all its partitions and rejoin."
    )
    raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, message)


def not_a_member(group: StreamsGroup, member_id: str) -> str:
    """Say that a member is not known."""
    return f"Member {member_id} is not a member of group {group.group_id}."


def check_owned(ask: StreamsGroupHeartbeatRequest, configured: ConfiguredTopology) -> None:
    """Refuse a member that owns tasks which do not exist."""
    subtopologies = configured.subtopologies
    if not configured.is_ready or subtopologies is None:
        return
    for task_ids in (ask.active_tasks, ask.standby_tasks, ask.warmup_tasks):
        for one in task_ids or ():
            subtopology = subtopologies.get(one.subtopology_id)
            if subtopology is None:
                message = f"Subtopology {one.subtopology_id} does not exist in the topology."
                raise Refused(ErrorCode.INVALID_REQUEST, message)
            count = subtopology.task_count
            for partition in one.partitions:
                if not 0 <= partition < count:
                    message = (
                        f"Task {partition} for subtopology {one.subtopology_id} is invalid. "
                        f"Number of tasks for this subtopology: {count}"
                    )
                    raise Refused(ErrorCode.INVALID_REQUEST, message)


def updated(old: Member, ask: StreamsGroupHeartbeatRequest, client: Client) -> Member:
    """Return the member with what the request says. What it leaves out has not changed."""
    endpoint, tags, timeout_ms = ask.user_endpoint, ask.client_tags, ask.rebalance_timeout_ms
    return Member(
        old.member_id,
        old.instance_id,
        old.rack_id if ask.rack_id is None else ask.rack_id,
        client.client_id,
        client.host,
        old.rebalance_timeout_ms if timeout_ms == _UNCHANGED_MS else timeout_ms,
        old.topology_epoch if ask.topology is None else ask.topology.epoch,
        old.process_id if ask.process_id is None else ask.process_id,
        old.user_endpoint if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        old.client_tags if tags is None else {tag.key: tag.value for tag in tags},
        old.assignment,
    )


def owned(ask: StreamsGroupHeartbeatRequest) -> TargetTasks | None:
    """Return the tasks that the member has, if it says so."""
    active, standby, warmup = ask.active_tasks, ask.standby_tasks, ask.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return TargetTasks(tasks_of(active), tasks_of(standby), tasks_of(warmup))
