"""AlterClientQuotas: quotas of users, clients and addresses are set and removed."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import BOTH, serves
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    QuotaAlteration,
)


def _entity(entry: QuotaAlteration) -> frozenset[tuple[str, str | None]]:
    return frozenset((part.entity_type, part.entity_name) for part in entry.entity)


@serves(
    AlterClientQuotasRequest,
    "0-1",
    on_cluster(Operation.ALTER_CONFIGS),
    listeners=BOTH,
    is_forwarded=True,
    cuts=(Cut("entries", "entries", key=_entity),),
    elements_max=4 * RECORDS_MAX,
)
def alter_client_quotas(
    ask: AlterClientQuotasRequest, context: RequestContext
) -> Deferred[AlterClientQuotasResponse]:
    """Answer when the quotas hold."""
    return context.ask_controller(ask)
