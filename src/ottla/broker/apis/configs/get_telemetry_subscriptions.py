"""GetTelemetrySubscriptions: which metrics a client should push (KIP-714).

As in a Kafka without a telemetry receiver, it is served but not advertised, unless `ottla.telemetry.enable`
says that the node keeps what clients push.
"""

from ottla.broker.node import BrokerContext
from ottla.broker.serving.handlers import serves
from ottla.broker.telemetry.telemetry import ClientIdentity
from ottla.model.uuid import ZERO_UUID
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


@serves(
    GetTelemetrySubscriptionsRequest,
    "0",
    free_because="Kafka requires none",
    is_advertised=False,
)
def get_telemetry_subscriptions(
    ask: GetTelemetrySubscriptionsRequest, context: BrokerContext
) -> GetTelemetrySubscriptionsResponse:
    """Give the client an id if it has none, and tell it what is asked of it."""
    broker = context.broker
    instance_id = ask.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = broker.new_id()
    return broker.telemetry.subscribe(instance_id, identity_of(context), broker.image)


def identity_of(context: BrokerContext) -> ClientIdentity:
    """Return who a client is, for the selectors of subscriptions."""
    return ClientIdentity(context.client_id, *context.software, context.host, context.peer_port)
