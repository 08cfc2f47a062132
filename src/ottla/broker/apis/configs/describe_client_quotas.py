"""DescribeClientQuotas: the quotas of entities that match a filter."""

from ottla.broker.node import BrokerContext
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import serves
from ottla.quorum.controller.quotas import describe_quotas
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


@serves(
    DescribeClientQuotasRequest,
    "0-1",
    OfRequest(on_cluster(Operation.DESCRIBE_CONFIGS), says={"entries": None}),
)
def describe_client_quotas(
    ask: DescribeClientQuotasRequest, context: BrokerContext
) -> DescribeClientQuotasResponse:
    """Answer from the metadata that this node acts on."""
    return describe_quotas(context.broker.image, ask)
