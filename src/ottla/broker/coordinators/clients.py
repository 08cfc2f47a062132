"""Who sends a request, as coordinators know and describe it."""

import ipaddress
from functools import lru_cache

from ottla.broker.serving.context import RequestContext
from ottla.coordination.group.environment import Client


def client_of(context: RequestContext) -> Client:
    """Return who sent the current request. A client without an id has an empty one."""
    return Client(context.client_id or "", host_text(context.peer_host), context.version)


@lru_cache(maxsize=4096)
def host_text(address: str) -> str:
    """Return an address as Kafka writes it down: after a slash, IPv6 without abbreviation."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return f"/{address}"
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return f"/{parsed.ipv4_mapped}"
        return "/" + ":".join(f"{int(part, 16):x}" for part in parsed.exploded.split(":"))
    return f"/{parsed}"
