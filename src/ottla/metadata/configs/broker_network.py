"""Broker configs of listeners, connections and request queues."""

from ottla.metadata.configs.declare import ConfigValues, integer, listing, long, string
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH, LOW, PER_BROKER, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, OneOf, Range
from ottla.metadata.configs.values import INT_MAX


class BrokerNetworkConfigs(ConfigValues):
    """Broker configs of listeners, connections and request queues."""

    advertised_listeners = listing(
        "advertised.listeners",
        None,
        DistinctList(may_be_empty=False, may_be_null=True),
        importance=HIGH,
        update=READ_ONLY,
        doc="Endpoints told to clients; default = listeners; may include controller listeners.",
    )
    connections_max_idle_ms = long(
        "connections.max.idle.ms",
        600_000,
        update=READ_ONLY,
        doc="Idle client connections are closed after this.",
    )
    early_start_listeners = listing(
        "early.start.listeners",
        None,
        DistinctList(may_be_null=True),
        importance=HIGH,
        update=READ_ONLY,
        doc="Listeners opened before the broker is ready.",
    )
    inter_broker_listener_name = string(
        "inter.broker.listener.name", None, update=READ_ONLY, doc="Listener brokers use among themselves."
    )
    listener_security_protocol_map = string(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        importance=LOW,
        update=PER_BROKER,
        doc="Listener name to security protocol.",
    )
    listeners = listing(
        "listeners",
        ("PLAINTEXT://:9092",),
        DistinctList(may_be_empty=False),
        importance=HIGH,
        update=PER_BROKER,
        doc="Name://host:port to bind.",
    )
    max_connection_creation_rate = integer(
        "max.connection.creation.rate",
        INT_MAX,
        Range(0),
        update=CLUSTER_WIDE,
        doc="Accepts per second per broker.",
    )
    max_connections = integer(
        "max.connections", INT_MAX, Range(0), update=CLUSTER_WIDE, doc="Connections per broker."
    )
    max_connections_per_ip = integer(
        "max.connections.per.ip", INT_MAX, Range(0), update=CLUSTER_WIDE, doc="Connections per address."
    )
    max_connections_per_ip_overrides = string(
        "max.connections.per.ip.overrides", "", update=CLUSTER_WIDE, doc="Address:limit list."
    )
    num_io_threads = integer(
        "num.io.threads", 8, Range(1), importance=HIGH, update=CLUSTER_WIDE, doc="Request handler threads."
    )
    num_network_threads = integer(
        "num.network.threads",
        3,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        doc="Network threads per listener.",
    )
    queued_max_request_bytes = long(
        "queued.max.request.bytes", -1, update=READ_ONLY, doc="Bytes queued before reading stops; -1 none."
    )
    queued_max_requests = integer(
        "queued.max.requests",
        500,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Requests queued before reading stops.",
    )
    request_timeout_ms = integer(
        "request.timeout.ms",
        30_000,
        importance=HIGH,
        update=READ_ONLY,
        doc="Timeout of broker's own requests.",
    )
    security_inter_broker_protocol = string(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        update=READ_ONLY,
        doc="Protocol between brokers if no listener name given.",
    )
    socket_connection_setup_timeout_max_ms = long(
        "socket.connection.setup.timeout.max.ms", 30_000, update=READ_ONLY, doc="Cap of connect timeout."
    )
    socket_connection_setup_timeout_ms = long(
        "socket.connection.setup.timeout.ms", 10_000, update=READ_ONLY, doc="First connect timeout."
    )
    socket_listen_backlog_size = integer(
        "socket.listen.backlog.size", 50, Range(1), update=READ_ONLY, doc="Listen backlog."
    )
    socket_receive_buffer_bytes = integer(
        "socket.receive.buffer.bytes",
        102_400,
        importance=HIGH,
        update=READ_ONLY,
        doc="Server socket receive buffer.",
    )
    socket_request_max_bytes = integer(
        "socket.request.max.bytes",
        104_857_600,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Largest request frame.",
    )
    socket_send_buffer_bytes = integer(
        "socket.send.buffer.bytes",
        102_400,
        importance=HIGH,
        update=READ_ONLY,
        doc="Server socket send buffer.",
    )
