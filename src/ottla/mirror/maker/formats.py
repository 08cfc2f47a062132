"""The records of MirrorMaker 2's own topics, byte for byte.

    heartbeats       source STRING, target STRING          version INT16, timestamp INT64
    checkpoints      group STRING, topic STRING,           version INT16, upstream INT64, downstream INT64,
                     partition INT32                       metadata STRING
    offset syncs     topic STRING, partition INT32         upstream INT64, downstream INT64
    source offsets   JSON of Kafka Connect                 JSON of Kafka Connect

The key is on the left, the value on the right. A STRING is its length as INT16, then UTF-8.
"""

import json
from struct import Struct, error
from typing import Final, NamedTuple

from ottla.model.ids import TopicPartition

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_HEARTBEAT: Final = Struct(">hq")
_CHECKPOINT: Final = Struct(">hqq")
_SYNC: Final = Struct(">qq")
_VERSION: Final = 0
_CONNECTOR: Final = "MirrorSourceConnector"


class UnreadableRecord(ValueError):
    """A record that MirrorMaker 2 would not have written."""


class OffsetSync(NamedTuple):
    """One record: where it lies in the source, and where in the target."""

    where: TopicPartition
    upstream: int
    downstream: int


class Checkpoint(NamedTuple):
    """Where a group goes on, in the source and in the target. The topic is named as in the target."""

    group: str
    where: TopicPartition
    upstream: int
    downstream: int
    metadata: str = ""


def encode_heartbeat(source: str, target: str, timestamp_ms: int) -> tuple[bytes, bytes]:
    """Return key and value."""
    return _string(source) + _string(target), _HEARTBEAT.pack(_VERSION, timestamp_ms)


def encode_checkpoint(item: Checkpoint) -> tuple[bytes, bytes]:
    """Return key and value."""
    key = _string(item.group) + _string(item.where.topic) + _INT32.pack(item.where.partition)
    return key, _CHECKPOINT.pack(_VERSION, item.upstream, item.downstream) + _string(item.metadata)


def decode_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint:
    """Read a checkpoint."""
    if key is None or value is None:
        raise UnreadableRecord("a checkpoint has a key and a value")
    try:
        group, at = _read_string(key, 0)
        topic, at = _read_string(key, at)
        (partition,) = _INT32.unpack_from(key, at)
        _, upstream, downstream = _CHECKPOINT.unpack_from(value)
        metadata, _ = _read_string(value, _CHECKPOINT.size)
    except (error, UnicodeDecodeError) as wrong:
        raise UnreadableRecord(f"this is no checkpoint: {wrong}") from wrong
    return Checkpoint(group, TopicPartition(topic, partition), upstream, downstream, metadata)


def encode_offset_sync(item: OffsetSync) -> tuple[bytes, bytes]:
    """Return key and value."""
    return _string(item.where.topic) + _INT32.pack(item.where.partition), _SYNC.pack(*item[1:])


def decode_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync:
    """Read an offset sync."""
    if key is None or value is None:
        raise UnreadableRecord("an offset sync has a key and a value")
    try:
        topic, at = _read_string(key, 0)
        (partition,) = _INT32.unpack_from(key, at)
        upstream, downstream = _SYNC.unpack_from(value)
    except (error, UnicodeDecodeError) as wrong:
        raise UnreadableRecord(f"this is no offset sync: {wrong}") from wrong
    return OffsetSync(TopicPartition(topic, partition), upstream, downstream)


def encode_source_offset(cluster: str, where: TopicPartition, last_offset: int) -> tuple[bytes, bytes]:
    """Return key and value of a position: the offset of the last record that was copied.

    A key with other bytes would be another entry, so the order of the fields is that of Java's map.
    """
    place = {"cluster": cluster, "partition": where.partition, "topic": where.topic}
    return _json([_CONNECTOR, place]), _json({"offset": last_offset})


def decode_source_offset(key: bytes | None, value: bytes | None) -> tuple[TopicPartition, int | None] | None:
    """Read the position of a partition; None as its offset removes it. Returns None for other entries."""
    try:
        name, place = json.loads(key or b"[null, null]")
        if name != _CONNECTOR:
            return None
        where = TopicPartition(str(place["topic"]), int(place["partition"]))
        content = None if value is None else json.loads(value)
        return where, None if content is None else int(content["offset"])
    except (ValueError, KeyError, TypeError) as wrong:
        raise UnreadableRecord(f"this is no position of MirrorMaker 2: {wrong!r}") from wrong


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _string(text: str) -> bytes:
    content = text.encode()
    return _INT16.pack(len(content)) + content


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _INT16.unpack_from(data, at)
    start = at + _INT16.size
    if length < 0 or start + length > len(data):
        raise error(f"a text of {length} bytes does not fit")
    return data[start : start + length].decode(), start + length
