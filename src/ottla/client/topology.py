"""What a client knows of a cluster: brokers, topics, and who leads which partition. A value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ottla.client.connection import Address
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.metadata import MetadataResponse, MetadataResponseTopic


class PartitionView(NamedTuple):
    """One partition as the last metadata answer told it."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    error_code: ErrorCode


class TopicView(NamedTuple):
    """One topic as the last metadata answer told it."""

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: Mapping[int, PartitionView]
    error_code: ErrorCode


@dataclass(frozen=True, slots=True)
class Topology:
    """All that is known. `merge` makes the next one."""

    brokers: Mapping[int, Address] = field(default_factory=dict)
    topics: Mapping[str, TopicView] = field(default_factory=dict)
    topic_names: Mapping[Uuid, str] = field(default_factory=dict)
    controller_id: int = -1
    cluster_id: str | None = None

    def leader_of(self, where: TopicPartition) -> PartitionView | None:
        """Return the partition with its leader, or None while no leader is known."""
        topic = self.topics.get(where.topic)
        partition = None if topic is None else topic.partitions.get(where.partition)
        return None if partition is None or partition.leader < 0 else partition

    def merge(self, answer: MetadataResponse, everything: bool) -> "Topology":
        """Take a metadata answer in. `everything` says that topics it does not name are gone."""
        topics = {} if everything else dict(self.topics)
        for topic in answer.topics:
            if topic.name is not None:
                topics[topic.name] = self._newer(topic)
        return Topology(
            brokers={broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers},
            topics=topics,
            topic_names={view.topic_id: view.name for view in topics.values() if view.topic_id != ZERO_UUID},
            controller_id=answer.controller_id,
            cluster_id=answer.cluster_id,
        )

    def without(self, names: Iterable[str]) -> "Topology":
        """Forget topics."""
        gone = set(names)
        return replace(self, topics={name: view for name, view in self.topics.items() if name not in gone})

    def _newer(self, topic: MetadataResponseTopic) -> TopicView:
        assert topic.name is not None
        known = self.topics.get(topic.name)
        partitions = {}
        for item in topic.partitions:
            view = PartitionView(
                item.partition_index, item.leader_id, item.leader_epoch, item.replica_nodes, item.isr_nodes,
                item.error_code,
            )  # fmt: skip
            old = None if known is None else known.partitions.get(view.partition)
            # A broker that is behind may still name an older leader (KIP-320): what is newer stays,
            # unless the topic was deleted and made again.
            same_topic = known is not None and known.topic_id == topic.topic_id
            if same_topic and old is not None and 0 <= view.leader_epoch < old.leader_epoch:
                view = old
            partitions[view.partition] = view
        return TopicView(topic.name, topic.topic_id, topic.is_internal, partitions, topic.error_code)
