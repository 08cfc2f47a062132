"""CreateAcls: access rules are made."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, serves
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse


# Not cut: each part would look at all rules there are, and be a change of the rules of its own.
@serves(
    CreateAclsRequest,
    "1-3",
    on_cluster(Operation.ALTER),
    listeners=BOTH,
    is_forwarded=True,
    elements_max=RECORDS_MAX,
)
def create_acls(ask: CreateAclsRequest, context: RequestContext) -> Deferred[CreateAclsResponse]:
    """Answer when the rules hold. Without an authorizer, nobody would heed them: the controller refuses."""
    return context.ask_controller(ask)
