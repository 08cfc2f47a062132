"""CreateAcls: access rules are made."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import handles
from ottla.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse


@handles(CreateAclsRequest, Cut("creations", "results"))
def create_acls(ask: CreateAclsRequest, context: RequestContext) -> Deferred[CreateAclsResponse]:
    """Answer when the rules hold. Without an authorizer, nobody would heed them: the controller refuses."""
    return context.ask_controller(ask)
