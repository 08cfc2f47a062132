"""SyncGroup, Heartbeat and LeaveGroup on a classic group.

SyncGroup and LeaveGroup are steps of a rebalance, in memory (`rebalance.py`), and answer by themselves. What
the leader brings is written by a decision of its own, and handed out when that is committed.
"""

from functools import partial

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.classic.rebalance import NOTHING, Rebalances
from ottla.coordination.group.classic.states import GroupState
from ottla.coordination.group.environment import Environment
from ottla.coordination.runtime.decision import Answer, Decision
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class Memberships:
    """What members of classic groups ask for once they are in."""

    def __init__(self, environment: Environment, rebalances: Rebalances) -> None:
        self._env = environment
        self._rebalances = rebalances

    def sync(
        self, group: ClassicGroup, ask: SyncGroupRequest, answer: Answer[SyncGroupResponse], now_ms: int
    ) -> None:
        """Give a member its assignment, as soon as the leader has brought it."""
        refusal = _check_sync(group, ask)
        if refusal is not ErrorCode.NONE:
            answer(SyncGroupResponse(error_code=refusal, assignment=b""))
            return
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
            return
        assert group.state is GroupState.COMPLETING_REBALANCE, "checked above"
        member.awaiting_sync = answer
        if ask.member_id == group.leader_id:
            self._store(group, {item.member_id: item.assignment for item in ask.assignments}, now_ms)

    def decide_heartbeat(self, group: ClassicGroup, ask: HeartbeatRequest) -> Decision[HeartbeatResponse]:
        """Take note that a member lives; tell it when it should join again."""
        code = _check_heartbeat(group, ask)
        if code is not ErrorCode.NONE:
            return Decision(reply=HeartbeatResponse(error_code=code))
        if group.state is GroupState.PREPARING_REBALANCE:
            code = ErrorCode.REBALANCE_IN_PROGRESS
        expect_next = partial(self._rebalances.expect_heartbeat, group, group.members[ask.member_id])
        return Decision((), HeartbeatResponse(error_code=code), expect_next)

    def leave(
        self, group: ClassicGroup, ask: LeaveGroupRequest, now_ms: int, answer: Answer[LeaveGroupResponse]
    ) -> None:
        """Let members go. One that is not known spoils no other."""
        members = tuple(self._leave_one(group, identity) for identity in ask.members)
        settled = NOTHING
        if any(item.error_code is ErrorCode.NONE for item in members):
            settled = self._rebalances.after_leaving(group, now_ms)
        self._env.submit(
            lambda: Decision(settled, LeaveGroupResponse(members=members)),
            answer,
            lambda error: answer(LeaveGroupResponse(error_code=error)),
        )

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

    def _store(self, group: ClassicGroup, brought: dict[str, bytes], now_ms: int) -> None:
        generation = group.generation
        assignments = {member_id: brought.get(member_id, b"") for member_id in group.members}

        def is_waited_for() -> bool:
            # Somebody may have joined while the record was on its way to the disk.
            return group.state is GroupState.COMPLETING_REBALANCE and group.generation == generation

        def stored(assignments: dict[str, bytes]) -> None:
            if is_waited_for():
                self._rebalances.hand_out(group, assignments, now_ms)

        def not_stored(error: ErrorCode) -> None:
            if is_waited_for():
                self._rebalances.hand_out_error(group, error)
                self._rebalances.start_again(group, now_ms)

        self._env.submit(lambda: Decision((group.record(assignments),), assignments), stored, not_stored)


def _check_heartbeat(group: ClassicGroup, ask: HeartbeatRequest) -> ErrorCode:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    refusal = group.check_member(ask.member_id, ask.group_instance_id)
    if refusal is ErrorCode.NONE and ask.generation_id != group.generation:
        refusal = ErrorCode.ILLEGAL_GENERATION
    return refusal


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
