"""The consuming half of the journey: fetch, hand over, commit."""

from ottla.client.consumer.assignment import NotAssigned
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.health import ConsumerHealth, GroupHealth, PartitionHealth
from ottla.client.consumer.offsets import CommitFailed, RebalanceInProgress
from ottla.client.consumer.positions import LogTruncated, NoOffset
from ottla.client.consumer.record import ConsumerRecord, Undeserializable
from ottla.client.group import GroupMetadata, OffsetAndMetadata
from ottla.model.ids import TopicPartition

__all__ = [
    "CommitFailed",
    "Consumer",
    "ConsumerHealth",
    "ConsumerRecord",
    "GroupHealth",
    "GroupMetadata",
    "LogTruncated",
    "NoOffset",
    "NotAssigned",
    "OffsetAndMetadata",
    "PartitionHealth",
    "RebalanceInProgress",
    "TopicPartition",
    "Undeserializable",
]
