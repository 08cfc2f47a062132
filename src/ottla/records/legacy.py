"""Messages of format 0 and 1, which brokers wrote before 2017. They are only ever read.

    offset (int64) · size of the rest (int32) · CRC-32 of what follows · magic · attributes
    · [timestamp (int64), format 1] · key length (int32, -1 null) · key · value length · value

A compressed message wraps others: its value is a whole message set, its offset is the one of the last
message in there. The offsets inside are absolute in format 0; in format 1 they count from any start, usually
0. Nothing is wrapped twice. The LZ4 frames of format 0 carry a wrong header checksum, which is not looked at.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final
from zlib import crc32

from ottla.records.attributes import APPEND_TIME_BIT, CODEC_MASK, Codec, codec_of
from ottla.records.batch import LOG_OVERHEAD, LegacyBatchView
from ottla.records.codec import Record
from ottla.records.compression import DecompressionLimits, decompress
from ottla.records.errors import InvalidRecord, UnknownCodec
from ottla.records.lz4_frame import decompress_lz4

_PREFIX: Final = Struct(">qi")
_LENGTH: Final = Struct(">i")
_CRC: Final = Struct(">I")
_TIMESTAMP: Final = Struct(">q")
# From the start of a message, prefix included.
_CRC_OFFSET: Final = LOG_OVERHEAD
_MAGIC_OFFSET: Final = 16
_ATTRIBUTES_OFFSET: Final = 17
_TIMESTAMP_OFFSET: Final = 18
_KEY_OFFSETS: Final = (18, 26)


def iter_legacy_records(batch: LegacyBatchView, limits: DecompressionLimits) -> Iterator[Record]:
    """Give the record that a message is, or those that it wraps. Its checksum is the caller's to check."""
    message = batch.records_bytes
    magic = batch.magic
    outer = _decode_message(message, magic, 0)
    if not batch.attributes & CODEC_MASK:
        yield outer
        return
    if outer.value is None:
        raise InvalidRecord(0, "a compressed message without a value")
    inner_set = memoryview(_decompress(codec_of(batch.attributes), magic, outer.value, limits))
    last_offset = _last_offset(inner_set)
    # A wrapper whose offset lies below has absolute ones inside, whatever its format.
    first_offset = max(0, outer.offset - last_offset) if magic == 1 else 0
    append_time = outer.timestamp if magic == 1 and batch.attributes & APPEND_TIME_BIT else None
    for index, inner in enumerate(_iter_messages(inner_set)):
        _check_inner(inner, magic, index)
        record = _decode_message(inner, magic, index)
        yield record._replace(
            offset=record.offset + first_offset,
            timestamp=record.timestamp if append_time is None else append_time,
        )


def _decompress(codec: Codec, magic: int, data: bytes, limits: DecompressionLimits) -> bytes:
    if codec is Codec.ZSTD:
        # It came with format 2 and is defined for no other.
        raise UnknownCodec(codec)
    if codec is Codec.LZ4 and magic == 0:
        return decompress_lz4(data, limits.limit_bytes(len(data)), check_header=False)
    return decompress(codec, data, limits)


def _iter_messages(messages: memoryview) -> Iterator[memoryview]:
    """Cut a message set into messages. It is not cut off: it was complete when it was compressed."""
    position = 0
    index = 0
    while position < len(messages):
        left = len(messages) - position
        size = LOG_OVERHEAD + _PREFIX.unpack_from(messages, position)[1] if left >= LOG_OVERHEAD else 0
        if not _KEY_OFFSETS[0] <= size <= left:
            raise InvalidRecord(index, f"a message of {size} bytes, {left} are left")
        yield messages[position : position + size]
        position += size
        index += 1


def _last_offset(messages: memoryview) -> int:
    offset = -1
    for message in _iter_messages(messages):
        offset = _PREFIX.unpack_from(message)[0]
    if not messages:
        raise InvalidRecord(0, "a compressed message that wraps none")
    return offset


def _check_inner(message: memoryview, magic: int, index: int) -> None:
    if message[_MAGIC_OFFSET] != magic:
        raise InvalidRecord(index, f"magic {message[_MAGIC_OFFSET]} inside a message of magic {magic}")
    if message[_ATTRIBUTES_OFFSET] & CODEC_MASK:
        raise InvalidRecord(index, "compressed inside a compressed message")
    if crc32(message[_MAGIC_OFFSET:]) != _CRC.unpack_from(message, _CRC_OFFSET)[0]:
        raise InvalidRecord(index, "wrong checksum")


def _decode_message(message: memoryview, magic: int, index: int) -> Record:
    """Decode one message on its own, with the offset it states."""
    timestamp = -1
    key_offset = _KEY_OFFSETS[magic]
    if magic == 1 and len(message) >= key_offset:
        timestamp = _TIMESTAMP.unpack_from(message, _TIMESTAMP_OFFSET)[0]
    key, position = _decode_bytes(message, key_offset, index)
    value, position = _decode_bytes(message, position, index)
    if position != len(message):
        raise InvalidRecord(index, f"{len(message) - position} bytes are left after its last field")
    return Record(_PREFIX.unpack_from(message)[0], timestamp, key, value)


def _decode_bytes(message: memoryview, position: int, index: int) -> tuple[bytes | None, int]:
    if len(message) - position < _LENGTH.size:
        raise InvalidRecord(index, "cut off before the length of a field")
    length: int = _LENGTH.unpack_from(message, position)[0]
    position += _LENGTH.size
    if length < 0:
        return None, position
    if length > len(message) - position:
        raise InvalidRecord(index, f"a field of {length} bytes, {len(message) - position} are left")
    return bytes(message[position : position + length]), position + length
