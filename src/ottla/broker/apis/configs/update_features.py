"""UpdateFeatures: the cluster agrees on other levels of features."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


@handles(UpdateFeaturesRequest)
def update_features(ask: UpdateFeaturesRequest, context: RequestContext) -> Deferred[UpdateFeaturesResponse]:
    """Answer when the levels hold."""
    return context.ask_controller(ask)
