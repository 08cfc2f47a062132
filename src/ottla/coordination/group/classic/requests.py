"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: find the group, and let it serve according to its kind.

A classic group comes into being here: by the first JoinGroup of somebody who does not claim to be a member
already. That is written down at once, though the group is empty still, so that it is listed and can expire.

What a request does to the rebalance of a classic group is in memory only: it is the effect of a decision that
has no records (`rebalance.py`).
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.coordination.group.classic.group import ClassicGroup, refused_join
from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.environment import Client
from ottla.coordination.group.streams.group import StreamsGroup
from ottla.coordination.runtime.decision import Decision
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from ottla.coordination.group.state import GroupShard

Answer = Callable[[Any], None]


def decide_join(
    shard: "GroupShard", ask: JoinGroupRequest, client: Client, now_ms: int, answer: Answer
) -> Decision[Any]:
    """Let somebody join. The answer comes when the rebalance is complete."""
    group = shard.groups.get(ask.group_id)
    if group is None:
        return _decide_join_new_group(shard, ask, client, now_ms, answer)
    if isinstance(group, ClassicGroup):
        return Decision(after_append=partial(shard.joins.join, group, ask, client, answer, now_ms))
    if isinstance(group, ConsumerGroup | StreamsGroup) and group.is_empty:
        return _decide_join_new_group(shard, ask, client, now_ms, answer)
    if isinstance(group, ConsumerGroup):
        return shard.consumers.classic_members.join(group, ask, client, now_ms)
    return Decision(after_append=partial(answer, refused_join("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)))


def decide_sync(
    shard: "GroupShard", ask: SyncGroupRequest, _client: Client, now_ms: int, answer: Answer
) -> Decision[Any]:
    """Give a member its assignment, as soon as there is one."""
    group = shard.groups.get(ask.group_id)
    if isinstance(group, ClassicGroup):
        return Decision(after_append=partial(shard.memberships.sync, group, ask, answer, now_ms))
    if isinstance(group, ConsumerGroup) and not group.is_empty:
        return shard.consumers.classic_members.sync(group, ask)
    refusal = SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, assignment=b"")
    return Decision(after_append=partial(answer, refusal))


def decide_heartbeat(shard: "GroupShard", ask: HeartbeatRequest, _now_ms: int) -> Decision[HeartbeatResponse]:
    """Take note that a member lives."""
    group = shard.groups.get(ask.group_id)
    if isinstance(group, ClassicGroup):
        return shard.memberships.decide_heartbeat(group, ask)
    if isinstance(group, ConsumerGroup):
        return shard.consumers.classic_members.heartbeat(group, ask)
    return Decision(reply=HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))


def decide_leave(
    shard: "GroupShard", ask: LeaveGroupRequest, now_ms: int, answer: Answer
) -> Decision[LeaveGroupResponse]:
    """Let members go. The request names its members in a list, in every version."""
    group = shard.groups.get(ask.group_id)
    if isinstance(group, ClassicGroup):
        if group.state is GroupState.DEAD:
            return Decision(reply=LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return Decision(after_append=partial(shard.memberships.leave, group, ask, now_ms, answer))
    if isinstance(group, ConsumerGroup):
        return shard.consumers.classic_members.leave(group, ask, now_ms)
    answers = tuple(
        MemberResponse(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            error_code=ErrorCode.UNKNOWN_MEMBER_ID,
        )
        for member in ask.members
    )
    return Decision(reply=LeaveGroupResponse(members=answers))


def _decide_join_new_group(
    shard: "GroupShard", ask: JoinGroupRequest, client: Client, now_ms: int, answer: Answer
) -> Decision[Any]:
    if ask.member_id:
        refusal = refused_join(ask.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        return Decision(after_append=partial(answer, refusal))
    # An empty consumer or streams group gives way.
    before = shard.groups.get(ask.group_id)
    tombstones = [] if before is None else before.tombstones()
    record = ClassicGroup(ask.group_id, state_since_ms=now_ms).record()

    def join() -> None:
        group = shard.find_classic(ask.group_id)
        assert group is not None, "its record was replayed"
        shard.joins.join(group, ask, client, answer, now_ms)

    return Decision((*tombstones, record), after_append=join)
