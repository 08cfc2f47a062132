"""DescribeUserScramCredentials: which credentials users have, but not what they are."""

from operator import attrgetter

from ottla.broker.authorization.refusals import only_error
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.demands import OfRequest
from ottla.broker.serving.handlers import BOTH, serves
from ottla.quorum.controller.scram import describe_scram_credentials
from ottla.security.rights import Operation, on_cluster
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def _refused(
    ask: DescribeUserScramCredentialsRequest, error_code: ErrorCode, _context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Answer with an entry for each user, without a name."""
    results = tuple(only_error(DescribeUserScramCredentialsResult, error_code) for _ in ask.users or ())
    return only_error(DescribeUserScramCredentialsResponse, error_code, results=results)


@serves(
    DescribeUserScramCredentialsRequest,
    "0",
    OfRequest(on_cluster(Operation.DESCRIBE), refuse=_refused),
    listeners=BOTH,
    cuts=(Cut("users", "results", key=attrgetter("name")),),
)
def describe_user_scram_credentials(
    ask: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Answer from the metadata that this node acts on."""
    return describe_scram_credentials(context.node.image, ask)
