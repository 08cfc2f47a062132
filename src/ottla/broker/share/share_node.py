"""What share groups ask of the node that leads their partitions."""

from typing import Protocol

from ottla.broker.basic_node import BasicNode
from ottla.broker.coordinators.shares import Shares
from ottla.broker.logs.partition import Partition
from ottla.broker.logs.partitions import Partitions
from ottla.broker.replication.replication import Replication


class ShareNode(BasicNode, Protocol):
    """A broker, as far as share groups know it."""

    @property
    def partitions(self) -> Partitions: ...
    @property
    def replication(self) -> Replication: ...
    @property
    def shares(self) -> Shares: ...
    def changed(self, partition: Partition) -> None: ...
