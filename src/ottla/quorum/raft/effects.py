"""What a replica wants done. Its driver carries the effects out in the order in which they come.

Epochs, votes and the log's bytes are not among them: they are written before the effects are handed out.
"""

from typing import Any, NamedTuple, TypeAlias

from ottla.model.ids import Offset
from ottla.quorum.snapshot_file import SnapshotId
from ottla.quorum.voters import Endpoint


class Destination(NamedTuple):
    """Where a request goes. A server of which only the address is known has a negative id."""

    node_id: int
    host: str
    port: int


class Send(NamedTuple):
    """Send a request in the newest version that both sides know.

    Its response, or its failure, is to be passed on with the correlation id. A request that the other side's
    versions cannot express (a pre-vote) fails with UNSUPPORTED_VERSION.
    """

    correlation_id: int
    destination: Destination
    request: Any


class Reply(NamedTuple):
    """Answer a request that was received, by the token that came with it."""

    token: Any
    response: Any


class SyncLog(NamedTuple):
    """Sync the log up to its present end. `Replica.synced` is to be called when that is done."""


class HighWatermarkMoved(NamedTuple):
    """Everything below `offset` is committed."""

    offset: Offset


class LeaderChanged(NamedTuple):
    """Another leader, or none (-1), is known in another epoch, or it is known where the leader listens."""

    leader_id: int
    epoch: int
    endpoints: tuple[Endpoint, ...] = ()


class BecameLeader(NamedTuple):
    """This replica leads. It may decide once the record at `start_offset` is committed and replayed."""

    epoch: int
    start_offset: Offset


class LeadershipLost(NamedTuple):
    """This replica leads no more. What it appended in `epoch` and is not committed may be undone."""

    epoch: int


class LogTruncated(NamedTuple):
    """The log now ends at `end_offset`. Nothing that was committed is gone."""

    end_offset: Offset


class SnapshotLoaded(NamedTuple):
    """The log now starts and ends where a snapshot of the leader's does. Load the state from it."""

    snapshot_id: SnapshotId


class VotesAgain(NamedTuple):
    """A replica that abstained has fetched everything again that it may have acknowledged."""


class Refused(NamedTuple):
    """Something came that no sound peer sends. A line for the node's log."""

    what: str


Effect: TypeAlias = (
    Send
    | Reply
    | SyncLog
    | HighWatermarkMoved
    | LeaderChanged
    | BecameLeader
    | LeadershipLost
    | LogTruncated
    | SnapshotLoaded
    | VotesAgain
    | Refused
)


class Inbound(NamedTuple):
    """A request that was received: which version it came in, through which listener, and how to answer it."""

    token: Any
    request: Any
    version: int
    listener: str = ""
