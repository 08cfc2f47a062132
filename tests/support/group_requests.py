"""Requests about groups, with what most tests leave as it is filled in."""

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.codec import encode
from ottla.wire.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

TOPIC = "orders"
OTHER_TOPIC = "other"


def subscription(*topics: str) -> bytes:
    return b"\x00\x01" + encode(ConsumerProtocolSubscription(topics=topics, user_data=None), 1)


def join_request(
    group: str,
    member_id: str = "",
    *,
    instance_id: str | None = None,
    session_timeout_ms: int = 10_000,
    protocol_type: str = "consumer",
    protocols: tuple[tuple[str, bytes], ...] | None = None,
) -> JoinGroupRequest:
    if protocols is None:
        protocols = (("range", subscription(TOPIC)), ("roundrobin", subscription(TOPIC)))
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols),
    )


def sync_request(
    group: str,
    generation: int,
    member_id: str,
    assignments: dict[str, bytes] | None = None,
    *,
    instance_id: str | None = None,
    protocol_type: str | None = "consumer",
    protocol_name: str | None = "range",
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=who, assignment=what)
            for who, what in (assignments or {}).items()
        ),
    )


def heartbeat_request(
    group: str, generation: int, member_id: str, instance_id: str | None = None
) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance_id
    )


def leave_request(group: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    """Leave, in version 3 or later."""
    return LeaveGroupRequest(
        group_id=group,
        members=tuple(
            MemberIdentity(member_id=member_id, group_instance_id=instance_id)
            for member_id, instance_id in members
        ),
    )


def commit_request(
    group: str,
    offsets: dict[int, int],
    *,
    topic: str = TOPIC,
    topic_id: Uuid = ZERO_UUID,
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
    metadata: str | None = "note",
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=(
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=0,
                        committed_metadata=metadata,
                    )
                    for partition, offset in offsets.items()
                ),
            ),
        ),
    )


def old_fetch_request(group: str, topics: dict[str, tuple[int, ...]] | None) -> OffsetFetchRequest:
    """Fetch, in version 7 or before."""
    asked = None
    if topics is not None:
        asked = tuple(
            OffsetFetchRequestTopic(name=name, partition_indexes=partitions)
            for name, partitions in topics.items()
        )
    return OffsetFetchRequest(group_id=group, topics=asked)


def fetch_request(
    *groups: str,
    topics: dict[str, tuple[int, ...]] | None = None,
    topic_ids: dict[Uuid, tuple[int, ...]] | None = None,
    require_stable: bool = False,
) -> OffsetFetchRequest:
    """Fetch, in version 8 or later."""
    asked: tuple[OffsetFetchRequestTopics, ...] | None = None
    if topics is not None:
        asked = tuple(
            OffsetFetchRequestTopics(name=name, partition_indexes=partitions)
            for name, partitions in topics.items()
        )
    if topic_ids is not None:
        asked = tuple(
            OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=partitions)
            for topic_id, partitions in topic_ids.items()
        )
    return OffsetFetchRequest(
        groups=tuple(OffsetFetchRequestGroup(group_id=group, topics=asked) for group in groups),
        require_stable=require_stable,
    )


def delete_offsets_request(group: str, topic: str, *partitions: int) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in partitions),
            ),
        ),
    )


def describe_request(*groups: str) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=groups)


def delete_request(*groups: str) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(group_names=groups)


def list_request(states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> ListGroupsRequest:
    return ListGroupsRequest(states_filter=states, types_filter=types)
