"""StreamsGroupHeartbeat (API key 88): a member joins, stays in or leaves a streams group."""

from ottla.wire.declare import i8, i16, i32, i64, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode


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
class CopartitionGroup:
    """Source topics that must have equal partition counts, as positions in the subtopology's lists."""

    source_topics: tuple[i16, ...] = wire("0+")
    source_topic_regex: tuple[i16, ...] = wire("0+")
    repartition_source_topics: tuple[i16, ...] = wire("0+")


@struct
class Subtopology:
    """A part of the topology whose tasks run on their own."""

    subtopology_id: str = wire("0+")
    source_topics: tuple[str, ...] = wire("0+")
    source_topic_regex: tuple[str, ...] = wire("0+")
    state_changelog_topics: tuple[TopicInfo, ...] = wire("0+")
    repartition_sink_topics: tuple[str, ...] = wire("0+")
    repartition_source_topics: tuple[TopicInfo, ...] = wire("0+")
    copartition_groups: tuple[CopartitionGroup, ...] = wire("0+")


@struct
class Topology:
    """The topology that the application runs."""

    epoch: i32 = wire("0+")
    subtopologies: tuple[Subtopology, ...] = wire("0+")


@struct
class TaskIds:
    """Tasks of one subtopology, by partition."""

    subtopology_id: str = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


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


@message(api_key=88, versions="0", flexible="0+", listeners=("broker",))
class StreamsGroupHeartbeatRequest:
    """Join a streams group, stay in it or leave it, and tell its topology and tasks (KIP-1071).

    A null field has not changed since the last heartbeat. The topology is sent on joining.
    """

    group_id: str = wire("0+")
    member_id: str = wire("0+")
    member_epoch: i32 = wire("0+")
    endpoint_information_epoch: i32 = wire("0+")
    instance_id: str | None = wire("0+", default=None)
    rack_id: str | None = wire("0+", default=None)
    rebalance_timeout_ms: i32 = wire("0+", default=-1)
    topology: Topology | None = wire("0+", default=None)
    active_tasks: tuple[TaskIds, ...] | None = wire("0+", default=None)
    standby_tasks: tuple[TaskIds, ...] | None = wire("0+", default=None)
    warmup_tasks: tuple[TaskIds, ...] | None = wire("0+", default=None)
    process_id: str | None = wire("0+", default=None)
    user_endpoint: Endpoint | None = wire("0+", default=None)
    client_tags: tuple[KeyValue, ...] | None = wire("0+", default=None)
    task_offsets: tuple[TaskOffset, ...] | None = wire("0+", default=None)
    task_end_offsets: tuple[TaskOffset, ...] | None = wire("0+", default=None)
    shutdown_application: bool = wire("0+", default=False)


@struct
class Status:
    """One thing that the member should know, such as a missing source topic."""

    status_code: i8 = wire("0+")
    status_detail: str = wire("0+")


@struct
class TopicPartition:
    """Partitions of one topic."""

    topic: str = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@struct
class EndpointToPartitions:
    """The partitions that the application behind an endpoint serves."""

    user_endpoint: Endpoint = wire("0+")
    active_partitions: tuple[TopicPartition, ...] = wire("0+")
    standby_partitions: tuple[TopicPartition, ...] = wire("0+")


@message(api_key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse:
    """Give a member its epoch, its tasks where they changed, and the state of the group.

    Null tasks mean: keep what you have. The status list tells what keeps the group from running.
    """

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    member_id: str = wire("0+")
    member_epoch: i32 = wire("0+")
    heartbeat_interval_ms: i32 = wire("0+")
    acceptable_recovery_lag: i32 = wire("0+")
    task_offset_interval_ms: i32 = wire("0+")
    status: tuple[Status, ...] | None = wire("0+")
    active_tasks: tuple[TaskIds, ...] | None = wire("0+", default=None)
    standby_tasks: tuple[TaskIds, ...] | None = wire("0+", default=None)
    warmup_tasks: tuple[TaskIds, ...] | None = wire("0+", default=None)
    endpoint_information_epoch: i32 = wire("0+")
    partitions_by_user_endpoint: tuple[EndpointToPartitions, ...] | None = wire("0+", default=None)
