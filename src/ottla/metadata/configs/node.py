"""All configs of one node, and what follows from several of them together.

`NodeConfig` has an attribute for each broker config. The properties beside them are the values to use where
Kafka spreads one thing over several keys: `retention_ms` (out of ms, minutes and hours), `data_directories`
(out of `log.dirs` and `log.dir`), `listener_endpoints` (out of addresses and the protocol map).
"""

import re
from functools import cached_property
from typing import Final, NamedTuple

from ottla.metadata.configs.broker.cleaner import BrokerCleanerConfigs
from ottla.metadata.configs.broker.consumer_groups import BrokerConsumerGroupConfigs
from ottla.metadata.configs.broker.groups import BrokerGroupConfigs
from ottla.metadata.configs.broker.log import BrokerLogConfigs
from ottla.metadata.configs.broker.metrics import BrokerMetricsConfigs
from ottla.metadata.configs.broker.network import BrokerNetworkConfigs
from ottla.metadata.configs.broker.node import BrokerNodeConfigs
from ottla.metadata.configs.broker.oauth import BrokerOauthConfigs
from ottla.metadata.configs.broker.quorum import BrokerQuorumConfigs
from ottla.metadata.configs.broker.quotas import BrokerQuotaConfigs
from ottla.metadata.configs.broker.replication import BrokerReplicationConfigs
from ottla.metadata.configs.broker.sasl import BrokerSaslConfigs
from ottla.metadata.configs.broker.security import BrokerSecurityConfigs
from ottla.metadata.configs.broker.share_groups import BrokerShareGroupConfigs
from ottla.metadata.configs.broker.streams_groups import BrokerStreamsGroupConfigs
from ottla.metadata.configs.broker.tiered_storage import BrokerTieredStorageConfigs
from ottla.metadata.configs.broker.tls import BrokerTlsConfigs
from ottla.metadata.configs.broker.topics import BrokerTopicConfigs
from ottla.metadata.configs.broker.transactions import BrokerTransactionConfigs
from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.ottla import OttlaConfigs

UNLIMITED: Final = -1
_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
_ENDPOINT: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Endpoint(NamedTuple):
    """Where a listener is. An empty host means every interface, port 0 one the system picks."""

    listener: str
    host: str
    port: int
    security_protocol: str


