"""A coordinator on this node: its internal topic, its shards, and its timer.

What a node's coordinators have in common is here. Each of them adds what its coordinator asks of the node.
`coordinators.py` makes them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from ottla.broker.coordinators.coordinators_node import CoordinatorsNode
from ottla.broker.coordinators.loop_timer import LoopTimer
from ottla.broker.coordinators.shard_hosting import ShardHosting
from ottla.broker.coordinators.shard_log import PartitionShardLog
from ottla.broker.coordinators.turn_end import TurnEnd
from ottla.broker.logs.partition import Partition
from ottla.coordination.runtime.shards import Shards
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.records.attributes import Codec
from ottla.wire.coordinator_records.framing import CoordinatorRecords
from ottla.world.scheduler import Scheduler

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class Coordinator(Protocol):
    """A coordinator, as far as hosting goes."""

    shards: Shards[Any]

    def fire_timers(self) -> int | None:
        """Do what is due. Return the monotonic time of the next deadline."""


C = TypeVar("C", bound=Coordinator)


class HostedCoordinator(ABC, Generic[C]):
    """A coordinator, and what keeps it in step with the node."""

    records: ClassVar[CoordinatorRecords]
    """The records of its internal topic."""

    def __init__(self, broker: CoordinatorsNode, scheduler: Scheduler) -> None:
        self._broker = broker
        self.clock = broker.clock
        self._turn_end = TurnEnd(scheduler)
        self._timer = LoopTimer(scheduler, broker.clock, lambda: self.coordinator.fire_timers())
        self.wake = self._timer.wake
        self.coordinator = self._make_coordinator()
        self.hosting = ShardHosting(
            self.topic,
            self.coordinator.shards,
            broker.partitions,
            broker.node_id,
            self._open_log,
            scheduler,
            broker.clock,
            broker.metadata.act,
        )

    @property
    def topic(self) -> str:
        """The internal topic that keeps the coordinator's records."""
        return self.records.topic

    def start(self, image: MetadataImage) -> None:
        """Take over the partitions of the topic that this node leads."""
        self.hosting.start(image)

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Follow who leads which partition of the topic."""
        if delta.topics:
            self.hosting.metadata_changed(image, delta)

    def stop(self) -> None:
        """Tell those who wait that this node serves no more."""
        self.hosting.stop()
        self._timer.stop()

    @abstractmethod
    def metrics(self) -> "Iterable[Metric]":
        """Return the coordinator's metrics for Prometheus. Called by another thread."""

    @abstractmethod
    def _make_coordinator(self) -> C:
        """Make the coordinator, which may ask this object for what it needs."""

    def _open_log(self, partition: Partition) -> PartitionShardLog:
        return PartitionShardLog(partition, self.records, self.clock, self._turn_end, self._codec())

    def _codec(self) -> Codec:
        """Return how the records are compressed."""
        return Codec.NONE
