"""An image as records, in the order in which Kafka writes them into a snapshot.

    features (metadata.version first), brokers, controllers, each topic followed by its partitions, configs,
    quotas, producer ids, access rules, SCRAM credentials, delegation tokens

Replaying them on an empty image gives the image back, at any metadata.version that can express it.
"""

from collections.abc import Iterator
from typing import Any

from ottla.metadata.features import METADATA_VERSION
from ottla.metadata.image import MetadataImage
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.wire.metadata_records.producer_ids import ProducerIdsRecord
from ottla.wire.metadata_records.quotas import ClientQuotaRecord, EntityData
from ottla.wire.metadata_records.topics import TopicRecord


def snapshot_records(image: MetadataImage) -> Iterator[Any]:
    """Give the records of a snapshot, one by one: the image of a large cluster need not be held twice."""
    yield from _features(image)
    yield from image.brokers.values()
    yield from image.controllers.values()
    for topic in image.topics:
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        yield from topic.partitions.values()
    for resource, configs in image.configs.items():
        for name, value in configs.items():
            yield ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=value
            )
    yield from _quotas(image)
    yield from _producer_ids(image)
    yield from image.acls.values()
    yield from image.scram.values()
    yield from image.tokens.values()


def _features(image: MetadataImage) -> Iterator[FeatureLevelRecord]:
    # The version of the metadata comes first because it says how to read all that follows.
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])


def _quotas(image: MetadataImage) -> Iterator[ClientQuotaRecord]:
    for entity, quotas in image.quotas.items():
        parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
        for key, value in quotas.items():
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)


def _producer_ids(image: MetadataImage) -> Iterator[ProducerIdsRecord]:
    # Who got the last block matters only while it is handed out, so a snapshot does not say.
    if image.next_producer_id >= 0:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