class NodeConfig(
    BrokerNodeConfigs,
    BrokerNetworkConfigs,
    BrokerQuorumConfigs,
    BrokerTopicConfigs,
    BrokerLogConfigs,
    BrokerCleanerConfigs,
    BrokerReplicationConfigs,
    BrokerGroupConfigs,
    BrokerConsumerGroupConfigs,
    BrokerShareGroupConfigs,
    BrokerStreamsGroupConfigs,
    BrokerTransactionConfigs,
    BrokerTieredStorageConfigs,
    BrokerQuotaConfigs,
    BrokerMetricsConfigs,
    BrokerSecurityConfigs,
    BrokerSaslConfigs,
    BrokerOauthConfigs,
    BrokerTlsConfigs,
    OttlaConfigs,
):
    """Every config of a node, as typed attributes."""

    @cached_property
    def is_broker(self) -> bool:
        """Whether the node serves clients."""
        return "broker" in self.process_roles

    @cached_property
    def is_controller(self) -> bool:
        """Whether the node is of the metadata quorum."""
        return "controller" in self.process_roles

    @cached_property
    def data_directories(self) -> tuple[str, ...]:
        """Where partitions are stored."""
        return self.log_dirs or self.log_dir

    @cached_property
    def metadata_directory(self) -> str:
        """Where the metadata log is stored."""
        return self.metadata_log_dir or self.data_directories[0]

    @cached_property
    def retention_ms(self) -> int:
        """How long records are kept; UNLIMITED for ever."""
        milliseconds = self.log_retention_ms
        if milliseconds is None and self.log_retention_minutes is not None:
            milliseconds = self.log_retention_minutes * _MINUTE_MS
        if milliseconds is None:
            milliseconds = self.log_retention_hours * _HOUR_MS
        return max(milliseconds, UNLIMITED)

    @cached_property
    def roll_ms(self) -> int:
        """Age at which a segment is closed."""
        return self.log_roll_hours * _HOUR_MS if self.log_roll_ms is None else self.log_roll_ms

    @cached_property
    def roll_jitter_ms(self) -> int:
        """Most by which the age of closing a segment varies."""
        return (
            self.log_roll_jitter_hours * _HOUR_MS
            if self.log_roll_jitter_ms is None
            else self.log_roll_jitter_ms
        )

    @cached_property
    def flush_ms(self) -> int:
        """How long a record may wait for a sync of its segment."""
        interval_ms = self.log_flush_interval_ms
        return self.log_flush_scheduler_interval_ms if interval_ms is None else interval_ms

    @cached_property
    def security_protocols(self) -> dict[str, str]:
        """The security protocol of each listener name."""
        return parse_protocol_map(self.listener_security_protocol_map)

    @cached_property
    def listener_endpoints(self) -> tuple[Endpoint, ...]:
        """What to listen on, the controller's listeners included."""
        return parse_endpoints("listeners", self.listeners, self.security_protocols)

    @cached_property
    def advertised_endpoints(self) -> tuple[Endpoint, ...]:
        """The listeners that clients get, without the controller's."""
        given = self.advertised_listeners
        name, texts = ("listeners", self.listeners) if given is None else ("advertised.listeners", given)
        endpoints = parse_endpoints(name, texts, self.security_protocols)
        return tuple(endpoint for endpoint in endpoints if endpoint.listener not in self.controller_listeners)

    @cached_property
    def controller_listeners(self) -> tuple[str, ...]:
        """Names of the listeners that belong to the controller."""
        return tuple(name.upper() for name in self.controller_listener_names)

    @cached_property
    def broker_endpoints(self) -> tuple[Endpoint, ...]:
        """What clients and brokers connect to."""
        return tuple(end for end in self.listener_endpoints if end.listener not in self.controller_listeners)

    @cached_property
    def controller_endpoints(self) -> tuple[Endpoint, ...]:
        """What the quorum and brokers reach the controller by."""
        return tuple(end for end in self.listener_endpoints if end.listener in self.controller_listeners)

    @cached_property
    def advertised_controller_endpoints(self) -> tuple[Endpoint, ...]:
        """Where others reach this node's controller: as advertised, otherwise as it listens."""
        given = self.advertised_listeners
        advertised = parse_endpoints("advertised.listeners", given or (), self.security_protocols)
        by_name = {endpoint.listener: endpoint for endpoint in advertised}
        return tuple(by_name.get(endpoint.listener, endpoint) for endpoint in self.controller_endpoints)

    @cached_property
    def inter_broker_listener(self) -> str:
        """Name of the listener brokers use among themselves."""
        return (self.inter_broker_listener_name or self.security_inter_broker_protocol).upper()


def parse_address_limits(text: str) -> dict[str, int]:
    """Read `address:number` pairs: how many connections each of these addresses may have."""
    limits: dict[str, int] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        address, _, number = pair.rpartition(":")
        if not address or not number.strip().isdecimal():
            raise InvalidConfig("max.connections.per.ip.overrides", text, f"{pair!r} is not ADDRESS:NUMBER")
        limits[address.strip()] = int(number)
    return limits


def parse_protocol_map(text: str) -> dict[str, str]:
    """Read `NAME:PROTOCOL` pairs."""
    name = "listener.security.protocol.map"
    protocols: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        listener, colon, protocol = (part.strip().upper() for part in pair.partition(":"))
        if not colon or protocol not in _SECURITY_PROTOCOLS:
            allowed = ", ".join(_SECURITY_PROTOCOLS)
            raise InvalidConfig(name, text, f"{pair!r} is not LISTENER:PROTOCOL with one of {allowed}")
        if listener in protocols:
            raise InvalidConfig(name, text, f"the listener {listener} has two protocols")
        protocols[listener] = protocol
    return protocols


def parse_endpoints(name: str, texts: tuple[str, ...], protocols: dict[str, str]) -> tuple[Endpoint, ...]:
    """Read `NAME://host:port` addresses; each name needs a security protocol."""
    endpoints: list[Endpoint] = []
    for text in texts:
        match = _ENDPOINT.fullmatch(text)
        if match is None:
            raise InvalidConfig(name, ",".join(texts), f"{text!r} is not LISTENER://HOST:PORT")
        listener, host, port = match[1].upper(), match[2], int(match[3])
        if not -1 <= port <= 65535:
            raise InvalidConfig(name, ",".join(texts), f"no port has the number {port}")
        if listener not in protocols:
            reason = f"listener.security.protocol.map has no protocol for the listener {listener}"
            raise InvalidConfig(name, ",".join(texts), reason)
        endpoints.append(Endpoint(listener, host, port, protocols[listener]))
    return tuple(endpoints)
