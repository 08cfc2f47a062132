"""What a node listens on: which addresses, whether that is safe, and what is registered for others to see."""

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.listener import ListenerConfig
from ottla.metadata.configs.node import Endpoint, NodeConfig
from ottla.world.network import Listening, Network

SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
_EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - the user has asked for it, and `check_endpoints` let it pass
_ANY_ADDRESS: Final = ("", _EVERY_ADDRESS, "::")


class ListenerRefused(Exception):
    """A listener cannot be opened, or must not be."""


class BoundListener(NamedTuple):
    """A listener with the address it really has."""

    name: str
    host: str
    port: int
    security_protocol: int


class TakenAddress(NamedTuple):
    """An address that was taken for a listener. Nobody can connect to it yet."""

    listener: BoundListener
    listening: Listening


def with_address(configs: EffectiveConfigs, host: str | None, port: int | None) -> EffectiveConfigs:
    """Return the configuration with the address of the command line, which is for the first listener."""
    if host is None and port is None:
        return configs
    first = configs.node.broker_endpoints[0]
    listeners = ",".join(
        _listener_text(
            endpoint.listener,
            endpoint.host if host is None or endpoint is not first else host,
            endpoint.port if port is None or endpoint is not first else port,
        )
        for endpoint in configs.node.listener_endpoints
    )
    return EffectiveConfigs({**configs.layers.static, "listeners": listeners})


def _listener_text(name: str, host: str, port: int) -> str:
    return f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}"


def check_endpoints(endpoints: Sequence[Endpoint], configs: EffectiveConfigs, is_insecure: bool) -> None:
    """Refuse listeners that would let in anybody from anywhere."""
    for endpoint in endpoints:
        if is_insecure or is_loopback(endpoint.host) or asks_for_login(endpoint, configs):
            continue
        raise ListenerRefused(
            f"listener {endpoint.listener} would listen on {endpoint.host or 'all addresses'} without "
            "authentication: any client that reaches the port could read and delete everything. "
            "Listen on 127.0.0.1, or add --insecure if that is what you want"
        )


def asks_for_login(endpoint: Endpoint, configs: EffectiveConfigs) -> bool:
    """Say whether nobody is served on a listener who cannot prove who it is."""
    config = ListenerConfig(configs, endpoint.listener)
    if endpoint.security_protocol == "SSL":
        return str(config.value("ssl.client.auth")).lower() == "required"
    if not endpoint.security_protocol.startswith("SASL"):
        return False
    # Imported only here: most nodes start without a login.
    from ottla.broker.login.mechanisms import takes_unsigned_tokens

    return not takes_unsigned_tokens(config)


def is_loopback(host: str) -> bool:
    """Say whether an address can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def bind(network: Network, endpoints: Sequence[Endpoint], send_buffer_bytes: int) -> list[TakenAddress]:
    """Take all addresses. No client is served yet."""
    taken: list[TakenAddress] = []
    for name, host, port, protocol in endpoints:
        try:
            # A listener without a host is one for every address.
            address = network.resolve(host) if host else _EVERY_ADDRESS
            listening = network.listen(address, port, send_buffer_bytes)
        except OSError as error:
            for earlier in taken:
                earlier.listening.close()
            raise ListenerRefused(
                f"cannot listen on {host or '*'}:{port}: {error.strerror or error}"
            ) from error
        bound = BoundListener(name, host, listening.address[1], SECURITY_PROTOCOLS[protocol])
        taken.append(TakenAddress(bound, listening))
    return taken


def advertised(config: NodeConfig, bound: Sequence[BoundListener], host_name: str) -> list[BoundListener]:
    """Return the addresses to register: those configured, or those bound, with a host others can use."""
    ports = {listener.name: listener.port for listener in bound}
    if config.advertised_listeners is not None:
        return [
            BoundListener(
                endpoint.listener,
                endpoint.host,
                endpoint.port or ports.get(endpoint.listener, 0),
                SECURITY_PROTOCOLS[endpoint.security_protocol],
            )
            for endpoint in config.advertised_endpoints
        ]
    return [
        listener._replace(host=host_name) if listener.host in _ANY_ADDRESS else listener for listener in bound
    ]
