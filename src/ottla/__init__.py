"""Ottla, Kafka's sister in Python: the event-streaming system behind Kafka's own protocol.

    from ottla import Admin, Consumer, Producer     # for asyncio
    from ottla import sync                          # sync.Producer and so on, for everything else

Each name is imported when it is first used, so that a node or a command does not load the whole client.
"""

# `typing` has the same name, but takes a while to import. Type checkers know this one as well.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from ottla.client import sync
    from ottla.client.admin import Admin
    from ottla.client.consumer import Consumer, ConsumerRecord, OffsetAndMetadata, TopicPartition
    from ottla.client.errors import ClientError
    from ottla.client.producer import Producer, RecordMetadata
    from ottla.client.share import AcknowledgeType, ShareConsumer, ShareRecord

    # Not imported, since a client may not depend on pipelines: `ottla.pipelines.reading` has the same.
    def read(topic: str, since: Any = None, until: Any = None, **options: Any) -> Any:
        """Read the records of a topic that are there now, between two moments, as columns."""

    from ottla.wire.config_kinds import ResourceType

__all__ = [
    "AcknowledgeType",
    "Admin",
    "ClientError",
    "Consumer",
    "ConsumerRecord",
    "OffsetAndMetadata",
    "Producer",
    "RecordMetadata",
    "ResourceType",
    "ShareConsumer",
    "ShareRecord",
    "TopicPartition",
    "__version__",
    "read",
    "sync",
]

__version__ = "0.1.0"

if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any name for one of ours.

    _MODULES = {
        "AcknowledgeType": "ottla.client.share",
        "Admin": "ottla.client.admin",
        "ClientError": "ottla.client.errors",
        "Consumer": "ottla.client.consumer",
        "ConsumerRecord": "ottla.client.consumer",
        "OffsetAndMetadata": "ottla.client.consumer",
        "Producer": "ottla.client.producer",
        "RecordMetadata": "ottla.client.producer",
        "ResourceType": "ottla.wire.config_kinds",
        "ShareConsumer": "ottla.client.share",
        "ShareRecord": "ottla.client.share",
        "TopicPartition": "ottla.client.consumer",
        "read": "ottla.pipelines.reading",
        "sync": "ottla.client.sync",
    }

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module 'ottla' has no attribute {name!r}")
        from importlib import import_module

        module = import_module(_MODULES[name])
        found = globals()[name] = module if name == "sync" else getattr(module, name)
        return found

    def __dir__():
        return sorted({*globals(), *__all__})
