"""What `__consumer_offsets` keeps of a consumer group (KIP-848)."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i32, i64, message, struct, wire
from ottla.wire.layout import empty


@message(api_key=3, versions="0")
class ConsumerGroupMetadataKey:
    """The key of a consumer group's epoch."""

    group_id: str = wire("0")


@message(api_key=3, versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    """Record a consumer group's epoch, and a hash of the topics' metadata it was made for."""

    epoch: i32 = wire("0+")
    metadata_hash: i64 = wire("0+", default=0, tag=0)


@message(api_key=4, versions="0")
class ConsumerGroupPartitionMetadataKey:
    """The key of a consumer group's topic metadata: no longer written."""

    group_id: str = wire("0")


@struct
class PartitionMetadata:
    """A partition and the racks of its replicas."""

    partition: i32 = wire("0+")
    racks: tuple[str, ...] = wire("0+")


@struct
class TopicMetadata:
    """A topic, its number of partitions and their racks."""

    topic_id: Uuid = wire("0+")
    topic_name: str = wire("0+")
    num_partitions: i32 = wire("0+")
    partition_metadata: tuple[PartitionMetadata, ...] = wire("0+")


@message(api_key=4, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    """Record the metadata of a group's topics: no longer written, as a hash took its place."""

    topics: tuple[TopicMetadata, ...] = wire("0+")


@message(api_key=5, versions="0")
class ConsumerGroupMemberMetadataKey:
    """The key of what a member of a consumer group has said about itself."""

    group_id: str = wire("0")
    member_id: str = wire("0")


@struct
class ClassicProtocol:
    """A classic protocol that the member can use, with its metadata."""

    name: str = wire("0+")
    metadata: bytes = wire("0+")


@struct
class ClassicMemberMetadata:
    """What is kept of a member that still uses the classic protocol."""

    session_timeout_ms: i32 = wire("0+")
    supported_protocols: tuple[ClassicProtocol, ...] = wire("0+")


@message(api_key=5, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """Record who a member is, where it runs and what it subscribes to.

    The classic part is set for a member that still uses the classic protocol. When null it is written
    out all the same, for the format takes an empty struct as the default.
    """

    instance_id: str | None = wire("0+")
    rack_id: str | None = wire("0+")
    client_id: str = wire("0+")
    client_host: str = wire("0+")
    subscribed_topic_names: tuple[str, ...] = wire("0+")
    subscribed_topic_regex: str | None = wire("0+")
    rebalance_timeout_ms: i32 = wire("0+", default=-1)
    server_assignor: str | None = wire("0+")
    classic_member_metadata: ClassicMemberMetadata | None = wire(
        "0+", default=empty(ClassicMemberMetadata), tag=0
    )


@message(api_key=6, versions="0")
class ConsumerGroupTargetAssignmentMetadataKey:
    """The key of the epoch of a consumer group's target assignment."""

    group_id: str = wire("0")


@message(api_key=6, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    """Record for which group epoch the target assignment was made, and when."""

    assignment_epoch: i32 = wire("0+")
    assignment_timestamp: i64 = wire("0+", default=0, tag=0, ignorable=True)


@message(api_key=7, versions="0")
class ConsumerGroupTargetAssignmentMemberKey:
    """The key of what a member of a consumer group should own."""

    group_id: str = wire("0")
    member_id: str = wire("0")


@struct
class TargetTopicPartitions:
    """Partitions of one topic that the member should own."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")


@message(api_key=7, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """Record the partitions that a member should own once the group has settled."""

    topic_partitions: tuple[TargetTopicPartitions, ...] = wire("0+")


@message(api_key=8, versions="0")
class ConsumerGroupCurrentMemberAssignmentKey:
    """The key of what a member of a consumer group owns now."""

    group_id: str = wire("0")
    member_id: str = wire("0")


@struct
class CurrentTopicPartitions:
    """Partitions of one topic, with the member epochs at which they were assigned."""

    topic_id: Uuid = wire("0+")
    partitions: tuple[i32, ...] = wire("0+")
    assignment_epochs: tuple[i32, ...] | None = wire("0+", default=(), tag=0)


@message(api_key=8, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """Record a member's epoch and state, what it owns now and what it still has to give up.

    The states: 0 stable, 1 has yet to revoke partitions, 2 waits for partitions of others.
    """

    member_epoch: i32 = wire("0+")
    previous_member_epoch: i32 = wire("0+")
    state: i8 = wire("0+")
    assigned_partitions: tuple[CurrentTopicPartitions, ...] = wire("0+")
    partitions_pending_revocation: tuple[CurrentTopicPartitions, ...] = wire("0+")


@message(api_key=16, versions="0")
class ConsumerGroupRegularExpressionKey:
    """The key of a regular expression that members of a consumer group subscribe to."""

    group_id: str = wire("0")
    regular_expression: str = wire("0")


@message(api_key=16, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """Record the topics that a regular expression matched, and at which metadata version."""

    topics: tuple[str, ...] = wire("0+")
    version: i64 = wire("0+")
    timestamp: i64 = wire("0+")
