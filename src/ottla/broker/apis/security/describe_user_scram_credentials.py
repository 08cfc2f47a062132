"""DescribeUserScramCredentials: which credentials users have, but not what they are."""

from operator import attrgetter

from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import BOTH, serves
from ottla.quorum.controller.scram import describe_scram_credentials
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


@serves(
    DescribeUserScramCredentialsRequest,
    "0",
    on_cluster(Operation.DESCRIBE),
    listeners=BOTH,
    cuts=(Cut("users", "results", key=attrgetter("name")),),
)
def describe_user_scram_credentials(
    ask: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Answer from the metadata that this node acts on."""
    return describe_scram_credentials(context.node.image, ask)
