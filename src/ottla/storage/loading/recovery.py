"""Reading a segment that nobody vouches for: every checksum is verified, everything derived is made again.

Runs over the part of a log above the recovery point after a crash, so it may have to read many gigabytes
before the broker can serve. The loop costs one header unpack and one checksum per batch; the file is read in
large pieces into one buffer that all segments share.

The segment ends before the first batch that is not whole, whose checksum is wrong, or whose offsets do not
come after those before it. Whatever follows is not part of the log.
"""

from struct import Struct
from typing import Final

from crc32c import crc32c

from ottla.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset
from ottla.records.attributes import CONTROL_BIT, TRANSACTIONAL_BIT
from ottla.records.batch import (
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    SEQUENCE_MASK,
    BatchHeader,
    BatchView,
    iter_batches,
)
from ottla.records.errors import RecordsError
from ottla.storage.errors import OffsetOverflow
from ottla.storage.indexes.time_index import TimestampOffset
from ottla.storage.indexes.transaction_index import AbortedTransaction
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.producers.producer_state import ProducerState
from ottla.storage.producers.replay import aborted_transaction_of, replay_batch
from ottla.world.disk import File

BUFFER_BYTES: Final = 1 << 20

_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD
_LEGACY_BYTES_MIN: Final = 26
_RELATIVE_OFFSET_MAX: Final = 0x7FFFFFFF
_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")


class Buffer:
    """Memory to read into, shared by the segments that one worker recovers. Grows for a large batch."""

    __slots__ = ("view",)

    def __init__(self, size_bytes: int = BUFFER_BYTES) -> None:
        self.view = memoryview(bytearray(size_bytes))

    def fit(self, size_bytes: int) -> None:
        """Have room for a batch of `size_bytes`."""
        if size_bytes > len(self.view):
            self.view = memoryview(bytearray(size_bytes))


class RecoveredSegment:
    """What a segment's bytes say: how far they can be trusted, and everything that follows from them."""

    __slots__ = (
        "aborted",
        "base_offset",
        "bytes_since_entry",
        "first_timestamp",
        "has_gaps",
        "largest",
        "last_indexed_timestamp",
        "markers",
        "next_offset",
        "offset_entries",
        "time_entries",
        "valid_bytes",
    )

    def __init__(self, base_offset: Offset) -> None:
        self.base_offset = base_offset
        self.valid_bytes = 0
        self.next_offset = base_offset
        self.first_timestamp = NO_TIMESTAMP
        # Offsets are missing between batches, so compaction was here.
        self.has_gaps = False
        self.largest = TimestampOffset(NO_TIMESTAMP, base_offset)
        self.last_indexed_timestamp = NO_TIMESTAMP
        self.bytes_since_entry = 0
        self.offset_entries = bytearray()
        self.time_entries = bytearray()
        self.aborted: list[AbortedTransaction] = []
        # Where control batches lie, and of which producers.
        self.markers: dict[int, int] = {}


def recover_segment(
    file: File,
    size: int,
    base_offset: Offset,
    index_interval_bytes: int,
    state: ProducerState,
    epochs: LeaderEpochs,
    buffer: Buffer,
) -> RecoveredSegment:
    """Read all of a segment, let `state` and `epochs` take notice of its batches, and make its indexes.

    `state` must be the one at the base offset. Raises `OffsetOverflow` if the segment has to be split before.
    """
    recovered = RecoveredSegment(base_offset)
    while True:
        position = recovered.valid_bytes
        filled = file.read_into(position, buffer.view[: size - position])
        wanted = _recover_piece(recovered, buffer.view[:filled], index_interval_bytes, state, epochs)
        if wanted == 0 or position + filled >= size or recovered.valid_bytes + wanted > size:
            # The last entry covers the batches since the last interval. Later searches for a time go by
            # it, and so does retention.
            _add_time_entry(recovered)
            return recovered
        buffer.fit(wanted)


