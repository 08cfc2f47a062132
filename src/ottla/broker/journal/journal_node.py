"""What the journal asks of its node."""

from typing import Protocol

from ottla.broker.basic_node import BasicNode
from ottla.broker.journal.journal import Journal
from ottla.broker.logs.partitions import Partitions
from ottla.runtime.flusher import Flusher


class JournalNode(BasicNode, Protocol):
    """A broker, as far as its journal knows it."""

    @property
    def journal(self) -> Journal: ...
    @property
    def partitions(self) -> Partitions: ...
    @property
    def flusher(self) -> Flusher: ...
