"""SyncGroup, Heartbeat and LeaveGroup on a classic group."""

from collections.abc import Callable
from typing import Any

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.classic.rebalance import NOTHING, Rebalances
from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.runtime.decision import Decision
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class Memberships:
    """What members of classic groups ask for once they are in."""

    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances

    def sync(
        self,
        group: ClassicGroup,
        ask: SyncGroupRequest,
        answer: Callable[[SyncGroupResponse], None],
        now_ms: int,
    ) -> Decision[Any]:
        """Give a member its assignment, as soon as the leader has brought it."""
        refusal = _check_sync(group, ask)
        if refusal is not ErrorCode.NONE:
            answer(SyncGroupResponse(error_code=refusal, assignment=b""))
            return NOTHING
        member = group.members[ask.member_id]
        group.pending_sync.discard(ask.member_id)
        if group.state is GroupState.STABLE:
            answer(
                SyncGroupResponse(
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol_name,
                    assignment=member.assignment,
                )
            )
            return NOTHING
        assert group.state is GroupState.COMPLETING_REBALANCE, "checked above"
        member.awaiting_sync = answer
        if ask.member_id != group.leader_id:
            return NOTHING
        return self._store(group, {item.member_id: item.assignment for item in ask.assignments}, now_ms)

    def heartbeat(self, group: ClassicGroup, ask: HeartbeatRequest) -> ErrorCode:
        """Take note that a member lives; tell it when it should join again."""
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        refusal = group.check_member(ask.member_id, ask.group_instance_id)
        if refusal is ErrorCode.NONE and ask.generation_id != group.generation:
            refusal = ErrorCode.ILLEGAL_GENERATION
        if refusal is not ErrorCode.NONE:
            return refusal
        self._rebalances.expect_heartbeat(group, group.members[ask.member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(
        self, group: ClassicGroup, ask: LeaveGroupRequest, now_ms: int
    ) -> tuple[LeaveGroupResponse, Decision[Any]]:
        """Let members go. One that is not known spoils no other."""
        if group.state is GroupState.DEAD:
            return LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE), NOTHING
        answers = tuple(self._leave_one(group, identity) for identity in ask.members)
        decision = NOTHING
        if any(item.error_code is ErrorCode.NONE for item in answers):
            decision = self._rebalances.after_leaving(group, now_ms)
        return LeaveGroupResponse(members=answers), decision

    def _leave_one(self, group: ClassicGroup, who: MemberIdentity) -> MemberResponse:
        code = ErrorCode.NONE
        member_id = who.member_id
        if not member_id:
            # An administrator removes a static member by its instance id alone.
            member_id = group.static_members.get(who.group_instance_id or "", "")
            code = ErrorCode.NONE if member_id else ErrorCode.UNKNOWN_MEMBER_ID
        elif member_id not in group.pending_members:
            code = group.check_member(member_id, who.group_instance_id)
        if code is ErrorCode.NONE:
            self._rebalances.forget(group, member_id)
        return MemberResponse(
            member_id=who.member_id, group_instance_id=who.group_instance_id, error_code=code
        )

    def _store(self, group: ClassicGroup, brought: dict[str, bytes], now_ms: int) -> Decision[Any]:
        generation = group.generation
        assignments = {member_id: brought.get(member_id, b"") for member_id in group.members}

        def stored(error: ErrorCode) -> None:
            # Somebody may have joined while the record was on its way to the disk.
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
                return
            if error is ErrorCode.NONE:
                self._rebalances.hand_out(group, assignments, now_ms)
            else:
                self._rebalances.hand_out_error(group, error)
                self._rebalances.start_again(group, now_ms)

        return Decision(records=(group.record(assignments),), on_commit=stored, replayed=False)


def _check_sync(group: ClassicGroup, ask: SyncGroupRequest) -> ErrorCode:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    refusal = group.check_member(ask.member_id, ask.group_instance_id)
    if refusal is not ErrorCode.NONE:
        return refusal
    if ask.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    for asked, known in ((ask.protocol_type, group.protocol_type), (ask.protocol_name, group.protocol_name)):
        if asked is not None and known is not None and asked != known:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    if group.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE
