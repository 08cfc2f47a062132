"""FetchSnapshot: a replica of the metadata log fetches a snapshot, piece by piece."""

from ottla.broker.deferred import Deferred
from ottla.broker.quorum_requests import serve_by_quorum
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import handles
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse


@handles(FetchSnapshotRequest)
def fetch_snapshot(ask: FetchSnapshotRequest, context: RequestContext) -> Deferred[FetchSnapshotResponse]:
    """Give a piece."""
    return serve_by_quorum(ask, context)
