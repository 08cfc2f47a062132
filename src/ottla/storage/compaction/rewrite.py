"""Writing a batch again with some of its records gone, or with a delete horizon.

Base offset and last offset stay, and with them the sequence numbers: to a producer, a reader and a follower
it is the same batch with holes. The base timestamp becomes the first remaining record's, or the delete
horizon, which makes other timestamp deltas, negative ones too. Records are not decoded for that: everything
after the timestamp delta is copied, and the whole record if the first one stays and with it the base.

With LogAppendTime the timestamps that producers had set are gone afterwards, as in Kafka.
"""

from typing import Final

from ottla.records.attributes import APPEND_TIME_BIT, DELETE_HORIZON_BIT, codec_of
from ottla.records.batch import BatchHeader
from ottla.records.builder import seal_batch
from ottla.records.codec import decode_varint, decode_varlong, encode_varint, wrap_int64
from ottla.records.compression import compress

_NO_ATTRIBUTES: Final = b"\x00"
_VARINTS_MAX: Final = 4096
# Looked up in place: calling the function for each of two numbers took a quarter of the time of a record.
_VARINTS: Final = tuple(encode_varint(number) for number in range(_VARINTS_MAX))


def rewrite_batch(
    header: BatchHeader, area: bytes, starts: list[int], kept: list[int], delete_horizon_ms: int | None
) -> bytearray:
    """Return the batch with only the records whose indexes are `kept`, of which there is one at least.

    `starts` are those of all its records within `area`, and the end of the last. The codec stays, at its
    default level.
    """
    deltas, body_starts = _read_deltas(area, starts, kept)
    attributes = header.attributes & ~DELETE_HORIZON_BIT
    max_timestamp = header.max_timestamp
    if attributes & APPEND_TIME_BIT:
        timestamps = [max_timestamp] * len(kept)
    else:
        base_timestamp = header.base_timestamp
        # A delta may lead past the largest timestamp. Then it wraps, as it does for those who read it.
        timestamps = [wrap_int64(base_timestamp + delta) for delta in deltas]
        max_timestamp = max(timestamps)
    if delete_horizon_ms is None:
        base_timestamp = timestamps[0]
    else:
        base_timestamp = delete_horizon_ms
        attributes |= DELETE_HORIZON_BIT
    rewritten = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        count=len(kept),
    )
    if base_timestamp == header.base_timestamp and not attributes & APPEND_TIME_BIT:
        records = b"".join([area[starts[index] : starts[index + 1]] for index in kept])
    else:
        records = _join(
            area, starts, kept, body_starts, [wrap_int64(at - base_timestamp) for at in timestamps]
        )
    return seal_batch(rewritten, compress(codec_of(attributes), records))


def _read_deltas(area: bytes, starts: list[int], kept: list[int]) -> tuple[list[int], list[int]]:
    """Return the timestamp delta of each record, and where its offset delta begins."""
    deltas: list[int] = []
    body_starts: list[int] = []
    for index in kept:
        start = starts[index]
        # The length has one byte or two, and so has the delta, in nearly all records.
        position = start + 2 if area[start] < 128 else start + 3
        unsigned = area[position]
        if unsigned < 128:
            position += 1
        else:
            unsigned += (area[position + 1] - 1) << 7
            position += 2
        if area[position - 1] > 127 or (area[start + 1] > 127 and area[start] > 127):
            end = starts[index + 1]
            _, position = decode_varint(area, start, end, index)
            delta, position = decode_varlong(area, position + 1, end, index)
        else:
            delta = unsigned >> 1 ^ -(unsigned & 1)
        deltas.append(delta)
        body_starts.append(position)
    return deltas, body_starts


def _join(
    area: bytes, starts: list[int], kept: list[int], body_starts: list[int], deltas: list[int]
) -> bytes:
    """Put the records together again, each with a new timestamp delta."""
    varints = _VARINTS
    pieces: list[bytes] = []
    for index, position, delta in zip(kept, body_starts, deltas, strict=True):
        body = area[position : starts[index + 1]]
        encoded = varints[delta] if 0 <= delta < _VARINTS_MAX else encode_varint(delta)
        length = 1 + len(encoded) + len(body)
        pieces += (
            varints[length] if length < _VARINTS_MAX else encode_varint(length),
            _NO_ATTRIBUTES,
            encoded,
            body,
        )
    return b"".join(pieces)
