"""The topics of the cluster, as coordinators ask for them."""

from collections.abc import Sequence

from ottla.broker.logs.partition import UNLISTED_TOPICS
from ottla.coordination.group.environment import TopicFacts
from ottla.metadata.published import PublishedMetadata
from ottla.metadata.topics import Topic
from ottla.model.uuid import Uuid


class KnownTopics:
    """A view of the newest published metadata. Implements the group coordinator's `Topics`."""

    def __init__(self, metadata: PublishedMetadata) -> None:
        self._metadata = metadata

    def find_by_name(self, name: str) -> TopicFacts | None:
        """Return the topic of this name."""
        return _facts(self._metadata.image.topics.find(name))

    def find_by_id(self, topic_id: Uuid) -> TopicFacts | None:
        """Return the topic with this id."""
        return _facts(self._metadata.image.topics.find_by_id(topic_id))

    def names(self) -> tuple[str, ...]:
        """Return the names of all topics that a pattern can match."""
        return tuple([name for name in self._metadata.image.topics.names if name not in UNLISTED_TOPICS])

    def racks(self, topic_id: Uuid) -> Sequence[Sequence[str]]:
        """Return, for each partition of a topic, the racks of its replicas' brokers that have one."""
        image = self._metadata.image
        topic = image.topics.find_by_id(topic_id)
        if topic is None:
            return ()
        racks = {broker_id: broker.rack for broker_id, broker in image.brokers.items()}
        return [
            [rack for replica in record.replicas if (rack := racks.get(replica)) is not None]
            for record in topic.partitions.values()
        ]

    def version(self) -> int:
        """Return the offset of the metadata log up to which this is known."""
        return self._metadata.image.offset


def _facts(topic: Topic | None) -> TopicFacts | None:
    return None if topic is None else TopicFacts(topic.name, topic.id, len(topic.partitions))
