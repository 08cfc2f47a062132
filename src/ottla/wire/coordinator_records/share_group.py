"""What `__consumer_offsets` keeps of a share group (KIP-932)."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i32, i64, message, struct, wire


@message(api_key=10, versions="0")
class ShareGroupMemberMetadataKey:
    """The key of what a member of a share group has said about itself."""

    group_id: str = wire("0")
    member_id: str = wire("0")


@message(api_key=10, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue:
    """Record who a member is, where it runs and what it subscribes to."""

    rack_id: str | None = wire("0+")
    client_id: str = wire("0+")
    client_host: str = wire("0+")
    subscribed_topic_names: tuple[str, ...] = wire("0+")


@message(api_key=11, versions="0")
class ShareGroupMetadataKey:
    """The key of a share group's epoch."""

    group_id: str = wire("0")


@message(api_key=11, versions="0", flexible="0+")
class ShareGroupMetadataValue:
    """Record a share group's epoch, and a hash of the topics' metadata it was made for."""

    epoch: i32 = wire("0+")
    metadata_hash: i64 = wire("0+")


@message(api_key=12, versions="0")
class ShareGroupTargetAssignmentMetadataKey:
    """The key of the epoch of a share group's target assignment."""

    group_id: str = wire("0")


@message(api_key=12, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    """Record for which group epoch the target assignment was made, and when."""

    assignment_epoch: i32 = wire("0+")
    assignment_timestamp: i64 = wire("0+", default=0, tag=0, ignorable=True)


@message(api_key=13, versions="0")
class ShareGroupTargetAssignmentMemberKey:
    """The key of what a member of a share group should read."""

    group_id: str = wire("0")
    member_id: str = wire("0")


@struct
class TargetTopicPartitions:
    """Partitions of one topic that the member should read."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@message(api_key=13, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    """Record the partitions that a member should read."""

    topic_partitions: tuple[TargetTopicPartitions, ...] = wire("0+")


@message(api_key=14, versions="0")
class ShareGroupCurrentMemberAssignmentKey:
    """The key of what a member of a share group reads now."""

    group_id: str = wire("0")
    member_id: str = wire("0")


@struct
class CurrentTopicPartitions:
    """Partitions of one topic that the member reads now."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@message(api_key=14, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    """Record a member's epoch and the partitions it reads now. The state is always 0, stable."""

    member_epoch: i32 = wire("0+")
    previous_member_epoch: i32 = wire("0+")
    state: i8 = wire("0+")
    assigned_partitions: tuple[CurrentTopicPartitions, ...] = wire("0+")


@message(api_key=15, versions="0")
class ShareGroupStatePartitionMetadataKey:
    """The key of which partitions of a share group have state at the share coordinator."""

    group_id: str = wire("0")


@struct
class TopicPartitionsInfo:
    """A topic and those of its partitions that are meant."""

    topic_id: Uuid = wire("0+")
    topic_name: str = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@struct
class TopicInfo:
    """A topic whose state is being dropped."""

    topic_id: Uuid = wire("0+")
    topic_name: str = wire("0+")


@message(api_key=15, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    """Record for which topics a share group's state is being begun, exists, or is being dropped."""

    initializing_topics: tuple[TopicPartitionsInfo, ...] = wire("0+")
    initialized_topics: tuple[TopicPartitionsInfo, ...] = wire("0+")
    deleting_topics: tuple[TopicInfo, ...] = wire("0+")
