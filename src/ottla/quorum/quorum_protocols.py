"""What the metadata quorum and the rest of a node know of each other.

The quorum agrees on a log (`raft_driver`). It tells its node which records are committed and whether the node
leads (`QuorumListener`). While the node leads, its controller appends to the log (`RecordWriter`). Neither
side sees how the other works, so the quorum may have one voter or several.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import Position
from ottla.metadata.loader import MetadataLoader
from ottla.model.ids import Offset
from ottla.quorum.raft.effects import Destination
from ottla.quorum.snapshot_file import SnapshotId
from ottla.quorum.voters import Endpoint, VoterIdentity
from ottla.wire.error_code import ErrorCode
from ottla.world.scheduler import Timer

CallLater: TypeAlias = Callable[[int, Callable[[], None]], Timer]
"""Have something called after this many milliseconds."""


class KnownLeader(NamedTuple):
    """Who leads the quorum, and so has the active controller, as far as this node knows.

    `node_id` is -1 if no leader of the epoch is known. `endpoint` is where its controller listens.
    """

    node_id: int = -1
    epoch: int = 0
    endpoint: Endpoint | None = None


class LeaderWatch(Protocol):
    """Where a node learns who has the active controller. `MetadataQuorum` is one."""

    @property
    def leader(self) -> KnownLeader:
        """The leader that is known now."""

    @property
    def is_active(self) -> bool:
        """Say whether the active controller is on this node, so that it can be asked without the network."""

    def when_leader_changes(self, listener: Callable[[KnownLeader], None]) -> None:
        """Call `listener` whenever another leader is known, or where it is, or none, or another epoch."""


class NotLeader(Exception):
    """This node does not lead, or not the epoch in which something was to be appended. Nothing was."""


class BatchTooLarge(Exception):
    """What was decided does not fit into one batch. Nothing of it was appended."""


class Replay(NamedTuple):
    """What records do to the image `delta.base`, once replayed. The loader has the image after them."""

    loader: MetadataLoader
    delta: MetadataDelta


class PreparedAppend(NamedTuple):
    """Records that are encoded for the place in the log where they will lie."""

    records: Sequence[Any]
    batches: Sequence[bytearray]
    position: Position
    """Where the last record will lie."""
    replay: Replay | None = None
    """What the records do, if the one who appends them knows that already."""


class CommittedRecords(NamedTuple):
    """Records that the quorum has agreed on. Control records are left out: only their place is known."""

    records: Sequence[Any]
    position: Position
    """Where the last record lies."""
    is_control: bool = False
    replay: Replay | None = None


class RecordWriter(Protocol):
    """The metadata log, as its leader writes it."""

    @property
    def me(self) -> VoterIdentity:
        """Who leads."""

    @property
    def epoch(self) -> int:
        """The epoch that new records belong to."""

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version."""

    @property
    def log_end_offset(self) -> Offset:
        """Where the next record will lie."""

    @property
    def high_watermark(self) -> Offset:
        """Everything below is committed."""

    def prepare(
        self, records: Sequence[Any], metadata_version: int, batch_records_max: int, now_ms: int
    ) -> PreparedAppend:
        """Encode records for the end of the log. Raises `BatchTooLarge`, and changes nothing."""

    def append(self, prepared: PreparedAppend, now_ms: int) -> None:
        """Append what was prepared last. It counts when `QuorumListener.committed` gets it.

        Raises `NotLeader`: the leadership was lost, which `QuorumListener.resigned` is about to say.
        """

    def find_upgrade_error(self, level: int) -> tuple[ErrorCode, str | None]:
        """Say why kraft.version cannot be raised to a level, if it cannot."""

    def upgrade_kraft_version(self, level: int) -> tuple[ErrorCode, str | None]:
        """Raise kraft.version: from then on records name the voters. Returns why not, if it cannot be."""


class QuorumListener(Protocol):
    """A node, as its quorum tells it what happened. The calls come in the order of the log."""

    def committed(self, batches: Sequence[CommittedRecords]) -> None:
        """Act on records that will never be undone. Several batches may come together."""

    def snapshot_loaded(self, snapshot_id: SnapshotId) -> None:
        """Go on from a snapshot of the leader's, which has replaced the log."""

    def leader_changed(self, leader: KnownLeader) -> None:
        """Note the leader."""

    def became_leader(self) -> None:
        """Take over. All that was appended in earlier epochs is committed, and was reported before."""

    def resigned(self) -> None:
        """Give up what was appended and not committed. It may be lost, or be committed by the next leader."""

    def failed(self, error: Exception) -> None:
        """Stop: the log cannot be written or read any more."""


class Messenger(Protocol):
    """The way to the other nodes of the quorum."""

    def send(
        self,
        destination: Destination,
        request: Any,
        answered: Callable[[Any], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        """Send a request. One of the two is called later, never before this has returned.

        `failed` gets UNSUPPORTED_VERSION if the other node cannot be asked that, and BROKER_NOT_AVAILABLE if
        nobody listens there.
        """

    def close(self) -> None:
        """Close all connections."""


class Nobody:
    """A `Messenger` without a network, for the only voter."""

    def send(
        self,
        destination: Destination,
        request: Any,
        answered: Callable[[Any], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        """Send nothing."""

    def close(self) -> None:
        """Close nothing."""
