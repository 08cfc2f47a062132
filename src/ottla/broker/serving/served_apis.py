"""Every API that this node serves, as far as it is known before a handler is imported.

Handlers declare the rest beside their code: see `handlers`. Neither they nor the messages are imported to
read this table, because ApiVersions comes before anything else and would have to wait for all of them. The
rows are collected from the declarations by `collected`, and a test compares the two.

What is not in this table is neither served nor advertised. A version is advertised because its handler knows
it, not because its message exists.
"""

from enum import Enum, auto
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla.broker.serving.served_rows import ROWS
from ottla.wire.apis import ApiKey
from ottla.wire.versions import Versions, parse_versions


class Listener(Enum):
    """What a listener is for."""

    BROKER = auto()
    CONTROLLER = auto()


class ServedApi(NamedTuple):
    """What is known of an API before its handler is imported."""

    versions: Versions
    listeners: frozenset[Listener]
    # It is served to clients that have not logged in yet.
    is_for_login: bool = False
    # Kafka lists those of telemetry only where metrics of clients are received.
    is_advertised: bool = True
    # One version more is known, which is not final: `unstable.api.versions.enable` offers it.
    has_unstable: bool = False

    def versions_offered(self, *, with_unstable: bool) -> Versions:
        """Return the versions that a node serves."""
        if not (with_unstable and self.has_unstable):
            return self.versions
        return self.versions._replace(last=self.versions.last + 1)


def _served(versions: str, listeners: str, marks: str) -> ServedApi:
    return ServedApi(
        parse_versions(versions),
        frozenset(Listener[name] for name in listeners.split()),
        is_for_login="login" in marks,
        is_advertised="hidden" not in marks,
        has_unstable="unstable" in marks,
    )


SERVED: Final = MappingProxyType({ApiKey[name]: _served(*row) for name, *row in ROWS})
