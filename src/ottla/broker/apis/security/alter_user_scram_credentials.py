"""AlterUserScramCredentials: users get credentials, or lose them."""

from operator import attrgetter

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import BOTH, serves
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)


def _does_both(ask: AlterUserScramCredentialsRequest) -> bool:
    """Say whether a user may be named twice, by a deletion and by an upsertion."""
    return bool(ask.deletions and ask.upsertions)


@serves(
    AlterUserScramCredentialsRequest,
    "0",
    on_cluster(Operation.ALTER),
    listeners=BOTH,
    is_forwarded=True,
    cuts=(
        Cut("upsertions", "results", key=attrgetter("name"), is_whole=_does_both),
        Cut("deletions", "results", key=attrgetter("name"), is_whole=_does_both),
    ),
    elements_max=RECORDS_MAX,
)
def alter_user_scram_credentials(
    ask: AlterUserScramCredentialsRequest, context: RequestContext
) -> Deferred[AlterUserScramCredentialsResponse]:
    """Answer when the credentials hold."""
    return context.ask_controller(ask)
