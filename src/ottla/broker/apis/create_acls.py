"""CreateAcls: access rules are made, where an authorizer heeds them."""

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import handles
from ottla.security.rights import NO_AUTHORIZER
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


@handles(CreateAclsRequest, Cut("creations", "results"))
def create_acls(ask: CreateAclsRequest, _context: RequestContext) -> CreateAclsResponse:
    """Refuse, as Kafka does without an authorizer: rules that nobody heeds would be worse than none."""
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(results=(refused,) * len(ask.creations))
