"""The producing half of the journey: serialize, choose a partition, batch, send, acknowledge."""

from ottla.client.producer.batch import RecordMetadata, SentRecord
from ottla.client.producer.producer import Producer

__all__ = ["Producer", "RecordMetadata", "SentRecord"]
