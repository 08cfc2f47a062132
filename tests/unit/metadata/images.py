"""What tests ask of images: whether two are the same, and for single partitions."""

from ottla.metadata.image import MetadataImage
from ottla.metadata.topics import Topics
from ottla.wire.metadata_records.partitions import PartitionRecord


def have_same_content(one: MetadataImage, other: MetadataImage) -> bool:
    """Return whether two images differ in nothing but their position in the log."""
    return one._replace(position=other.position) == other


def find_partition(topics: Topics, name: str, partition: int) -> PartitionRecord | None:
    """Return one partition of a topic."""
    topic = topics.find(name)
    return None if topic is None else topic.partitions.get(partition)


def count_partitions(topics: Topics) -> int:
    """Return how many partitions all topics have together."""
    return sum(len(topic.partitions) for topic in topics.by_id.values())
