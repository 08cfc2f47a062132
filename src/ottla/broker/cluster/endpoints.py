"""Where clients find the brokers.

Deviation: unless `advertised.listeners` is set, a client gets the address it has connected to itself.
Kafka tells the address the listener is bound to, which is wrong as soon as there is a port mapping or a
second network.
"""

from typing import NamedTuple

from ottla.broker.serving.context import RequestContext
from ottla.wire.metadata_records.brokers import RegisterBrokerRecord


class BrokerEndpoint(NamedTuple):
    """A broker and its address, for clients of one listener."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


class Endpoints:
    """The addresses of all brokers, as this node tells them."""

    def __init__(self, node_id: int, tells_own_address: bool) -> None:
        """`tells_own_address` says whether an address was configured for clients."""
        self._node_id = node_id
        self._tells_own_address = tells_own_address

    def of(self, broker: RegisterBrokerRecord, context: RequestContext) -> BrokerEndpoint | None:
        """Return a broker's address, or None if it does not have the listener that is asked on."""
        for endpoint in broker.endpoints:
            if endpoint.name == context.listener_name:
                host, port = endpoint.host, endpoint.port
                if broker.broker_id == self._node_id and not self._tells_own_address:
                    host, port = context.local_host, context.local_port
                return BrokerEndpoint(broker.broker_id, host, port, broker.rack, broker.fenced)
        return None

    def living(self, context: RequestContext) -> list[BrokerEndpoint]:
        """Return the brokers that serve, by id."""
        return [endpoint for endpoint in self.all(context) if not endpoint.is_fenced]

    def all(self, context: RequestContext) -> list[BrokerEndpoint]:
        """Return all registered brokers that have the listener, by id."""
        image = context.node.image
        found = [self.of(image.brokers[broker_id], context) for broker_id in sorted(image.brokers)]
        return [endpoint for endpoint in found if endpoint is not None]
