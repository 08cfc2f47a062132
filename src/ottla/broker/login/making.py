"""What a node needs for logins and encryption, made only if a listener asks for it.

A node whose listeners are all plaintext imports nothing of the rest of this package.
"""

from typing import TYPE_CHECKING

from ottla.broker.authorization.audit import Audit
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.published import PublishedMetadata
from ottla.runtime.connections.peer import PeerSecurity
from ottla.world.world import World

if TYPE_CHECKING:
    from ottla.broker.login.logins import Logins
    from ottla.broker.login.tls_listeners import TlsListeners


def make_logins(
    configs: EffectiveConfigs, world: World, metadata: PublishedMetadata, audit: Audit
) -> "Logins | None":
    """Return what lets clients log in; None if no listener asks for it."""
    if all(protocol == "PLAINTEXT" for protocol in _protocols(configs.node)):
        return None
    from ottla.broker.login.logins import Logins

    return Logins(configs, world, metadata, audit)


def make_tls(configs: EffectiveConfigs) -> "TlsListeners | None":
    """Return the certificates of listeners; None if none is encrypted."""
    if not any(protocol.endswith("SSL") for protocol in _protocols(configs.node)):
        return None
    from ottla.broker.login.tls_listeners import TlsListeners

    return TlsListeners(configs, configs.node.listener_endpoints)


def make_peer_security(
    configs: EffectiveConfigs, listener: str, mechanism: str, world: World
) -> PeerSecurity | None:
    """Return how this node logs in on a listener of other nodes; None if that is plaintext."""
    if configs.node.security_protocols.get(listener, "PLAINTEXT") == "PLAINTEXT":
        return None
    from ottla.broker.login import peer_security

    return peer_security.make_peer_security(configs, listener, mechanism, world)


def _protocols(config: NodeConfig) -> list[str]:
    return [endpoint.security_protocol for endpoint in config.listener_endpoints]
