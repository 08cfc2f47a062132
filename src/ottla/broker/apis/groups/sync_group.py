"""SyncGroup: a member asks for its assignment. Answered when the leader has brought it and it is on disk."""

from ottla.broker.coordinators.clients import client_of
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import serves
from ottla.security.rights import Operation, on_group
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.sync_group import PROTOCOL_FROM, SyncGroupRequest, SyncGroupResponse


@serves(SyncGroupRequest, "0-5", OfRequest(on_group(Operation.READ), "group_id"))
def sync_group(
    ask: SyncGroupRequest, context: BrokerContext
) -> Deferred[SyncGroupResponse] | SyncGroupResponse:
    """Let the group coordinator answer."""
    if context.version >= PROTOCOL_FROM and (ask.protocol_type is None or ask.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, assignment=b"")
    broker = context.broker
    answer: Deferred[SyncGroupResponse] = Deferred()
    broker.groups.coordinator.sync_group(ask, client_of(context), broker.clock.now_ms(), answer.resolve)
    return answer
