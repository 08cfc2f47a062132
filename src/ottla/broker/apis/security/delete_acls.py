"""DeleteAcls: access rules are removed."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import BOTH, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse


@serves(
    DeleteAclsRequest,
    "1-3",
    on_cluster(Operation.ALTER),
    listeners=BOTH,
    is_forwarded=True,
    cuts=(Cut("filters", "filter_results"),),
)
def delete_acls(ask: DeleteAclsRequest, context: RequestContext) -> Deferred[DeleteAclsResponse]:
    """Answer when the rules hold no more."""
    return context.ask_controller(ask)
