"""DescribeDelegationToken: the tokens there are, which nobody on a plain listener may see."""

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


@handles(DescribeDelegationTokenRequest)
def describe_delegation_token(
    _ask: DescribeDelegationTokenRequest, _context: RequestContext
) -> DescribeDelegationTokenResponse:
    """Refuse, as Kafka does on a plain listener."""
    return DescribeDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, tokens=()
    )
