"""LeaveGroup: members leave a classic group, or are removed by an administrator.

Up to version 2 one member leaves, and the answer has one error; later several may, with an error for each.
"""

from ottla.broker.coordinators.clients import client_of
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import serves
from ottla.security.rights import Operation, on_group
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.leave_group import (
    SEVERAL_FROM,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)


@serves(
    LeaveGroupRequest,
    "0-5",
    OfRequest(on_group(Operation.READ), "group_id"),
    cuts=(Cut("members", "members"),),
)
def leave_group(ask: LeaveGroupRequest, context: BrokerContext) -> Deferred[LeaveGroupResponse]:
    """Let the group coordinator answer."""
    broker = context.broker
    is_single = context.version < SEVERAL_FROM
    if is_single:
        ask = replace(ask, members=(MemberIdentity(member_id=ask.member_id),))
    answer: Deferred[LeaveGroupResponse] = Deferred()
    broker.groups.coordinator.leave_group(ask, client_of(context), broker.clock.now_ms(), answer.resolve)
    reasons = {member.member_id: member.reason for member in ask.members}

    def note_who_left(response: LeaveGroupResponse) -> LeaveGroupResponse:
        for member in response.members:
            # Nobody has left whom the group does not know.
            if member.error_code is ErrorCode.NONE:
                reason = reasons.get(member.member_id)
                broker.journal.member_left(context, ask.group_id, member.member_id, reason)
        return response

    noted = answer.then(note_who_left)
    return noted.then(_with_one_error) if is_single else noted


def _with_one_error(response: LeaveGroupResponse) -> LeaveGroupResponse:
    error_code = response.error_code
    if error_code is ErrorCode.NONE and response.members:
        error_code = response.members[0].error_code
    return LeaveGroupResponse(error_code=error_code)
