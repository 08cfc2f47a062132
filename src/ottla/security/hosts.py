"""Addresses of clients as Kafka writes them: access rules and group descriptions compare them as texts."""

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=4096)
def java_address(address: str) -> str:
    """Return an IP address in the form of Java: IPv6 without abbreviation, and never an IPv4 inside one."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return ":".join(f"{int(part, 16):x}" for part in parsed.exploded.split(":"))
    return str(parsed)
