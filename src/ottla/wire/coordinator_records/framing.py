"""Keys and values of coordinator records, per internal topic.

The key is an int16 type, then the key's message in version 0. The value is an int16 version, then the value's
message in that version; a null value is a tombstone. A type means something only within its topic, so each
topic has a table of its own. Which version of a value to write is the caller's decision.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from ottla.wire.codec import Readable, decode_from, encode_pieces
from ottla.wire.coordinator_records import (
    classic_group,
    consumer_group,
    offsets,
    share_group,
    share_state,
    streams_group,
    transaction,
)
from ottla.wire.declare import spec_of
from ottla.wire.errors import MalformedBytes

_TYPE_OR_VERSION = Struct(">h")
_KEY_VERSION = 0
_KEYS_MAX = 32_768
_new_tuple = tuple.__new__


class CoordinatorRecord(NamedTuple):
    """A record that a coordinator wrote. A value of None is a tombstone."""

    key: Any
    value: Any
    value_version: int
    """The version the value was written in; -1 for a tombstone."""


class UnknownCoordinatorRecord(NamedTuple):
    """A record of a type this release does not know, as it was. Kafka skips such records with a warning."""

    record_type: int
    key: bytes
    value: bytes | None


class CoordinatorRecords:
    """The kinds of records in one internal topic."""

    def __init__(self, topic: str, *kinds: tuple[type[Any], type[Any]]) -> None:
        self.topic = topic
        self.kinds = {_type_of(key): (key, value) for key, value in kinds}
        assert all(_type_of(value) == _type_of(key) for key, value in kinds), "a value has its key's type"

        # The same few keys are written again and again: those of offsets, with each commit. Keys of different
        # kinds are equal if their fields are, so the type has to count.
        self.encode_key: Callable[[Any], bytes] = lru_cache(_KEYS_MAX, typed=True)(self._encode_key)
        self._decode_key = lru_cache(_KEYS_MAX)(self._decode_new_key)

    def _encode_key(self, key: Any) -> bytes:
        """Write a key: its type, then version 0 of its message."""
        record_type = _type_of(type(key))
        assert self.kinds[record_type][0] is type(key), f"{type(key).__name__} is no key of {self.topic}"
        return b"".join((_TYPE_OR_VERSION.pack(record_type), *encode_pieces(key, _KEY_VERSION)))

    def encode_value(self, value: Any, version: int) -> bytes:
        """Write a value: its version, then its message. (A tombstone has no bytes at all.)"""
        cls = type(value)
        if cls is offsets.OffsetCommitValue:
            return offsets.encode_offset_commit_value(value, version)
        assert self.kinds[_type_of(cls)][1] is cls, f"{cls.__name__} is no value of {self.topic}"
        pieces = encode_pieces(value, version)
        pieces.insert(0, _TYPE_OR_VERSION.pack(version))
        return b"".join(pieces)

    def decode(self, key: Readable, value: Readable | None) -> CoordinatorRecord | UnknownCoordinatorRecord:
        """Read a record. As in Kafka, bytes after a key's or a value's last field are ignored."""
        key_message, value_class = self._decode_key(bytes(key))
        if value_class is None:
            return UnknownCoordinatorRecord(key_message, bytes(key), None if value is None else bytes(value))
        if value is None:
            return _new_tuple(CoordinatorRecord, (key_message, None, -1))
        if value_class is offsets.OffsetCommitValue:
            value_message = offsets.find_offset_commit_value(value)
            if value_message is not None:
                return _new_tuple(CoordinatorRecord, (key_message, value_message, offsets.WRITTEN_VERSION))
        version = _leading_int16(value, "value")
        value_message, _ = decode_from(value_class, value, version, _TYPE_OR_VERSION.size)
        return _new_tuple(CoordinatorRecord, (key_message, value_message, version))

    def _decode_new_key(self, key: bytes) -> tuple[Any, type[Any] | None]:
        """Read a key; return it with the class of its value. Of an unknown type return its number."""
        record_type = _leading_int16(key, "key")
        kind = self.kinds.get(record_type)
        if kind is None:
            return record_type, None
        key_class, value_class = kind
        return decode_from(key_class, key, _KEY_VERSION, _TYPE_OR_VERSION.size)[0], value_class


def _type_of(cls: type[Any]) -> int:
    record_type = spec_of(cls).api_key
    assert record_type is not None, f"{cls.__name__} has no record type"
    return record_type


def _leading_int16(data: Readable, part: str) -> int:
    try:
        return int(_TYPE_OR_VERSION.unpack_from(data)[0])
    except struct.error as error:
        raise MalformedBytes(f"the {part} of a coordinator record has {len(data)} bytes") from error


GROUP_RECORDS = CoordinatorRecords(
    "__consumer_offsets",
    (offsets.LegacyOffsetCommitKey, offsets.LegacyOffsetCommitValue),
    (offsets.OffsetCommitKey, offsets.OffsetCommitValue),
    (classic_group.GroupMetadataKey, classic_group.GroupMetadataValue),
    (consumer_group.ConsumerGroupMetadataKey, consumer_group.ConsumerGroupMetadataValue),
    (consumer_group.ConsumerGroupPartitionMetadataKey, consumer_group.ConsumerGroupPartitionMetadataValue),
    (consumer_group.ConsumerGroupMemberMetadataKey, consumer_group.ConsumerGroupMemberMetadataValue),
    (
        consumer_group.ConsumerGroupTargetAssignmentMetadataKey,
        consumer_group.ConsumerGroupTargetAssignmentMetadataValue,
    ),
    (
        consumer_group.ConsumerGroupTargetAssignmentMemberKey,
        consumer_group.ConsumerGroupTargetAssignmentMemberValue,
    ),
    (
        consumer_group.ConsumerGroupCurrentMemberAssignmentKey,
        consumer_group.ConsumerGroupCurrentMemberAssignmentValue,
    ),
    (share_group.ShareGroupMemberMetadataKey, share_group.ShareGroupMemberMetadataValue),
    (share_group.ShareGroupMetadataKey, share_group.ShareGroupMetadataValue),
    (share_group.ShareGroupTargetAssignmentMetadataKey, share_group.ShareGroupTargetAssignmentMetadataValue),
    (share_group.ShareGroupTargetAssignmentMemberKey, share_group.ShareGroupTargetAssignmentMemberValue),
    (share_group.ShareGroupCurrentMemberAssignmentKey, share_group.ShareGroupCurrentMemberAssignmentValue),
    (share_group.ShareGroupStatePartitionMetadataKey, share_group.ShareGroupStatePartitionMetadataValue),
    (consumer_group.ConsumerGroupRegularExpressionKey, consumer_group.ConsumerGroupRegularExpressionValue),
    (streams_group.StreamsGroupMetadataKey, streams_group.StreamsGroupMetadataValue),
    (streams_group.StreamsGroupMemberMetadataKey, streams_group.StreamsGroupMemberMetadataValue),
    (
        streams_group.StreamsGroupTargetAssignmentMetadataKey,
        streams_group.StreamsGroupTargetAssignmentMetadataValue,
    ),
    (
        streams_group.StreamsGroupTargetAssignmentMemberKey,
        streams_group.StreamsGroupTargetAssignmentMemberValue,
    ),
    (
        streams_group.StreamsGroupCurrentMemberAssignmentKey,
        streams_group.StreamsGroupCurrentMemberAssignmentValue,
    ),
    (streams_group.StreamsGroupTopologyKey, streams_group.StreamsGroupTopologyValue),
)
TRANSACTION_RECORDS = CoordinatorRecords(
    "__transaction_state", (transaction.TransactionLogKey, transaction.TransactionLogValue)
)
SHARE_STATE_RECORDS = CoordinatorRecords(
    "__share_group_state",
    (share_state.ShareSnapshotKey, share_state.ShareSnapshotValue),
    (share_state.ShareUpdateKey, share_state.ShareUpdateValue),
)
