"""What is wrong with a heartbeat in itself, whatever the group: the checks in Kafka's order.

Apache Kafka 4.3.1 has no static members, no warm-up tasks and no regular expressions for streams groups yet,
and refuses requests that use them. So does this coordinator.
"""

from typing import Final

from ottla.coordination.group.modern.member import LEFT
from ottla.coordination.group.refusal import Refused
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Topology

JOIN_EPOCH: Final = 0
LEFT_FOR_NOW: Final = -2
_BLANKS: Final = "".join(map(chr, range(33)))
"""As in Java, everything up to the space character is blank."""
_ALL_OR_NONE: Final = "If one task-type is non-null, all must be non-null."


def check_heartbeat(ask: StreamsGroupHeartbeatRequest) -> None:
    """Raise `Refused` if a request cannot be served."""
    _check_features(ask)
    _check_text("MemberId", ask.member_id)
    _check_text("GroupId", ask.group_id)
    _check_text("RackId", ask.rack_id)
    if ask.member_epoch == JOIN_EPOCH:
        _check_join(ask)
    elif ask.member_epoch == LEFT_FOR_NOW:
        raise _invalid("InstanceId can't be null.")
    elif ask.member_epoch < LEFT:
        message = f"MemberEpoch is {ask.member_epoch}, but must be greater than or equal to -2."
        raise _invalid(message)
    told = [tasks is not None for tasks in (ask.active_tasks, ask.standby_tasks, ask.warmup_tasks)]
    if any(told) and not all(told):
        raise _invalid(_ALL_OR_NONE)
    if ask.member_epoch != JOIN_EPOCH and ask.topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")


def _check_features(ask: StreamsGroupHeartbeatRequest) -> None:
    for is_used, message in (
        (ask.instance_id is not None, "Static membership is not yet supported."),
        (ask.task_offsets is not None, "TaskOffsets are not supported yet."),
        (ask.task_end_offsets is not None, "TaskEndOffsets are not supported yet."),
        (bool(ask.warmup_tasks), "WarmupTasks are not supported yet."),
    ):
        if is_used:
            raise _invalid(message)
    subtopologies = () if ask.topology is None else ask.topology.subtopologies
    if any(subtopology.source_topic_regex for subtopology in subtopologies):
        raise _invalid("Regular expressions for source topics are not supported yet.")


def _check_join(ask: StreamsGroupHeartbeatRequest) -> None:
    if ask.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (
        ("ActiveTasks", ask.active_tasks),
        ("StandbyTasks", ask.standby_tasks),
        ("WarmupTasks", ask.warmup_tasks),
    ):
        if tasks is None or tasks:
            raise _invalid(f"{name} must be empty when (re-)joining.")
    if ask.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")
    _check_changelogs(ask.topology)


def _check_changelogs(topology: Topology) -> None:
    for subtopology in topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                message = (
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}."
                )
                raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _check_text(name: str, text: str | None) -> None:
    if text is not None and not text.lstrip(_BLANKS):
        raise _invalid(f"{name} can't be empty.")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
