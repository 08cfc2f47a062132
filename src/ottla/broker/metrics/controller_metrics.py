"""What a node tells Prometheus of the whole cluster. The names are Kafka's, in the spelling of Prometheus.

Every node knows the metadata of the cluster, so every node gives these numbers, as controllers do in Kafka.
"""

from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric

from ottla.metadata.image import MetadataImage
from ottla.metadata.topics import EMPTY_TOPICS, NO_LEADER, Topics


class _PartitionCounts(NamedTuple):
    partitions: int = 0
    offline: int = 0
    not_preferred: int = 0
    under_replicated: int = 0
    moving: int = 0


class ControllerMetrics:
    """Counts brokers and partitions. Partitions are counted again only when some have changed."""

    def __init__(self) -> None:
        self._counted: Topics = EMPTY_TOPICS
        self._counts = _PartitionCounts()

    def collect(self, image: MetadataImage, is_active: bool) -> Iterator[Metric]:
        """Give the metrics of a cluster. Called by another thread."""
        fenced = sum(broker.fenced for broker in image.brokers.values())
        yield GaugeMetricFamily(
            "ottla_active_controller_count", "1 if the active controller is on this node.", int(is_active)
        )
        yield GaugeMetricFamily(
            "ottla_active_broker_count", "Brokers of the cluster that are up.", len(image.brokers) - fenced
        )
        yield GaugeMetricFamily(
            "ottla_fenced_broker_count", "Brokers of the cluster that are registered, but fenced.", fenced
        )
        yield GaugeMetricFamily("ottla_global_topic_count", "Topics of the cluster.", len(image.topics.names))
        counts = self._count(image.topics)
        yield GaugeMetricFamily(
            "ottla_global_partition_count", "Partitions of the cluster.", counts.partitions
        )
        yield GaugeMetricFamily(
            "ottla_offline_partitions_count", "Partitions of the cluster without a leader.", counts.offline
        )
        yield GaugeMetricFamily(
            "ottla_preferred_replica_imbalance_count",
            "Partitions of the cluster that are not led by their preferred leader.",
            counts.not_preferred,
        )
        yield GaugeMetricFamily(
            "ottla_global_under_replicated_partitions_count",
            "Partitions of the cluster with a replica that is not in sync.",
            counts.under_replicated,
        )
        yield GaugeMetricFamily(
            "ottla_reassigning_partitions_count",
            "Partitions of the cluster that are being moved.",
            counts.moving,
        )

    def _count(self, topics: Topics) -> _PartitionCounts:
        if topics is not self._counted:
            partitions = [one for topic in topics for one in topic.partitions.values()]
            self._counts = _PartitionCounts(
                len(partitions),
                sum(one.leader == NO_LEADER for one in partitions),
                sum(one.leader != one.replicas[0] for one in partitions),
                sum(len(one.isr) < len(one.replicas) for one in partitions),
                sum(bool(one.adding_replicas or one.removing_replicas) for one in partitions),
            )
            self._counted = topics
        return self._counts
