"""The sender of a request, as coordinators know and describe it."""

from functools import partial
from typing import Final

from ottla.broker.serving.context import RequestContext
from ottla.coordination.group.environment import Client, sees_everything
from ottla.security.authorizer import Authorizer
from ottla.security.hosts import java_address
from ottla.security.principal import Principal
from ottla.security.rights import Operation, on_topic

_DESCRIBE: Final = on_topic(Operation.DESCRIBE)


def client_of(context: RequestContext) -> Client:
    """Return who sent the current request. A client without an id has an empty one."""
    sees = sees_everything
    if context.node.authorizer.is_active:
        # The context may have another principal by the time this is asked.
        sees = partial(_may_describe, context.node.authorizer, context.principal, context.host)
    return Client(context.client_id or "", host_text(context.peer_host), context.version, sees)


def _may_describe(authorizer: Authorizer, principal: Principal, host: str, topic: str) -> bool:
    return authorizer.allows(principal, host, _DESCRIBE, topic)


def host_text(address: str) -> str:
    """Return an address as Kafka describes members: after a slash."""
    return f"/{java_address(address)}"
