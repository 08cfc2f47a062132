"""The two blobs inside JoinGroup and SyncGroup by which classic consumers agree on partitions."""

from ottla.wire.declare import i32, message, struct, wire


@struct
class AssignedTopicPartitions:
    """The partitions of one topic that the consumer should read."""

    topic: str = wire("0+", map_key=True)
    partitions: tuple[i32, ...] = wire("0+")


@message(versions="0-3")
class ConsumerProtocolAssignment:
    """The partitions that a group's leader gives to one classic consumer.

    An int16 version stands before it. The broker passes it on unread.
    """

    assigned_partitions: tuple[AssignedTopicPartitions, ...] = wire("0+")
    user_data: bytes | None = wire("0+", default=None)


@struct
class OwnedTopicPartitions:
    """The partitions of one topic that the consumer still owns (v1+)."""

    topic: str = wire("1+", map_key=True)
    partitions: tuple[i32, ...] = wire("1+")


@message(versions="0-3")
class ConsumerProtocolSubscription:
    """What a classic consumer asks of the group's leader: its topics, and (v1+) what it owns.

    An int16 version stands before it. v2 adds the generation in which the partitions were owned, v3 the rack.
    """

    topics: tuple[str, ...] = wire("0+")
    user_data: bytes | None = wire("0+", default=None)
    owned_partitions: tuple[OwnedTopicPartitions, ...] = wire("1+", default=(), ignorable=True)
    generation_id: i32 = wire("2+", default=-1, ignorable=True)
    rack_id: str | None = wire("3+", default=None, ignorable=True)
