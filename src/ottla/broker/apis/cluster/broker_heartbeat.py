"""BrokerHeartbeat: a broker says that it is alive, and what it wants."""

from functools import partial
from typing import TYPE_CHECKING, cast

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, serves
from ottla.quorum.controller.brokers.sessions import Incarnation
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from ottla.broker.controller.controller_server import ControllerServer


@serves(
    BrokerHeartbeatRequest,
    "0-2",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def broker_heartbeat(
    ask: BrokerHeartbeatRequest, context: RequestContext
) -> Deferred[BrokerHeartbeatResponse]:
    """Answer when the controller has decided, and watch the connection: see `broker_watch`."""
    watch = cast("ControllerServer", context.node).broker_watch
    broker = Incarnation(ask.broker_id, ask.broker_epoch)
    watch.heard(broker)
    context.when_closed = partial(watch.connection_closed, broker)
    return context.ask_controller(ask)
