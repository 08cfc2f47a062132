"""What a cluster looks like: its brokers, its partitions, and what lies where."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.metadata.balance_plan import Node, Placed
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.cluster import Broker
    from ottla.client.admin.log_dirs import LogDir
    from ottla.client.admin.topics import PartitionDescription

_MIN_ISR: Final = "min.insync.replicas"
NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True)
class Survey:
    """A cluster at one moment."""

    cluster_id: str | None
    controller: int
    brokers: tuple["Broker", ...]
    partitions: dict[TopicPartition, "PartitionDescription"]
    min_in_sync: dict[str, int]
    """How many replicas have to be in sync, by topic."""
    directories: dict[int, tuple["LogDir", ...]]
    """What brokers say about their directories. One that does not answer is not there."""
    rates: dict[TopicPartition, float] = field(default_factory=dict)
    """How many bytes a second were written to a replica while that was measured."""

    @property
    def live(self) -> list["Broker"]:
        """The brokers that serve."""
        return [broker for broker in self.brokers if not broker.is_fenced]

    @property
    def nodes(self) -> list[Node]:
        """The brokers that serve, for a plan."""
        return [Node(broker.node_id, broker.rack) for broker in self.live]

    def sizes(self) -> dict[TopicPartition, int]:
        """Return how many bytes a replica has. They differ while some catch up, so the largest counts."""
        return _sizes(self.directories)

    def placed(self) -> list[Placed]:
        """Return the partitions for a plan."""
        sizes = self.sizes()
        return [
            Placed(where, partition.replicas, sizes.get(where, 0), self.rates.get(where, 0.0))
            for where, partition in self.partitions.items()
        ]

    def offline(self) -> list[TopicPartition]:
        """Return the partitions without a leader."""
        return [where for where, one in self.partitions.items() if one.leader == NO_LEADER]

    def under_replicated(self) -> list[TopicPartition]:
        """Return the partitions with replicas that are not in sync."""
        return [
            where for where, one in self.partitions.items() if len(one.in_sync_replicas) < len(one.replicas)
        ]

    def below_min_in_sync(self) -> list[TopicPartition]:
        """Return the partitions that refuse writes with acks=all."""
        return [
            where
            for where, one in self.partitions.items()
            if len(one.in_sync_replicas) < min(self.min_in_sync.get(where.topic, 1), len(one.replicas))
        ]


def _sizes(by_broker: Mapping[int, tuple["LogDir", ...]]) -> dict[TopicPartition, int]:
    sizes: dict[TopicPartition, int] = {}
    for directories in by_broker.values():
        for directory in directories:
            for replica in directory.replicas:
                sizes[replica.where] = max(sizes.get(replica.where, 0), replica.size_bytes)
    return sizes


async def _measure(admin: "Admin", seconds: int) -> dict[TopicPartition, float]:
    """Return how many bytes a second are written to each partition, by how much its log grows.

    This is what every Kafka shows. A log whose head is deleted meanwhile counts as idle.
    """
    before = _sizes((await admin.log_dirs.describe()).succeeded)
    began = time.monotonic()
    await asyncio.sleep(seconds)
    after = _sizes((await admin.log_dirs.describe()).succeeded)
    passed_s = time.monotonic() - began
    return {where: max(0, size - before.get(where, size)) / passed_s for where, size in after.items()}


async def survey(admin: "Admin", measure_s: int = 0) -> Survey:
    """Ask a cluster for everything there is to know about its brokers and partitions.

    With `measure_s`, watch for so long how much is written to each partition.
    """
    from ottla.client.admin.configs import ConfigResource
    from ottla.wire.config_kinds import ResourceType

    cluster = await admin.cluster.describe(fenced=True)
    names = [topic.name for topic in await admin.topics.list(internal=True)]
    topics = (await admin.topics.describe_many(names)).succeeded
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    configs = await admin.configs.describe_many(resources, keys=[_MIN_ISR], synonyms=False)
    rates = await _measure(admin, measure_s) if measure_s else {}
    directories = await admin.log_dirs.describe()
    return Survey(
        cluster.cluster_id,
        cluster.controller,
        cluster.brokers,
        {
            TopicPartition(topic.name, partition.partition): partition
            for topic in topics.values()
            for partition in topic.partitions
        },
        {
            resource.name: int(found[_MIN_ISR].value or 1)
            for resource, found in configs.succeeded.items()
            if _MIN_ISR in found
        },
        directories.succeeded,
        rates,
    )
