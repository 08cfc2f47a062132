"""What the parts that look after logs ask of their node."""

from typing import TYPE_CHECKING, Protocol

from ottla.broker.basic_node import BasicNode
from ottla.broker.logs.deletions import Deletions
from ottla.broker.logs.partition import Partition
from ottla.broker.logs.partitions import Partitions
from ottla.model.uuid import Uuid
from ottla.runtime.flusher import Flusher
from ottla.storage.log_dirs.directories import LogDirectories
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.log_dirs.directory_checkpoints import CheckpointWrite

if TYPE_CHECKING:
    from ottla.broker.logs.directory_reports import DirectoryReports
    from ottla.broker.logs.scrubber import Scrubber


class Healer(Protocol):
    """Who puts sound records in the place of damaged ones."""

    healed_ranges: int


class LogsNode(BasicNode, Protocol):
    """A broker, as far as those know it who look after its logs."""

    @property
    def partitions(self) -> Partitions: ...
    @property
    def directories(self) -> LogDirectories: ...
    @property
    def deletions(self) -> Deletions: ...
    @property
    def flusher(self) -> Flusher: ...
    @property
    def scrubber(self) -> "Scrubber": ...
    @property
    def directory_reports(self) -> "DirectoryReports": ...
    @property
    def healing(self) -> Healer: ...
    def new_id(self) -> Uuid: ...
    def changed(self, partition: Partition) -> None: ...
    def directory_changed(self, partition: Partition) -> None: ...
    def write_checkpoint(self, directory: LogDirectory, write: CheckpointWrite) -> None: ...
