"""The state of a log's producers at an offset (`.snapshot`), so that a start need not read the whole log.

    off size  field                          each entry
     0   2    version = 1                     0   8    producer id
     2   4    CRC-32C of 6..end               8   2    producer epoch
     6   4    number of entries              10   4    last sequence, -1 if no data batch is known
    10        entries of 46 bytes            14   8    last offset of the newest data batch, -1
                                             22   4    its last offset delta
                                             26   8    timestamp of the last batch or marker
                                             34   4    coordinator epoch of the last marker, -1
                                             38   8    first offset of the open transaction, -1

Big-endian. The file's name carries the offset: batches below it are in the state, the rest is not. Only the
newest batch of a producer is kept, although up to five are in memory.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from ottla.model.ids import Offset, ProducerId
from ottla.storage.file_errors import CorruptFile

VERSION: Final = 1
ENTRY_BYTES: Final = 46

_HEAD: Final = Struct(">hIi")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_CRC_END: Final = 6


class ProducerSnapshotEntry(NamedTuple):
    """What is kept of one producer over a restart."""

    producer_id: ProducerId
    producer_epoch: int
    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    transaction_first_offset: Offset


def encode_producer_snapshot(entries: Iterable[ProducerSnapshotEntry]) -> bytes:
    """Return the bytes of a snapshot file."""
    packed = [_ENTRY.pack(*entry) for entry in entries]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return VERSION.to_bytes(2) + crc32c(body).to_bytes(4) + body


def decode_producer_snapshot(snapshot: bytes | memoryview) -> list[ProducerSnapshotEntry]:
    """Read a snapshot file. Raises `CorruptFile` for a damaged one: the loader then drops it."""
    if len(snapshot) < _HEAD.size:
        raise CorruptFile("producer snapshot", f"{len(snapshot)} bytes are too short")
    version, crc, count = _HEAD.unpack_from(snapshot)
    if version != VERSION:
        raise CorruptFile("producer snapshot", f"unknown version {version}")
    if crc32c(snapshot[_CRC_END:]) != crc:
        raise CorruptFile("producer snapshot", "the checksum does not match")
    entries = snapshot[_HEAD.size :]
    if count < 0 or len(entries) != count * ENTRY_BYTES:
        raise CorruptFile("producer snapshot", f"{count} entries announced, {len(entries)} bytes there")
    return [ProducerSnapshotEntry._make(fields) for fields in _ENTRY.iter_unpack(entries)]
