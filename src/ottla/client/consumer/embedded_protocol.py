"""The blobs that classic consumers put into JoinGroup and SyncGroup: an int16 version, then a message.

The broker passes them on unread; all members of a group, of whatever make, read each other's. A version newer
than the newest known is read as that one. Two assignors keep notes of their own in the user data:

    sticky               array of (topic, array of int32 partitions), then int32 generation
    cooperative-sticky   int32 generation

These notes are only hints: where they cannot be read, a member counts as one that owned nothing.
"""

from collections.abc import Iterable, Mapping
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple, TypeVar

from ottla.model.ids import TopicPartition
from ottla.wire.codec import decode_from, encode
from ottla.wire.consumer_protocol import (
    AssignedTopicPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedTopicPartitions,
)
from ottla.wire.errors import MalformedBytes

PROTOCOL_TYPE: Final = "consumer"
NO_GENERATION: Final = -1

_VERSION: Final = Struct(">h")
_INT32: Final = Struct(">i")
_NEWEST: Final = 3

T = TypeVar("T")


class Subscription(NamedTuple):
    """What a member wants, and what it owned in which generation."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    user_data: bytes | None = None
    rack: str | None = None
    group_instance_id: str | None = None


def encode_subscription(subscription: Subscription) -> bytes:
    """Write a subscription. Topics and partitions are sorted, as Java's consumer has them."""
    message = ConsumerProtocolSubscription(
        topics=tuple(sorted(subscription.topics)),
        user_data=subscription.user_data,
        owned_partitions=tuple(
            OwnedTopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(sorted(subscription.owned)).items()
        ),
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    return _VERSION.pack(_NEWEST) + encode(message, _NEWEST)


def decode_subscription(blob: bytes, group_instance_id: str | None = None) -> Subscription:
    """Read a subscription. Raises `MalformedBytes`."""
    message = _decode(ConsumerProtocolSubscription, blob)
    owned = tuple(
        TopicPartition(item.topic, number) for item in message.owned_partitions for number in item.partitions
    )
    return Subscription(
        message.topics, owned, message.generation_id, message.user_data, message.rack_id, group_instance_id
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Write what a member is to read, in the order given."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            AssignedTopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(partitions).items()
        )
    )
    return _VERSION.pack(_NEWEST) + encode(message, _NEWEST)


def decode_assignment(blob: bytes) -> tuple[TopicPartition, ...]:
    """Read what a member is to read. No bytes at all stand for nothing. Raises `MalformedBytes`."""
    if not blob:
        return ()
    message = _decode(ConsumerProtocolAssignment, blob)
    return tuple(
        TopicPartition(item.topic, number)
        for item in message.assigned_partitions
        for number in item.partitions
    )


def encode_generation(generation: int) -> bytes:
    """Write the note of cooperative-sticky."""
    return _INT32.pack(generation)


def decode_generation(note: bytes | None) -> int:
    """Read the note of cooperative-sticky."""
    return NO_GENERATION if note is None or len(note) < _INT32.size else int(_INT32.unpack_from(note)[0])


def encode_sticky_note(owned: Iterable[TopicPartition], generation: int) -> bytes:
    """Write the note of sticky."""
    by_topic = _by_topic(sorted(owned))
    parts = [_INT32.pack(len(by_topic))]
    for topic, numbers in by_topic.items():
        name = topic.encode()
        parts += [_VERSION.pack(len(name)), name, Struct(f">i{len(numbers)}i").pack(len(numbers), *numbers)]
    return b"".join(parts) + _INT32.pack(generation)


def decode_sticky_note(note: bytes | None) -> tuple[tuple[TopicPartition, ...], int]:
    """Read the note of sticky, with or without a generation."""
    if not note:
        return (), NO_GENERATION
    try:
        owned, position = _read_owned(note)
    except (struct_error, UnicodeDecodeError):
        return (), NO_GENERATION
    return owned, decode_generation(note[position:])


def _read_owned(note: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    owned: list[TopicPartition] = []
    (topics,) = _INT32.unpack_from(note)
    position = _INT32.size
    for _ in range(topics):
        (length,) = _VERSION.unpack_from(note, position)
        position += _VERSION.size
        topic = note[position : position + max(length, 0)].decode()
        position += max(length, 0)
        (count,) = _INT32.unpack_from(note, position)
        position += _INT32.size
        if not 0 <= count * _INT32.size <= len(note) - position:
            raise struct_error(f"{count} partitions in {len(note) - position} bytes")
        owned += [
            TopicPartition(topic, number) for number in Struct(f">{count}i").unpack_from(note, position)
        ]
        position += count * _INT32.size
    return tuple(owned), position


def _by_topic(partitions: Iterable[TopicPartition]) -> Mapping[str, tuple[int, ...]]:
    by_topic: dict[str, list[int]] = {}
    for where in partitions:
        by_topic.setdefault(where.topic, []).append(where.partition)
    return {topic: tuple(numbers) for topic, numbers in by_topic.items()}


def _decode(cls: type[T], blob: bytes) -> T:
    if len(blob) < _VERSION.size:
        raise MalformedBytes(f"a blob of {len(blob)} bytes has no version")
    (version,) = _VERSION.unpack_from(blob)
    if version < 0:
        raise MalformedBytes(f"a blob has no version {version}")
    message, _ = decode_from(cls, blob, min(version, _NEWEST), _VERSION.size)
    return message
