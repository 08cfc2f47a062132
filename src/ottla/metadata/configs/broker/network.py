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
        doc=(
            "The addresses that clients connect to, as NAME://HOST:PORT. If unset, each client gets the "
            "address it used."
        ),
    )
    connections_max_idle_ms = long(
        "connections.max.idle.ms",
        600_000,
        update=READ_ONLY,
        doc="How long a connection may be idle before it is closed; -1 means no limit.",
    )
    early_start_listeners = listing(
        "early.start.listeners",
        None,
        DistinctList(may_be_null=True),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="Listeners that are opened before the broker is ready to serve.",
    )
    inter_broker_listener_name = string(
        "inter.broker.listener.name",
        None,
        update=READ_ONLY,
        doc="The listener that brokers use between each other.",
    )
    listener_security_protocol_map = string(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        importance=LOW,
        update=PER_BROKER,
        doc="The security protocol of each listener, as NAME:PROTOCOL pairs.",
    )
    listeners = listing(
        "listeners",
        ("PLAINTEXT://:9092",),
        DistinctList(may_be_empty=False),
        importance=HIGH,
        update=PER_BROKER,
        doc="The addresses to listen on, as NAME://HOST:PORT. An empty host means every interface.",
    )
    max_connection_creation_rate = integer(
        "max.connection.creation.rate",
        INT_MAX,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The maximum number of connections accepted per second.",
    )
    max_connections = integer(
        "max.connections",
        INT_MAX,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The maximum number of open connections.",
    )
    max_connections_per_ip = integer(
        "max.connections.per.ip",
        INT_MAX,
        Range(0),
        update=CLUSTER_WIDE,
        doc="The maximum number of open connections from one address.",
    )
    max_connections_per_ip_overrides = string(
        "max.connections.per.ip.overrides",
        "",
        update=CLUSTER_WIDE,
        doc="Different limits for some addresses, as ADDRESS:NUMBER pairs.",
    )
    num_io_threads = integer(
        "num.io.threads",
        8,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        inert=True,
        doc="The number of threads with which Kafka handles requests.",
    )
    num_network_threads = integer(
        "num.network.threads",
        3,
        Range(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
        inert=True,
        doc="The number of threads per listener with which Kafka reads requests.",
    )
    queued_max_request_bytes = long(
        "queued.max.request.bytes",
        -1,
        update=READ_ONLY,
        doc="No more requests are read while this many bytes of requests wait; -1 means no limit.",
    )
    queued_max_requests = integer(
        "queued.max.requests",
        500,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="No more requests are read while this many wait.",
    )
    request_timeout_ms = integer(
        "request.timeout.ms",
        30_000,
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How long this node waits for the response to a request it sends.",
    )
    security_inter_broker_protocol = string(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        update=READ_ONLY,
        doc="The security protocol between brokers, if inter.broker.listener.name is not set.",
    )
    socket_connection_setup_timeout_max_ms = long(
        "socket.connection.setup.timeout.max.ms",
        30_000,
        update=READ_ONLY,
        inert=True,
        doc="The longest time that this node waits for a connection it opens, after several attempts.",
    )
    socket_connection_setup_timeout_ms = long(
        "socket.connection.setup.timeout.ms",
        10_000,
        update=READ_ONLY,
        inert=True,
        doc="How long this node waits for a connection it opens.",
    )
    socket_listen_backlog_size = integer(
        "socket.listen.backlog.size",
        50,
        Range(1),
        update=READ_ONLY,
        doc="The number of connections that the system queues until they are accepted.",
    )
    socket_receive_buffer_bytes = integer(
        "socket.receive.buffer.bytes",
        102_400,
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="Receive buffer (SO_RCVBUF) of a client's connection; -1 leaves it to the system.",
    )
    socket_request_max_bytes = integer(
        "socket.request.max.bytes",
        104_857_600,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Largest request that is read; a larger one closes the connection.",
    )
    socket_send_buffer_bytes = integer(
        "socket.send.buffer.bytes",
        102_400,
        importance=HIGH,
        update=READ_ONLY,
        doc="Send buffer (SO_SNDBUF) of a client's connection; -1 leaves it to the system. If it has its "
        "default, Ottla uses 208 KB, which sends large responses in fewer steps.",
    )
