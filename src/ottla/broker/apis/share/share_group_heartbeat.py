"""ShareGroupHeartbeat: a member joins, stays in or leaves a share group (KIP-932)."""

from ottla.broker.coordinators.clients import client_of
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import serves
from ottla.coordination.group.share.heartbeat import refused_heartbeat
from ottla.security.rights import Operation, on_group, on_topic
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


@serves(
    ShareGroupHeartbeatRequest,
    "1",
    OfRequest(on_group(Operation.READ), "group_id", says={"error_message": None}),
    OfRequest(on_topic(Operation.DESCRIBE), "subscribed_topic_names", says={"error_message": None}),
    has_short_answers=True,
)
def share_group_heartbeat(
    ask: ShareGroupHeartbeatRequest, context: BrokerContext
) -> Deferred[ShareGroupHeartbeatResponse]:
    """Let the group coordinator answer, when what it decided is on disk."""
    broker = context.broker
    if not broker.groups.serves_share_protocol:
        return Deferred.of(refused_heartbeat(ErrorCode.UNSUPPORTED_VERSION))
    if ask.member_epoch < 0:
        broker.journal.member_left(context, ask.group_id, ask.member_id, None)
    answer: Deferred[ShareGroupHeartbeatResponse] = Deferred()
    broker.groups.coordinator.share_group_heartbeat(
        ask, client_of(context), broker.clock.now_ms(), answer.resolve
    )
    return answer
