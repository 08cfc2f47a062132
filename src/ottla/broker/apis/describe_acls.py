"""DescribeAcls: the access rules that match a filter, where an authorizer heeds them."""

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.security.rights import NO_AUTHORIZER
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


@handles(DescribeAclsRequest)
def describe_acls(_ask: DescribeAclsRequest, _context: RequestContext) -> DescribeAclsResponse:
    """Refuse, as Kafka does without an authorizer."""
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, resources=()
    )
