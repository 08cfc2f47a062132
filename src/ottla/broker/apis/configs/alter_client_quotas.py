"""AlterClientQuotas: quotas of users, clients and addresses are set and removed."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import handles
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    QuotaAlteration,
)


def _entity(entry: QuotaAlteration) -> frozenset[tuple[str, str | None]]:
    return frozenset((part.entity_type, part.entity_name) for part in entry.entity)


@handles(AlterClientQuotasRequest, Cut("entries", "entries", key=_entity), elements_max=4 * RECORDS_MAX)
def alter_client_quotas(
    ask: AlterClientQuotasRequest, context: RequestContext
) -> Deferred[AlterClientQuotasResponse]:
    """Answer when the quotas hold."""
    return context.ask_controller(ask)
