"""ApiVersions: what this node speaks, and the features of the cluster."""

import re
from functools import cache

from ottla.broker.node import BrokerContext
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, serves
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.wire.apis import ApiKey
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.api_versions import (
    FEATURES_WITH_LEVEL_0_FROM,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from ottla.wire.versions import Versions

_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@serves(
    ApiVersionsRequest,
    "0-4",
    free_because="it comes before the login",
    listeners=BOTH,
    is_for_login=True,
)
def api_versions(ask: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    """List the APIs and features. Clients send it before anything else, so it needs nothing but the image."""
    if context.version >= 3 and not _is_valid_software(ask):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
    if context.version >= 3:
        context.software = (ask.client_software_name, ask.client_software_version)
    features = context.node.features()
    # Clients before v4 refuse an answer that has a feature whose lowest level is 0.
    supported = tuple(
        feature
        for feature in features.supported
        if context.version >= FEATURES_WITH_LEVEL_0_FROM or feature.min_version > 0
    )
    config = context.broker.config if isinstance(context, BrokerContext) else None
    return ApiVersionsResponse(
        api_keys=advertised_versions(
            context.listener,
            # As in Kafka, clients only see telemetry where somebody receives it.
            with_telemetry=config is not None and config.ottla_telemetry_enable,
            with_unstable=config is not None and config.unstable_api_versions_enable,
        ),
        supported_features=supported,
        finalized_features_epoch=features.finalized_epoch,
        finalized_features=features.finalized,
    )


@cache
def advertised_versions(
    listener: Listener = Listener.BROKER, *, with_telemetry: bool = False, with_unstable: bool = False
) -> tuple[ApiVersion, ...]:
    """Return the versions of every API that is advertised on a listener, in ascending order."""
    return tuple(
        _advertised(key, served.versions_offered(with_unstable=with_unstable))
        for key, served in sorted(SERVED.items())
        if (served.is_advertised or with_telemetry) and listener in served.listeners
    )


def _advertised(key: ApiKey, versions: Versions) -> ApiVersion:
    # librdkafka takes a broker without Produce v0 for one without Produce. Kafka therefore shows 0 as well,
    # and refuses what lies below the real minimum.
    first = 0 if key is ApiKey.PRODUCE else versions.first
    return ApiVersion(api_key=key, min_version=first, max_version=versions.last)


def _is_valid_software(ask: ApiVersionsRequest) -> bool:
    return bool(
        _SOFTWARE_NAME.fullmatch(ask.client_software_name)
        and _SOFTWARE_NAME.fullmatch(ask.client_software_version)
    )
