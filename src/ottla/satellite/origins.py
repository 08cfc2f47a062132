"""Whether a request may come from a web page of somebody else.

A browser sends what a page asks it to, from wherever the browser runs. So a page that a developer only reads
could use a satellite on the developer's own machine. Browsers say where a request comes from, and pages
cannot change that: `Origin` and `Sec-Fetch-Site`. A page whose name leads to this machine is no stranger to
the browser (DNS rebinding), but its name is in `Host`.
"""

import ipaddress
from collections.abc import Mapping
from typing import Final

# What a browser says of requests that no other site has made: by the user, or by a page from here.
_OWN_SITES: Final = ("same-origin", "none")
_READING: Final = ("GET", "HEAD")


def find_refusal(method: str, headers: Mapping[str, str], names: frozenset[str]) -> str | None:
    """Return why a request is refused, by the names that the satellite has. None: it is not."""
    host = headers.get("host")
    if host is not None and not _is_known(host, names):
        return (
            f"Host {host!r} is no name of this server: use its address, or start it with --allow-host "
            f"{_without_port(host)}"
        )
    # Who follows a link from another site only reads, and that site sees nothing of it.
    if method in _READING and headers.get("sec-fetch-mode") == "navigate":
        return None
    site = headers.get("sec-fetch-site", "none")
    if site not in _OWN_SITES:
        return "requests from web pages of other sites are refused"
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        return f"requests from web pages of other origins are refused: {origin!r}"
    return None


def _is_known(host: str, names: frozenset[str]) -> bool:
    name = _without_port(host).lower().rstrip(".")
    if name in names:
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    # No name leads to an address that is written as one.
    return True


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
