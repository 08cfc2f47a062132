"""What must hold of each change of a partition, as the active controller has decided it."""

from collections.abc import Callable

from tests.simulation.cluster.clients.careless import is_careless
from tests.simulation.cluster.rules.wrong import must

from ottla.metadata.image import MetadataImage
from ottla.model.uuid import Uuid
from ottla.testing.simulation.node import SimulatedNode
from ottla.wire.metadata_records.partitions import PartitionRecord


class MetadataRules:
    """Looks at the metadata of the active controller whenever it has changed."""

    def __init__(self, when_changed: Callable[[PartitionRecord, PartitionRecord], None]) -> None:
        self._when_changed = when_changed
        self._image: MetadataImage | None = None
        self._known: dict[tuple[Uuid, int], PartitionRecord] = {}

    def look(self, one: SimulatedNode) -> None:
        """Look at a node, if it is the active controller."""
        assert one.node is not None
        if one.node.parts.quorum.controller is None:
            return
        image = one.node.broker.image
        if self._image is not None and image.topics is self._image.topics:
            return
        self._image = image
        for topic in image.topics:
            for number, partition in topic.partitions.items():
                place = (partition.topic_id, number)
                before = self._known.get(place)
                if before is not partition:
                    self._known[place] = partition
                    if before is not None and partition.partition_epoch == before.partition_epoch + 1:
                        self._when_changed(before, partition)
                        _check_change(f"{topic.name}-{number}", before, partition)


def _check_change(name: str, before: PartitionRecord, after: PartitionRecord) -> None:
    if after.leader >= 0 and after.leader_epoch > before.leader_epoch and not is_careless(name):
        # If nobody is left, the last one that was in sync may lead (KIP-966).
        safe = {*before.isr, *(before.eligible_leader_replicas or ()), *(before.last_known_elr or ())}
        if len(after.isr) > 1:
            # It has joined them with this very change, which ends a reassignment. Who is elected without
            # being in sync is the only one then.
            safe.update(after.isr)
        if before.adding_replicas and not after.adding_replicas:
            # A reassignment ends when all that are added are in sync. Then others leave, maybe all of them.
            safe.update(before.adding_replicas)
        must(
            after.leader in safe,
            f"elected: {name}: node {after.leader} leads, but in sync were {before.isr} and "
            f"{before.eligible_leader_replicas}",
        )
    # Those that stay for good: not those that are being added, as far as they are not in sync.
    settled = set(after.replicas) - set(after.adding_replicas)
    added = settled - (set(before.replicas) - set(before.adding_replicas))
    must(
        added <= set(after.isr),
        f"elected: {name} has moved to {after.replicas}, but in sync are {after.isr}",
    )
