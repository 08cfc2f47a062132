"""FetchSnapshot: a replica of the metadata log fetches a snapshot, piece by piece."""

from ottla.broker.deferred import Deferred
from ottla.broker.handling.quorum_requests import serve_by_quorum
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import CONTROLLERS, serves
from ottla.security.rights import Operation, on_cluster
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse


@serves(
    FetchSnapshotRequest,
    "0-1",
    on_cluster(Operation.CLUSTER_ACTION),
    listeners=CONTROLLERS,
)
def fetch_snapshot(ask: FetchSnapshotRequest, context: RequestContext) -> Deferred[FetchSnapshotResponse]:
    """Give a piece."""
    return serve_by_quorum(ask, context)
