"""What is new in an image that did not come by replaying records, but from a snapshot."""

from collections.abc import Mapping
from typing import Any

from ottla.metadata.changes import Changes
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.metadata.topics import TopicChanges, Topics
from ottla.wire.metadata_records.topics import RemoveTopicRecord, TopicRecord


def difference(before: MetadataImage, image: MetadataImage) -> MetadataDelta:
    """Return the changes that make `image` of the image `before`."""
    delta = MetadataDelta(before)
    _compare(delta.features, image.features)
    _compare(delta.brokers, image.brokers)
    _compare(delta.controllers, image.controllers)
    _compare_topics(delta.topics, image.topics)
    _compare(delta.configs, image.configs)
    _compare(delta.quotas, image.quotas)
    delta.next_producer_id = image.next_producer_id
    _compare(delta.acls, image.acls)
    _compare(delta.scram, image.scram)
    _compare(delta.tokens, image.tokens)
    return delta


def _compare(changes: Changes[Any, Any], new: Mapping[Any, Any]) -> None:
    for key in changes.base:
        if key not in new:
            changes.remove(key)
    for key, value in new.items():
        if changes.base.get(key) != value:
            changes.put(key, value)


def _compare_topics(changes: TopicChanges, new: Topics) -> None:
    for topic in changes.base:
        if new.find_by_id(topic.id) is None:
            changes.replay_remove_topic(RemoveTopicRecord(topic_id=topic.id))
    for topic in new:
        old = changes.base.find_by_id(topic.id)
        if old is None:
            changes.replay_topic(TopicRecord(name=topic.name, topic_id=topic.id))
        for number, partition in topic.partitions.items():
            if old is None or old.partitions.get(number) != partition:
                changes.replay_partition(partition)
