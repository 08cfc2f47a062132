"""Queues: records that many consumers work on, each acknowledged by itself (KIP-932)."""

from ottla.client.share.record import AcknowledgeType, NotHeld, ShareRecord, UnreadableRecord
from ottla.client.share.share_consumer import AcknowledgeFailed, ShareConsumer

__all__ = [
    "AcknowledgeFailed",
    "AcknowledgeType",
    "NotHeld",
    "ShareConsumer",
    "ShareRecord",
    "UnreadableRecord",
]
