"""PushTelemetry: a client pushes its metrics, as its subscription asks for (KIP-714)."""

from ottla.broker.apis.configs.get_telemetry_subscriptions import identity_of
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.handlers import serves
from ottla.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


@serves(
    PushTelemetryRequest,
    "0",
    free_because="Kafka requires none",
    is_advertised=False,
)
def push_telemetry(ask: PushTelemetryRequest, context: BrokerContext) -> Deferred[PushTelemetryResponse]:
    """Take the metrics, or say why not."""
    broker = context.broker
    pushed = broker.telemetry.push(ask, identity_of(context), broker.image)
    return pushed.then(lambda error: PushTelemetryResponse(error_code=error))
