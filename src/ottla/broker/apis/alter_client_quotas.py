"""AlterClientQuotas: quotas of users, clients and addresses are set and removed."""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse


@handles(AlterClientQuotasRequest)
def alter_client_quotas(
    ask: AlterClientQuotasRequest, context: RequestContext
) -> Deferred[AlterClientQuotasResponse]:
    """Answer when the quotas hold."""
    return context.ask_controller(ask)
