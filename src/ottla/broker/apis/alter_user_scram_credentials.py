"""AlterUserScramCredentials: users get credentials, or lose them."""

from ottla.broker.context import RequestContext
from ottla.broker.deferred import Deferred
from ottla.broker.handlers import handles
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)


@handles(AlterUserScramCredentialsRequest)
def alter_user_scram_credentials(
    ask: AlterUserScramCredentialsRequest, context: RequestContext
) -> Deferred[AlterUserScramCredentialsResponse]:
    """Answer when the credentials hold."""
    return context.ask_controller(ask)