def _recover_piece(  # noqa: C901 - one loop over all batches of a disk; calls would double its time
    recovered: RecoveredSegment,
    view: memoryview,
    index_interval_bytes: int,
    state: ProducerState,
    epochs: LeaderEpochs,
) -> int:
    """Recover the whole batches at the start of `view`.

    Returns how many bytes of the file are needed to go on, or 0 if what follows is no batch.
    """
    unpack = HEADER.unpack_from
    base_offset_of_segment = recovered.base_offset
    next_offset = recovered.next_offset
    max_timestamp_so_far = recovered.largest.timestamp_ms
    bytes_since_entry = recovered.bytes_since_entry
    file_position = recovered.valid_bytes
    latest_epoch = epochs.latest
    filled = len(view)
    at = 0
    wanted = HEADER_BYTES
    while filled - at >= HEADER_BYTES:
        (
            base_offset, length, leader_epoch, magic, crc, attributes, last_delta, _, max_timestamp,
            producer_id, producer_epoch, base_sequence, _,
        ) = unpack(view, at)  # fmt: skip
        end = at + LOG_OVERHEAD + length
        if magic != MAGIC:
            break
        if end > filled:
            wanted = LOG_OVERHEAD + length if length >= _LENGTH_MIN else 0
            break
        last_offset = base_offset + last_delta
        if (
            length < _LENGTH_MIN
            or base_offset < next_offset
            or last_delta < 0
            or crc32c(view[at + 21 : end]) != crc
        ):
            wanted = 0
            break
        if base_offset != next_offset:
            recovered.has_gaps = True
        if last_offset - base_offset_of_segment > _RELATIVE_OFFSET_MAX:
            raise OffsetOverflow(base_offset_of_segment, last_offset)
        if max_timestamp > max_timestamp_so_far:
            max_timestamp_so_far = max_timestamp
            recovered.largest = TimestampOffset(max_timestamp, Offset(last_offset))
        if bytes_since_entry > index_interval_bytes:
            _add_entries(recovered, last_offset, file_position)
            bytes_since_entry = 0
        elif file_position == 0:
            recovered.first_timestamp = max_timestamp
        if leader_epoch > latest_epoch:
            earliest = next_offset if file_position else epochs.recovered_to
            epochs.assign_recovered(LeaderEpoch(leader_epoch), earliest, Offset(base_offset))
            latest_epoch = epochs.latest
        if producer_id >= 0:
            if attributes & CONTROL_BIT:
                _replay_control(recovered, state, view[at:end])
            else:
                state.note_batch(
                    producer_id,
                    producer_epoch,
                    base_sequence if base_sequence < 0 else (base_sequence + last_delta) & SEQUENCE_MASK,
                    base_offset,
                    last_offset,
                    max_timestamp,
                    attributes & TRANSACTIONAL_BIT != 0,
                )
        # Not `Offset(...)`: calling a NewType costs 60 ns.
        next_offset = last_offset + 1
        size_bytes = end - at
        bytes_since_entry += size_bytes
        file_position += size_bytes
        at = end
    recovered.next_offset = next_offset
    recovered.bytes_since_entry = bytes_since_entry
    recovered.valid_bytes = file_position
    if wanted == HEADER_BYTES and filled - at >= _LEGACY_BYTES_MIN and view[at + 16] < MAGIC:
        return _recover_legacy(recovered, view[at:], index_interval_bytes)
    return wanted


def _add_entries(recovered: RecoveredSegment, last_offset: int, position: int) -> None:
    base_offset = recovered.base_offset
    recovered.offset_entries += _OFFSET_ENTRY.pack(last_offset - base_offset, position)
    _add_time_entry(recovered)


def _add_time_entry(recovered: RecoveredSegment) -> None:
    timestamp_ms, offset = recovered.largest
    if timestamp_ms > recovered.last_indexed_timestamp:
        recovered.time_entries += _TIME_ENTRY.pack(timestamp_ms, offset - recovered.base_offset)
        recovered.last_indexed_timestamp = timestamp_ms


def _replay_control(recovered: RecoveredSegment, state: ProducerState, view: memoryview) -> None:
    header = BatchHeader._make(HEADER.unpack_from(view))
    recovered.markers[header.base_offset] = header.producer_id
    completed = replay_batch(state, header, view)
    if completed is not None and completed.is_aborted:
        recovered.aborted.append(aborted_transaction_of(completed))


def _recover_legacy(recovered: RecoveredSegment, view: memoryview, index_interval_bytes: int) -> int:
    """Recover messages of format 0 and 1 as far as they go. Returns what `_recover_piece` returns."""
    at = 0
    while len(view) - at >= _LEGACY_BYTES_MIN and view[at + 16] < MAGIC:
        size_bytes = LOG_OVERHEAD + int.from_bytes(view[at + 8 : at + 12], signed=True)
        if at + size_bytes > len(view):
            return size_bytes
        message = _find_legacy_message(view[at : at + max(size_bytes, 0)])
        if message is None or message.base_offset < recovered.next_offset:
            return 0
        _note_legacy(recovered, message, index_interval_bytes)
        at += size_bytes
    return _LEGACY_BYTES_MIN


def _find_legacy_message(view: memoryview) -> BatchView | None:
    try:
        message = next(iter_batches(view), None)
        return message if message is not None and message.crc_is_valid() else None
    except RecordsError:
        return None


def _note_legacy(recovered: RecoveredSegment, message: BatchView, index_interval_bytes: int) -> None:
    offset = Offset(message.base_offset)
    if offset - recovered.base_offset > _RELATIVE_OFFSET_MAX:
        raise OffsetOverflow(recovered.base_offset, offset)
    if message.max_timestamp > recovered.largest.timestamp_ms:
        recovered.largest = TimestampOffset(message.max_timestamp, offset)
    if recovered.valid_bytes == 0:
        recovered.first_timestamp = message.max_timestamp
    if recovered.bytes_since_entry > index_interval_bytes:
        _add_entries(recovered, offset, recovered.valid_bytes)
        recovered.bytes_since_entry = 0
    recovered.bytes_since_entry += len(message.view)
    recovered.valid_bytes += len(message.view)
    recovered.next_offset = Offset(offset + 1)
