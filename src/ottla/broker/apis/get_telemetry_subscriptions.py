"""GetTelemetrySubscriptions: which metrics a client shall push. None, since nobody here receives them.

This is what Kafka answers without a telemetry receiver, and as there, the API is served but not advertised.
"""

from typing import Final

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.model.uuid import ZERO_UUID
from ottla.records.attributes import Codec
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

PUSH_INTERVAL_MS: Final = 300_000
_ACCEPTED: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)


@handles(GetTelemetrySubscriptionsRequest)
def get_telemetry_subscriptions(
    ask: GetTelemetrySubscriptionsRequest, context: RequestContext
) -> GetTelemetrySubscriptionsResponse:
    """Give the client an id if it has none, and ask for nothing."""
    client_id = ask.client_instance_id
    if client_id == ZERO_UUID:
        client_id = context.broker.new_id()
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=client_id,
        # It only has to stay the same for a client as long as the subscriptions do.
        subscription_id=int.from_bytes(client_id[:4], signed=True),
        accepted_compression_types=tuple(int(codec) for codec in _ACCEPTED),
        push_interval_ms=PUSH_INTERVAL_MS,
        telemetry_max_bytes=context.broker.config.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=(),
    )
