"""DeleteAcls: access rules are removed, where an authorizer heeds them."""

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import handles
from ottla.security.rights import NO_AUTHORIZER
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


@handles(DeleteAclsRequest, Cut("filters", "filter_results"))
def delete_acls(ask: DeleteAclsRequest, _context: RequestContext) -> DeleteAclsResponse:
    """Refuse, as Kafka does without an authorizer."""
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, matching_acls=()
    )
    return DeleteAclsResponse(filter_results=(refused,) * len(ask.filters))
