"""AssignReplicasToDirs: a broker says in which directories its replicas are."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)


@serves(
    AssignReplicasToDirsRequest,
    "0",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def assign_replicas_to_dirs(
    ask: AssignReplicasToDirsRequest, context: RequestContext
) -> Deferred[AssignReplicasToDirsResponse]:
    """Answer when the controller has decided."""
    return context.ask_controller(ask)
