"""The partitions that a link copies, by their names in the source, with how far each one is."""

from collections.abc import Mapping

from ottla.client.cluster import Cluster
from ottla.mirror.progress import PartitionProgress, Progress
from ottla.model.ids import TopicPartition


class FollowedPartitions:
    """Which partitions are copied, and by which names the target has them."""

    def __init__(self, source: Cluster, progress: Progress) -> None:
        self._source = source
        self._progress = progress
        self.by_source: dict[TopicPartition, TopicPartition] = {}

    def follow(self, partitions: Mapping[TopicPartition, TopicPartition]) -> None:
        """Follow these partitions of the source, given by their names in the target, and no others."""
        for where, source in partitions.items():
            self._progress.partitions.setdefault(where, PartitionProgress(source))
        for where in [where for where in self._progress.partitions if where not in partitions]:
            del self._progress.partitions[where]
        self.by_source = {source: where for where, source in partitions.items()}

    def progress_of(self, where: TopicPartition) -> PartitionProgress:
        """Return how far a partition of the target is."""
        found = self._progress.partitions.get(where)
        # It may have left while a request was on the way. Then nobody is interested in its numbers.
        return PartitionProgress(where) if found is None else found

    def led_by(self, node_id: int) -> list[TopicPartition]:
        """Return the partitions of the source that a broker leads, without those that have an error."""
        leader_of = self._source.topology.leader_of
        return [
            source
            for source, where in self.by_source.items()
            if (view := leader_of(source)) is not None
            and view.leader == node_id
            and self.progress_of(where).error is None
        ]

    async def learn_source_leaders(self) -> None:
        """Ask the source which brokers lead its partitions now."""
        await self._source.refresh({where.topic for where in self.by_source})

    async def learn_target_leaders(self, target: Cluster) -> None:
        """Ask the target which brokers lead the copies now."""
        await target.refresh({where.topic for where in self.by_source.values()})
