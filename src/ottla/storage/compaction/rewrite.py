"""Writing a batch again with some of its records gone, or with a delete horizon.

Base offset and last offset stay, and with them the sequence numbers: to a producer, a reader and a follower
it is the same batch with holes. The base timestamp becomes the first remaining record's, or the delete
horizon, which makes other timestamp deltas, negative ones too. Records are not decoded for that: everything
after the timestamp delta is copied.

With LogAppendTime the timestamps that producers had set are gone afterwards, as in Kafka.
"""

from typing import Final

from ottla.records.attributes import APPEND_TIME_BIT, DELETE_HORIZON_BIT, codec_of
from ottla.records.batch import BatchHeader
from ottla.records.builder import seal_batch
from ottla.records.codec import decode_varint, decode_varlong, encode_varint
from ottla.records.compression import compress
from ottla.storage.compaction.keys import ScannedRecords

_NO_ATTRIBUTES: Final = b"\x00"


def rewrite_batch(
    header: BatchHeader, area: bytes, scanned: ScannedRecords, kept: list[int], delete_horizon_ms: int | None
) -> bytearray:
    """Return the batch with only the records whose indexes are `kept`, of which there is one at least.

    `area` is what `scanned` was scanned from. The codec stays, at its default level.
    """
    timestamps, bodies = _read_kept(header, area, scanned, kept)
    base_timestamp = timestamps[0] if delete_horizon_ms is None else delete_horizon_ms
    pieces: list[bytes] = []
    for timestamp, body in zip(timestamps, bodies, strict=True):
        delta = encode_varint(timestamp - base_timestamp)
        pieces += (encode_varint(1 + len(delta) + len(body)), _NO_ATTRIBUTES, delta, body)
    attributes = header.attributes & ~DELETE_HORIZON_BIT
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    rewritten = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=header.max_timestamp if attributes & APPEND_TIME_BIT else max(timestamps),
        count=len(kept),
    )
    return seal_batch(rewritten, compress(codec_of(attributes), b"".join(pieces)))


def _read_kept(
    header: BatchHeader, area: bytes, scanned: ScannedRecords, kept: list[int]
) -> tuple[list[int], list[bytes]]:
    """Return the timestamp of each record and its bytes from the offset delta on."""
    is_append_time = header.attributes & APPEND_TIME_BIT
    timestamps: list[int] = []
    bodies: list[bytes] = []
    for index in kept:
        start, end = scanned.starts[index], scanned.starts[index + 1]
        _, position = decode_varint(area, start, end, index)
        delta, position = decode_varlong(area, position + 1, end, index)
        timestamps.append(header.max_timestamp if is_append_time else header.base_timestamp + delta)
        bodies.append(area[position:end])
    return timestamps, bodies
