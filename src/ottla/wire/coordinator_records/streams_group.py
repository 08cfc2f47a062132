"""What `__consumer_offsets` keeps of a streams group (KIP-1071)."""

from ottla.wire.declare import i8, i16, i32, i64, message, struct, u16, wire


@message(api_key=17, versions="0")
class StreamsGroupMetadataKey:
    """The key of a streams group's epoch."""

    group_id: str = wire("0")


@struct
class LastAssignmentConfig:
    """A config under which the last assignment was made."""

    key: str = wire("0+")
    value: str = wire("0+")


@message(api_key=17, versions="0", flexible="0+")
class StreamsGroupMetadataValue:
    """Record a streams group's epoch, the topology epoch last checked, and the last configs used."""

    epoch: i32 = wire("0+")
    metadata_hash: i64 = wire("0+")
    validated_topology_epoch: i32 = wire("0+", default=-1, tag=0)
    last_assignment_configs: tuple[LastAssignmentConfig, ...] | None = wire("0+", default=(), tag=1)


@message(api_key=19, versions="0")
class StreamsGroupMemberMetadataKey:
    """The key of what a member of a streams group has said about itself."""

    group_id: str = wire("0")
    member_id: str = wire("0")


@struct
class Endpoint:
    """Where a member's application can be reached."""

    host: str = wire("0+")
    port: u16 = wire("0+")


@struct
class KeyValue:
    """A client tag."""

    key: str = wire("0+")
    value: str = wire("0+")


@message(api_key=19, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue:
    """Record who a member is, where it runs, and which topology and tags it has."""

    instance_id: str | None = wire("0+")
    rack_id: str | None = wire("0+")
    client_id: str = wire("0+")
    client_host: str = wire("0+")
    rebalance_timeout_ms: i32 = wire("0+", default=-1)
    topology_epoch: i32 = wire("0+")
    process_id: str = wire("0+")
    user_endpoint: Endpoint | None = wire("0+", default=None)
    client_tags: tuple[KeyValue, ...] = wire("0+")


@message(api_key=20, versions="0")
class StreamsGroupTargetAssignmentMetadataKey:
    """The key of the epoch of a streams group's target assignment."""

    group_id: str = wire("0")


@message(api_key=20, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue:
    """Record for which group epoch the target assignment was made, and when."""

    assignment_epoch: i32 = wire("0+")
    assignment_timestamp: i64 = wire("0+", default=0, tag=0, ignorable=True)


@message(api_key=21, versions="0")
class StreamsGroupTargetAssignmentMemberKey:
    """The key of the tasks that a member of a streams group should have."""

    group_id: str = wire("0")
    member_id: str = wire("0")


@struct
class TargetTaskIds:
    """Tasks of one subtopology that the member should have."""

    subtopology_id: str = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@message(api_key=21, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue:
    """Record the active, standby and warm-up tasks that a member should have."""

    active_tasks: tuple[TargetTaskIds, ...] = wire("0+")
    standby_tasks: tuple[TargetTaskIds, ...] = wire("0+")
    warmup_tasks: tuple[TargetTaskIds, ...] = wire("0+")


@message(api_key=22, versions="0")
class StreamsGroupCurrentMemberAssignmentKey:
    """The key of the tasks that a member of a streams group has now."""

    group_id: str = wire("0")
    member_id: str = wire("0")


@struct
class CurrentTaskIds:
    """Tasks of one subtopology, with the member epochs at which they were assigned."""

    subtopology_id: str = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")
    assignment_epochs: tuple[i32, ...] | None = wire("0+", default=(), tag=0)


@message(api_key=22, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue:
    """Record a member's epoch and state, the tasks it has and those it still has to give up.

    The states, unlike a consumer group's, begin at 1: 1 stable, 2 has yet to revoke tasks,
    3 waits for tasks of others.
    """

    member_epoch: i32 = wire("0+")
    previous_member_epoch: i32 = wire("0+")
    state: i8 = wire("0+")
    active_tasks: tuple[CurrentTaskIds, ...] = wire("0+")
    standby_tasks: tuple[CurrentTaskIds, ...] = wire("0+")
    warmup_tasks: tuple[CurrentTaskIds, ...] = wire("0+")
    active_tasks_pending_revocation: tuple[CurrentTaskIds, ...] = wire("0+")
    standby_tasks_pending_revocation: tuple[CurrentTaskIds, ...] = wire("0+")
    warmup_tasks_pending_revocation: tuple[CurrentTaskIds, ...] = wire("0+")


@message(api_key=23, versions="0")
class StreamsGroupTopologyKey:
    """The key of a streams group's topology."""

    group_id: str = wire("0")


@struct
class TopicConfig:
    """A config of a topic that the group keeps for itself."""

    key: str = wire("0+")
    value: str = wire("0+")


@struct
class TopicInfo:
    """A topic that the group keeps for itself: a changelog or a repartition topic."""

    name: str = wire("0+")
    partitions: i32 = wire("0+")
    replication_factor: i16 = wire("0+")
    topic_configs: tuple[TopicConfig, ...] = wire("0+")


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


@message(api_key=23, versions="0", flexible="0+")
class StreamsGroupTopologyValue:
    """Record the topology that a streams group runs, and its epoch."""

    epoch: i32 = wire("0+")
    subtopologies: tuple[Subtopology, ...] = wire("0+")
