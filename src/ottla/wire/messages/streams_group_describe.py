"""StreamsGroupDescribe (API key 89): streams groups, described."""

from ottla.wire.declare import i16, i32, i64, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=89, versions="0", flexible="0+", listeners=("broker",))
class StreamsGroupDescribeRequest:
    """Ask for the state, topology, members and tasks of streams groups (KIP-1071)."""

    group_ids: tuple[str, ...] = wire("0+")
    include_authorized_operations: bool = wire("0+")


@struct
class KeyValue:
    """A client tag, or a config of a topic."""

    key: str = wire("0+")
    value: str = wire("0+")


@struct
class TopicInfo:
    """A topic that the group keeps for itself: a changelog or a repartition topic."""

    name: str = wire("0+")
    partitions: i32 = wire("0+")
    replication_factor: i16 = wire("0+")
    topic_configs: tuple[KeyValue, ...] = wire("0+")


@struct
class Subtopology:
    """A part of the topology whose tasks run on their own."""

    subtopology_id: str = wire("0+")
    source_topics: tuple[str, ...] = wire("0+")
    repartition_sink_topics: tuple[str, ...] = wire("0+")
    state_changelog_topics: tuple[TopicInfo, ...] = wire("0+")
    repartition_source_topics: tuple[TopicInfo, ...] = wire("0+")


@struct
class Topology:
    """The topology that the group runs."""

    epoch: i32 = wire("0+")
    subtopologies: tuple[Subtopology, ...] | None = wire("0+", default=None)


@struct
class Endpoint:
    """Where a member's application can be reached."""

    host: str = wire("0+")
    port: u16 = wire("0+")


@struct
class TaskOffset:
    """How far one task's state has come."""

    subtopology_id: str = wire("0+")
    partition: i32 = wire("0+")
    offset: i64 = wire("0+")


@struct
class TaskIds:
    """Tasks of one subtopology, by partition."""

    subtopology_id: str = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@struct
class Assignment:
    """The tasks of each kind that a member has, or should have."""

    active_tasks: tuple[TaskIds, ...] = wire("0+")
    standby_tasks: tuple[TaskIds, ...] = wire("0+")
    warmup_tasks: tuple[TaskIds, ...] = wire("0+")


@struct
class Member:
    """A member: who it is, which tasks it has and which it should have."""

    member_id: str = wire("0+")
    member_epoch: i32 = wire("0+")
    instance_id: str | None = wire("0+", default=None)
    rack_id: str | None = wire("0+", default=None)
    client_id: str = wire("0+")
    client_host: str = wire("0+")
    topology_epoch: i32 = wire("0+")
    process_id: str = wire("0+")
    user_endpoint: Endpoint | None = wire("0+", default=None)
    client_tags: tuple[KeyValue, ...] = wire("0+")
    task_offsets: tuple[TaskOffset, ...] = wire("0+")
    task_end_offsets: tuple[TaskOffset, ...] = wire("0+")
    assignment: Assignment = wire("0+")
    target_assignment: Assignment = wire("0+")
    is_classic: bool = wire("0+")


@struct
class DescribedGroup:
    """A streams group: its state, epochs, topology and members."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    group_id: str = wire("0+")
    group_state: str = wire("0+")
    group_epoch: i32 = wire("0+")
    assignment_epoch: i32 = wire("0+")
    topology: Topology | None = wire("0+", default=None)
    members: tuple[Member, ...] = wire("0+")
    authorized_operations: i32 = wire("0+", default=-2147483648)


@message(api_key=89, versions="0", flexible="0+")
class StreamsGroupDescribeResponse:
    """Describe each streams group asked for, or say why it cannot be described."""

    throttle_time_ms: i32 = wire("0+", default=0)
    groups: tuple[DescribedGroup, ...] = wire("0+")
