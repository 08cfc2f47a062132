"""Heartbeat: a member of a classic group lives."""

from ottla.broker.coordinators.clients import client_of
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import serves
from ottla.security.rights import Operation, on_group
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@serves(
    HeartbeatRequest,
    "0-4",
    OfRequest(on_group(Operation.READ), "group_id"),
    has_short_answers=True,
)
def heartbeat(ask: HeartbeatRequest, context: BrokerContext) -> Deferred[HeartbeatResponse]:
    """Let the group coordinator answer."""
    broker = context.broker
    answer: Deferred[HeartbeatResponse] = Deferred()
    broker.groups.coordinator.heartbeat(ask, client_of(context), broker.clock.now_ms(), answer.resolve)
    return answer
