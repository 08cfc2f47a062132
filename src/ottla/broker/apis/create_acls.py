"""CreateAcls: access rules are made."""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.quorum.controller.acls import NO_AUTHORIZER, decide_create_acls
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


@handles(CreateAclsRequest)
def create_acls(
    ask: CreateAclsRequest, context: RequestContext
) -> Deferred[CreateAclsResponse] | CreateAclsResponse:
    """Answer when the rules hold. Without an authorizer nothing would heed them, so none are made."""
    if context.broker.config.authorizer_class_name:
        return context.decide(decide_create_acls, ask)
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(results=(refused,) * len(ask.creations))
