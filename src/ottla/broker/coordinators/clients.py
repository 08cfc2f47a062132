"""Who sends a request, as coordinators know and describe it."""

from ottla.broker.serving.context import RequestContext
from ottla.coordination.group.environment import Client
from ottla.security.hosts import java_address


def client_of(context: RequestContext) -> Client:
    """Return who sent the current request. A client without an id has an empty one."""
    return Client(context.client_id or "", host_text(context.peer_host), context.version)


def host_text(address: str) -> str:
    """Return an address as Kafka describes members: after a slash."""
    return f"/{java_address(address)}"
