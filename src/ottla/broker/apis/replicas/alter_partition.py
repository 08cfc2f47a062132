"""AlterPartition: a leader says which replicas are in sync."""

from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


@serves(
    AlterPartitionRequest,
    "2-3",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def alter_partition(ask: AlterPartitionRequest, context: RequestContext) -> Deferred[AlterPartitionResponse]:
    """Answer when the controller has decided."""
    return context.ask_controller(ask)
