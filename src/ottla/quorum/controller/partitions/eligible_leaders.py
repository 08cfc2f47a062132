"""What else changes with `min.insync.replicas`, and when eligible leader replicas begin or end (KIP-966).

Who is eligible to lead was decided by the number of replicas that had to be in sync. With another number it
is forgotten: as soon as a leader commits with fewer, the others may lack what it commits.

Deviation: Kafka forgets it for partitions without a leader too. There is nobody then who commits anything, so
those who were eligible still have all that was committed. If they were forgotten, nobody could ever lead
again: in-sync replicas there are none.
"""

from collections.abc import Iterator
from typing import Any

from ottla.metadata.configs.alter import MIN_ISR
from ottla.metadata.image import DEFAULT_BROKERS
from ottla.metadata.topics import NO_LEADER, Topic
from ottla.quorum.controller.decision import ControllerView
from ottla.wire.config_kinds import ResourceType
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.wire.metadata_records.partitions import ClearElrRecord, PartitionChangeRecord, PartitionRecord


def forget_eligible_leaders(view: ControllerView, topic_name: str = "") -> list[Any]:
    """Return what forgets the eligible leaders of a topic, or of all, where somebody leads."""
    kept = [
        PartitionChangeRecord(
            partition_id=partition.partition_id,
            topic_id=partition.topic_id,
            eligible_leader_replicas=partition.eligible_leader_replicas,
            last_known_elr=partition.last_known_elr,
        )
        for partition in _without_in_sync_replicas(view, topic_name)
    ]
    return [ClearElrRecord(topic_name=topic_name), *kept]


def end_eligible_leaders(view: ControllerView) -> list[Any]:
    """Return what goes with a cluster that keeps eligible leaders no more.

    Without them, the last in-sync replicas of a partition stay in the list, whatever they may have lost. So
    where there are none, those that are eligible are in sync again, or the last known leader: they can lead
    as soon as they are back.
    """
    in_sync = [
        PartitionChangeRecord(
            partition_id=partition.partition_id,
            topic_id=partition.topic_id,
            isr=partition.eligible_leader_replicas or partition.last_known_elr,
        )
        for partition in _without_in_sync_replicas(view, "")
    ]
    return [ClearElrRecord(topic_name=""), *in_sync]


def begin_eligible_leaders(view: ControllerView) -> list[Any]:
    """Return what goes with a cluster that begins to keep eligible leaders.

    From then on `min.insync.replicas` is the cluster's. Were it left to each broker, a leader could commit
    with fewer replicas than the controller takes for needed.

    Where nobody leads, the last in-sync replica is the last known leader. Otherwise nobody could lead again
    if its broker comes back and may have lost records: it is in sync no more then.
    """
    records: list[Any] = [
        PartitionChangeRecord(
            partition_id=partition.partition_id, topic_id=partition.topic_id, last_known_elr=partition.isr
        )
        for topic in view.image.topics
        for partition in topic.partitions.values()
        if partition.leader == NO_LEADER and len(partition.isr) == 1
    ]
    if MIN_ISR not in view.image.default_broker_config():
        static = view.configs.with_dynamic({}, {}).node.min_insync_replicas
        records.append(_min_isr(DEFAULT_BROKERS.name, str(static)))
    for resource, texts in view.image.configs.items():
        if resource.type == ResourceType.BROKER and resource != DEFAULT_BROKERS and MIN_ISR in texts:
            records.append(_min_isr(resource.name, None))
    return records


def _min_isr(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.BROKER, resource_name=broker, name=MIN_ISR, value=value)


def _without_in_sync_replicas(view: ControllerView, topic_name: str) -> Iterator[PartitionRecord]:
    for topic in _topics(view, topic_name):
        for partition in topic.partitions.values():
            if not partition.isr and (partition.eligible_leader_replicas or partition.last_known_elr):
                yield partition


def _topics(view: ControllerView, name: str) -> Iterator[Topic]:
    if not name:
        yield from view.image.topics
    elif (topic := view.image.topics.find(name)) is not None:
        yield topic
