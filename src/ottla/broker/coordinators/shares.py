"""The share coordinator on this node, and what it asks of the node."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.broker.coordinators.coordinators_node import CoordinatorsNode
from ottla.broker.coordinators.hosted_coordinator import HostedCoordinator
from ottla.broker.coordinators.known_topics import KnownTopics
from ottla.coordination.group.environment import Topics
from ottla.coordination.share.coordinator import ShareCoordinator
from ottla.coordination.share.settings import ShareSettings
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.model.ids import Offset
from ottla.records.attributes import Codec
from ottla.storage.errors import LogDirectoryOffline, OffsetOutOfRange
from ottla.wire.coordinator_records.framing import SHARE_STATE_RECORDS
from ottla.world.scheduler import Scheduler

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class Shares(HostedCoordinator[ShareCoordinator]):
    """The share coordinator of a node. Implements `ShareHost`."""

    records = SHARE_STATE_RECORDS

    def __init__(self, broker: CoordinatorsNode, scheduler: Scheduler) -> None:
        self.topics: Topics = KnownTopics(broker.metadata)
        super().__init__(broker, scheduler)

    def _make_coordinator(self) -> ShareCoordinator:
        return ShareCoordinator(share_settings(self._broker.config), self)

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Follow who leads what, and delete the states of topics that are gone."""
        super().metadata_changed(image, delta)
        if delta.topics and delta.topics.deleted:
            self.coordinator.topics_deleted(topic.id for topic in delta.topics.deleted.values())

    def metrics(self) -> "Iterable[Metric]":
        """Return the metrics of the share coordinator."""
        # Imported only here: a node without Prometheus does without it.
        from ottla.broker.coordinators.group_metrics import share_metrics

        return share_metrics(self.coordinator)

    # What the coordinator asks for

    def prune(self, partition: int, offset: int) -> None:
        """Delete the records of the internal topic's partition before an offset."""
        found = self._broker.partitions.find(self.topic, partition)
        if found is None or not found.is_leader or offset <= found.log.log_start_offset:
            return
        try:
            found.log.increment_log_start_offset(Offset(min(offset, found.log.high_watermark)))
        except (OffsetOutOfRange, LogDirectoryOffline):
            # Nothing is lost: the next time will do.
            return
        self._broker.changed(found)

    def _codec(self) -> Codec:
        return Codec(self._broker.config.share_coordinator_state_topic_compression_codec)


def share_settings(config: NodeConfig) -> ShareSettings:
    """Return what the configuration says about the share coordinator."""
    return ShareSettings(
        updates_per_snapshot=config.share_coordinator_snapshot_update_records_per_snapshot,
        prune_interval_ms=config.share_coordinator_state_topic_prune_interval_ms,
        cold_snapshot_interval_ms=config.share_coordinator_cold_partition_snapshot_interval_ms,
    )
