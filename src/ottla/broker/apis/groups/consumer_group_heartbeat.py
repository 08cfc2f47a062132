"""ConsumerGroupHeartbeat: a member joins, stays in or leaves a consumer group (KIP-848)."""

from ottla.broker.coordinators.clients import client_of
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import serves
from ottla.coordination.group.consumer.heartbeat import refused_heartbeat
from ottla.security.rights import Operation, on_group, on_topic
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


@serves(
    ConsumerGroupHeartbeatRequest,
    "0-1",
    OfRequest(on_group(Operation.READ), "group_id", says={"error_message": None}),
    OfRequest(on_topic(Operation.DESCRIBE), "subscribed_topic_names", says={"error_message": None}),
    has_short_answers=True,
)
def consumer_group_heartbeat(
    ask: ConsumerGroupHeartbeatRequest, context: BrokerContext
) -> Deferred[ConsumerGroupHeartbeatResponse]:
    """Let the group coordinator answer, when what it decided is on disk."""
    broker = context.broker
    if not broker.groups.serves_consumer_protocol:
        return Deferred.of(refused_heartbeat(ErrorCode.UNSUPPORTED_VERSION))
    if ask.member_epoch < 0:
        broker.journal.member_left(context, ask.group_id, ask.member_id, None)
    answer: Deferred[ConsumerGroupHeartbeatResponse] = Deferred()
    broker.groups.coordinator.consumer_group_heartbeat(
        ask, client_of(context), broker.clock.now_ms(), answer.resolve
    )
    return answer
