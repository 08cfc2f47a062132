"""How this node shows other nodes who it is: by the listener that they are reached on.

The keystore of the listener is the node's own certificate, its truststore says whom to trust, and the login
options of its mechanism (`username`, `password`) are the node's own credentials. With OAUTHBEARER it shows a
token of an identity provider.
"""

from collections.abc import Callable

from ottla.broker.login.mechanisms import MechanismRefused, jaas_of
from ottla.broker.login.tls_listeners import tls_settings
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.listener import ListenerConfig
from ottla.runtime.connections.peer import PeerSecurity
from ottla.runtime.connections.tls_contexts import TlsRefused, client_context
from ottla.wire.sasl.login import MECHANISMS, Login, PlainLogin, ScramLogin
from ottla.world.world import World


def make_peer_security(
    configs: EffectiveConfigs, listener: str, mechanism: str, world: World
) -> PeerSecurity | None:
    """Return how to connect to a listener of another node; None if it is plaintext."""
    protocol = configs.node.security_protocols.get(listener, "PLAINTEXT")
    config = ListenerConfig(configs, listener)
    tls = None
    if protocol.endswith("SSL"):
        try:
            tls = client_context(
                tls_settings(config, protocol),
                checks_host_name=bool(config.value("ssl.endpoint.identification.algorithm")),
            )
        except TlsRefused as error:
            raise TlsRefused(f"listener {listener}: {error}") from error
    if not protocol.startswith("SASL"):
        return None if tls is None else PeerSecurity(tls)
    return PeerSecurity(tls, mechanism, _make_login(config, mechanism, world))


def _make_login(config: ListenerConfig, mechanism: str, world: World) -> Callable[[], Login]:
    listener = config.listener
    if mechanism not in MECHANISMS:
        raise MechanismRefused(
            f"nodes are to log in on listener {listener} by {mechanism}, but Ottla supports "
            f"{', '.join(MECHANISMS)} between nodes: set sasl.mechanism.inter.broker.protocol or "
            "sasl.mechanism.controller.protocol"
        )
    if mechanism == "OAUTHBEARER":
        # Imported only here: few nodes log in by tokens.
        from ottla.broker.login.own_tokens import bearer_login_maker

        return bearer_login_maker(config, world.clock, world.workers.run)
    jaas = jaas_of(config, mechanism)
    options = {} if jaas is None else jaas.options
    user, password = options.get("username"), options.get("password")
    if user is None or password is None:
        raise MechanismRefused(
            f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config has no username and "
            "password, which nodes need to log in to each other"
        )

    def make() -> Login:
        if mechanism == "PLAIN":
            return PlainLogin(user, password)
        return ScramLogin(mechanism, user, password, world.random.randbytes(20).hex())

    return make
