"""What the parts that replicate ask of their node."""

from typing import TYPE_CHECKING, Protocol

from ottla.broker.fetch.parked_fetches import ParkedFetches
from ottla.broker.logs.directory_reports import DirectoryReports
from ottla.broker.logs.log_moves import LogMoves
from ottla.broker.logs.logs_node import LogsNode
from ottla.broker.logs.partition import Partition
from ottla.runtime.connections.listener import Listeners
from ottla.runtime.connections.peer import PeerSecurity

if TYPE_CHECKING:
    from ottla.broker.replication.healing import Healing
    from ottla.broker.replication.replication import Replication


class ReplicasNode(LogsNode, Protocol):
    """A broker, as far as those know it who copy records between nodes."""

    @property
    def replication(self) -> "Replication": ...
    @property
    def healing(self) -> "Healing": ...
    @property
    def parked_fetches(self) -> ParkedFetches: ...
    @property
    def log_moves(self) -> LogMoves: ...
    @property
    def directory_reports(self) -> DirectoryReports: ...
    @property
    def listeners(self) -> Listeners: ...
    @property
    def peer_security(self) -> PeerSecurity | None: ...
    def flush_is_due(self, partition: Partition) -> None: ...
