"""The committed offsets that groups keep in `__consumer_offsets`."""

from struct import Struct
from typing import Any, Final

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.codec import Readable, encode_pieces
from ottla.wire.declare import i32, i64, message, wire

_VERSION: Final = Struct(">h")
WRITTEN_VERSION: Final = 4
"""The version of the values that are written, unless a client has set an expiry."""
# Version, offset, leader epoch, length of the metadata plus one; then, after the metadata, the commit
# timestamp and one tagged field: the topic's id.
_BEFORE_METADATA: Final = Struct(">hqiB")
_AFTER_METADATA: Final = Struct(">q3s16s")
_WITHOUT_METADATA: Final = Struct(">hqiBq3s16s")
_TOPIC_ID_FOLLOWS: Final = b"\x01\x00\x10"
_SHORT_BYTES_MAX: Final = 126
"""Up to here the length of a compact string takes one byte."""

_new_tuple: Final[Any] = tuple.__new__


@message(api_key=0, versions="0")
class LegacyOffsetCommitKey:
    """The key of a committed offset in its oldest form: read, never written."""

    group: str = wire("0")
    topic: str = wire("0")
    partition: i32 = wire("0")


@message(api_key=0, versions="0")
class LegacyOffsetCommitValue:
    """Record a committed offset in its oldest form: read, never written."""

    offset: i64 = wire("0")
    metadata: str = wire("0")
    commit_timestamp: i64 = wire("0")


@message(api_key=1, versions="0")
class OffsetCommitKey:
    """The key of a committed offset: a group and a partition."""

    group: str = wire("0")
    topic: str = wire("0")
    partition: i32 = wire("0")


@message(api_key=1, versions="0-4", flexible="4+")
class OffsetCommitValue:
    """Record the offset that a group has committed for a partition.

    v4 is written, with the topic's id where it is known; v1 only where the client set an expiry time.
    v3 adds the leader epoch.
    """

    offset: i64 = wire("0+")
    leader_epoch: i32 = wire("3+", default=-1, ignorable=True)
    metadata: str = wire("0+")
    commit_timestamp: i64 = wire("0+")
    expire_timestamp: i64 = wire("1", default=-1, ignorable=True)
    topic_id: Uuid = wire("4+", default=ZERO_UUID, tag=0, ignorable=True)


def encode_offset_commit_value(value: OffsetCommitValue, version: int) -> bytes:
    """Write a version and the value in that version.

    Nearly all are of version 4, know their topic's id and have no metadata. Such a one is written in one go,
    which takes 0.8 us; the compiled encoder takes 5 us.
    """
    fields: Any = value
    offset, leader_epoch, metadata, timestamp, _, topic_id = fields
    if version == WRITTEN_VERSION and topic_id != ZERO_UUID:
        if not metadata:
            return _WITHOUT_METADATA.pack(
                version, offset, leader_epoch, 1, timestamp, _TOPIC_ID_FOLLOWS, topic_id
            )
        note: bytes = metadata.encode()
        if len(note) <= _SHORT_BYTES_MAX:
            before = _BEFORE_METADATA.pack(version, offset, leader_epoch, len(note) + 1)
            return before + note + _AFTER_METADATA.pack(timestamp, _TOPIC_ID_FOLLOWS, topic_id)
    return b"".join((_VERSION.pack(version), *encode_pieces(value, version)))


def find_offset_commit_value(data: Readable) -> OffsetCommitValue | None:
    """Read a value with its version, if it is one like those that are written; None for any other.

    A log has one for each commit. This takes 1.2 us, the compiled decoder takes 1.9 us.
    """
    if len(data) < _WITHOUT_METADATA.size:
        return None
    version, offset, leader_epoch, length = _BEFORE_METADATA.unpack_from(data)
    metadata_stop = _BEFORE_METADATA.size + length - 1
    if (
        version != WRITTEN_VERSION
        or not 0 < length <= _SHORT_BYTES_MAX + 1
        or metadata_stop + _AFTER_METADATA.size != len(data)
    ):
        return None
    timestamp, tag, topic_id = _AFTER_METADATA.unpack_from(data, metadata_stop)
    if tag != _TOPIC_ID_FOLLOWS:
        return None
    metadata = ""
    if length > 1:
        try:
            metadata = str(data[_BEFORE_METADATA.size : metadata_stop], "utf-8")
        except UnicodeDecodeError:
            return None
    return _new_tuple(OffsetCommitValue, (offset, leader_epoch, metadata, timestamp, -1, Uuid(topic_id)))  # type: ignore[no-any-return]
