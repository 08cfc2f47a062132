"""The blobs that classic consumers put into JoinGroup and get from SyncGroup: an int16 version, a message.

The coordinator opens them only where a group has members of both protocols, or changes between them. A
version that is newer than the newest known is read as that one, as every consumer does.
"""

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Final, TypeVar

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.environment import Topics
from ottla.model.uuid import Uuid
from ottla.wire.codec import decode_from, encode
from ottla.wire.consumer_protocol import (
    AssignedTopicPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from ottla.wire.errors import MalformedBytes

PROTOCOL_TYPE: Final = "consumer"
_VERSION: Final = Struct(">h")
_NEWEST: Final = 3

T = TypeVar("T")


def version_of(blob: bytes) -> int:
    """Return the version of a blob. Raises `MalformedBytes`."""
    if len(blob) < _VERSION.size:
        raise MalformedBytes(f"a blob of {len(blob)} bytes has no version")
    version: int = _VERSION.unpack_from(blob)[0]
    if version < 0:
        raise MalformedBytes(f"a blob has no version {version}")
    return min(version, _NEWEST)


def decode_subscription(blob: bytes) -> ConsumerProtocolSubscription:
    """Read what a consumer subscribes to, and what it owns. Raises `MalformedBytes`."""
    return _decode(ConsumerProtocolSubscription, blob)


def decode_assignment(blob: bytes) -> ConsumerProtocolAssignment:
    """Read what a consumer was assigned. Raises `MalformedBytes`."""
    return _decode(ConsumerProtocolAssignment, blob)


def encode_assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics, version: int) -> bytes:
    """Write what a consumer is to read, in the version of its subscription, without topics that are gone."""
    named = {}
    for topic_id, numbers in partitions.items():
        facts = topics.find_by_id(topic_id)
        if facts is not None:
            named[facts.name] = sorted(numbers)
    message = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            AssignedTopicPartitions(topic=name, partitions=tuple(named[name])) for name in sorted(named)
        )
    )
    return _VERSION.pack(version) + encode(message, version)


def with_ids(named: Mapping[str, frozenset[int]], topics: Topics) -> Partitions:
    """Return partitions by the ids of their topics. Topics that do not exist are left out."""
    found = {}
    for name, numbers in named.items():
        facts = topics.find_by_name(name)
        if facts is not None:
            found[facts.topic_id] = numbers
    return found


def _decode(cls: type[T], blob: bytes) -> T:
    message, _ = decode_from(cls, blob, version_of(blob), _VERSION.size)
    return message
