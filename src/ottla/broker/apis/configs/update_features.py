"""UpdateFeatures: the cluster agrees on other levels of features."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


@serves(
    UpdateFeaturesRequest,
    "0-2",
    on_cluster(Operation.ALTER),
    listeners=BOTH,
    is_forwarded=True,
)
def update_features(ask: UpdateFeaturesRequest, context: RequestContext) -> Deferred[UpdateFeaturesResponse]:
    """Answer when the levels hold."""
    return context.ask_controller(ask)
