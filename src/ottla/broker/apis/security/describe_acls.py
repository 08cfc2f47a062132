"""DescribeAcls: the access rules that match a filter, where an authorizer heeds them."""

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import BOTH, serves
from ottla.quorum.controller.security.access_rules import describe_acls as describe
from ottla.security.rights import Operation, on_cluster
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


@serves(
    DescribeAclsRequest,
    "1-3",
    on_cluster(Operation.DESCRIBE),
    listeners=BOTH,
)
def describe_acls(ask: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """Answer from the metadata that this node acts on."""
    if not context.node.authorizer.is_active:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message="No Authorizer is configured on the broker",
            resources=(),
        )
    return describe(context.node.image, ask)
