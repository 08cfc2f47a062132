"""The producing half of the journey: serialize, choose a partition, batch, send, acknowledge."""

from ottla.client.producer.producer import Producer, RecordMetadata

__all__ = ["Producer", "RecordMetadata"]
