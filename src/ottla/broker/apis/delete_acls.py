"""DeleteAcls: access rules are removed."""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.quorum.controller.acls import NO_AUTHORIZER, decide_delete_acls
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


@handles(DeleteAclsRequest)
def delete_acls(
    ask: DeleteAclsRequest, context: RequestContext
) -> Deferred[DeleteAclsResponse] | DeleteAclsResponse:
    """Answer when the rules no longer hold."""
    if context.broker.config.authorizer_class_name:
        return context.decide(decide_delete_acls, ask)
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, matching_acls=()
    )
    return DeleteAclsResponse(filter_results=(refused,) * len(ask.filters))
