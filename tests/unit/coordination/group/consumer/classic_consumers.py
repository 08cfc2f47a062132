"""Classic consumers, as far as a group coordinator sees them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.consumer_world import GROUP, ConsumerWorld

from ottla.coordination.group.environment import Client
from ottla.wire.codec import decode, encode
from ottla.wire.consumer_protocol import (
    AssignedTopicPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedTopicPartitions,
)
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

NEWEST_JOIN = Client("classic", "/127.0.0.1", 9)
SESSION_TIMEOUT_MS = 30_000
REBALANCE_TIMEOUT_MS = 20_000


def subscription(
    topics: Sequence[str], owned: Mapping[str, Sequence[int]] | None = None, version: int = 3
) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=tuple(topics),
        owned_partitions=tuple(
            OwnedTopicPartitions(topic=topic, partitions=tuple(numbers))
            for topic, numbers in (owned or {}).items()
        ),
    )
    return version.to_bytes(2) + encode(message, version)


def assignment(partitions: Mapping[str, Sequence[int]], user_data: bytes | None = None) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            AssignedTopicPartitions(topic=topic, partitions=tuple(numbers))
            for topic, numbers in partitions.items()
        ),
        user_data=user_data,
    )
    return b"\x00\x03" + encode(message, 3)


def opened(blob: bytes) -> dict[str, list[int]]:
    message = decode(ConsumerProtocolAssignment, blob[2:], int.from_bytes(blob[:2]))
    return {item.topic: list(item.partitions) for item in message.assigned_partitions}


def join(
    world: ConsumerWorld,
    member_id: str,
    *topics: str,
    instance_id: str | None = None,
    owned: Mapping[str, Sequence[int]] | None = None,
    protocols: Sequence[str] = ("range", "sticky"),
    client: Client = NEWEST_JOIN,
) -> list[Any]:
    """Ask to join. The list gets the answer when there is one."""
    blob = subscription(topics or ("orders",), owned)
    ask = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=blob) for name in protocols),
    )
    return world.send("join_group", ask, client)


def join_new(world: ConsumerWorld, *topics: str, **fields: Any) -> list[Any]:
    """Join as somebody new does: get an id, then join with it."""
    (first,) = join(world, "", *topics, **fields)
    assert first.error_code is ErrorCode.MEMBER_ID_REQUIRED
    return join(world, first.member_id, *topics, **fields)


def sync(
    world: ConsumerWorld,
    member_id: str,
    generation: int,
    assignments: Mapping[str, bytes] | None = None,
    **fields: Any,
) -> Any:
    ask = SyncGroupRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=name, assignment=blob)
            for name, blob in (assignments or {}).items()
        ),
        **fields,
    )
    return world.ask("sync_group", ask, Client("classic", "/127.0.0.1", 5))


def heartbeat(
    world: ConsumerWorld, member_id: str, generation: int, instance_id: str | None = None
) -> ErrorCode:
    ask = HeartbeatRequest(
        group_id=GROUP, generation_id=generation, member_id=member_id, group_instance_id=instance_id
    )
    code: ErrorCode = world.ask("heartbeat", ask, Client("classic", "/127.0.0.1", 4)).error_code
    return code


def leave(world: ConsumerWorld, *members: tuple[str, str | None]) -> list[ErrorCode]:
    ask = LeaveGroupRequest(
        group_id=GROUP,
        members=tuple(
            MemberIdentity(member_id=name, group_instance_id=instance) for name, instance in members
        ),
    )
    answer = world.ask("leave_group", ask, Client("classic", "/127.0.0.1", 5))
    return [member.error_code for member in answer.members]


def stable_classic_group(world: ConsumerWorld, *shares: Mapping[str, Sequence[int]]) -> list[str]:
    """Make a classic group whose members have these partitions. Return their ids; the first leads."""
    (first,) = join_new(world)
    ids = [first.member_id]
    for _ in shares[1:]:
        joining = join_new(world)
        again = [join(world, member_id) for member_id in ids]
        world.settle()
        ids.append(joining[0].member_id)
        first = (joining + [answer[0] for answer in again])[0]
    blobs = {member_id: assignment(share) for member_id, share in zip(ids, shares, strict=True)}
    for member_id in ids:
        sync(world, member_id, first.generation_id, blobs)
    assert world.shard.state.groups[GROUP].state_name == "Stable"
    return ids
