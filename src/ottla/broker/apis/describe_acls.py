"""DescribeAcls: the access rules that match a filter."""

from ottla.broker.context import RequestContext
from ottla.broker.handlers import handles
from ottla.quorum.controller import acls
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


@handles(DescribeAclsRequest)
def describe_acls(ask: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """Answer from the metadata that this node acts on."""
    if context.broker.config.authorizer_class_name:
        return acls.describe_acls(context.broker.image, ask)
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=acls.NO_AUTHORIZER, resources=()
    )
