"""JoinGroup: a member joins a classic group. Answered when all of its members have joined."""

from typing import Final

from ottla.broker.context import RequestContext
from ottla.broker.coordinators.clients import client_of
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.wire.declare import replace
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

_NO_PROTOCOL_FROM: Final = 7


@handles(JoinGroupRequest)
def join_group(ask: JoinGroupRequest, context: RequestContext) -> Deferred[JoinGroupResponse]:
    """Let the group coordinator answer, when everybody is there."""
    broker = context.broker
    answer: Deferred[JoinGroupResponse] = Deferred()
    broker.groups.coordinator.join_group(ask, client_of(context), broker.clock.now_ms(), answer.resolve)
    return answer if context.version >= _NO_PROTOCOL_FROM else answer.then(_with_protocol)


def _with_protocol(response: JoinGroupResponse) -> JoinGroupResponse:
    """Older versions have no way to say that there is no protocol."""
    return replace(response, protocol_name="") if response.protocol_name is None else response
