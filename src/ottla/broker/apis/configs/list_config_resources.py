"""ListConfigResources: the resources that have configs (KIP-1142).

A topic and a broker always have some. A group or a subscription is listed once somebody has set one for it.
"""

from collections.abc import Iterator
from typing import Final

from ottla.broker.logs.partition import UNLISTED_TOPICS
from ottla.broker.node import BrokerContext
from ottla.broker.serving.handlers import serves
from ottla.metadata.image import MetadataImage
from ottla.security.rights import Operation, on_cluster
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_ALL: Final = frozenset(ResourceType)
_FIRST_VERSION_WITH_TYPES: Final = 1


@serves(ListConfigResourcesRequest, "0-1", on_cluster(Operation.DESCRIBE_CONFIGS))
def list_config_resources(
    ask: ListConfigResourcesRequest, context: BrokerContext
) -> ListConfigResourcesResponse:
    """List the resources of the types asked for: of all types if none is named."""
    if context.version < _FIRST_VERSION_WITH_TYPES:
        types: frozenset[int] = frozenset((ResourceType.CLIENT_METRICS,))
    else:
        types = frozenset(ask.resource_types) or _ALL
    if not types <= _ALL:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=())
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in sorted(types)
            for name in sorted(_names(context.broker.image, resource_type))
        )
    )


def _names(image: MetadataImage, resource_type: int) -> Iterator[str]:
    match resource_type:
        case ResourceType.TOPIC:
            yield from image.topics.names.keys() - UNLISTED_TOPICS
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            yield from map(str, image.brokers)
        case _:
            yield from (resource.name for resource in image.configs if resource.type == resource_type)
