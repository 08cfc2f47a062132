"""Appending batches: as the leader, who gives them offsets, and as a follower, who takes them as they are.

The way of one client batch is straight-line code on purpose: one header unpack, one checksum, one look-up of
the producer, one write. Everything rare is a call to somewhere else.

If a write fails, the segment is cut back to where it was, and the log directory goes offline: of the batch
nothing is in the log, whatever the disk did.
"""

from contextlib import suppress
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from ottla.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset, ProducerId
from ottla.records.attributes import APPEND_TIME_BIT, CODEC_MASK, CONTROL_BIT, TRANSACTIONAL_BIT
from ottla.records.batch import (
    ATTRIBUTES_OFFSET,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    SEQUENCE_MASK,
    BatchHeader,
    BatchView,
    LegacyBatchView,
    iter_batches,
)
from ottla.records.control import decode_end_txn_marker, find_control_record
from ottla.records.errors import CorruptBatch
from ottla.storage.append_info import AppendInfo, AppendOrigin
from ottla.storage.errors import AppendError
from ottla.storage.replay import aborted_transaction_of, replay_batch
from ottla.storage.roll import RELATIVE_OFFSET_MAX, must_roll, roll
from ottla.storage.validation import validate_client_batch, validate_internal_batch
from ottla.storage.verification import Verification
from ottla.wire.error_code import ErrorCode
from ottla.world.disk import DiskError

if TYPE_CHECKING:
    from ottla.storage.log import Log
    from ottla.storage.segment import Segment

# Base offset, length, leader epoch: what a leader sets, and the length between, in one go.
_ASSIGNED: Final = Struct(">qii")
_CODEC_MAX: Final = 4
_CLIENT: Final = AppendOrigin.CLIENT
_RELATIVE_OFFSET_MAX: Final = 0x7FFFFFFF
# A time index is at most half as large again as the offset index, and keeps room for an entry.
_INDEX_BYTES_SPARE: Final = 36
_new_tuple = tuple.__new__


def append_as_leader(  # noqa: C901 - one batch, start to end: a call costs a hundredth of the whole
    log: "Log",
    records: memoryview,
    *,
    leader_epoch: LeaderEpoch,
    now_ms: int,
    origin: AppendOrigin = _CLIENT,
    verification: Verification | None = None,
    transaction_version: int = 2,
) -> AppendInfo:
    """Give batches their offsets and append them. Raises `AppendError` if they are refused.

    `records` is written to: offsets and epoch are set in place. From a client it must be exactly one batch.
    """
    if log.volume.error is not None:
        log.volume.check()
    if records.readonly:
        records = memoryview(bytearray(records))
    if origin is not _CLIENT:
        return _append_internal(log, records, leader_epoch, now_ms, origin, verification, transaction_version)

    config = log.config
    log_append_time_ms = NO_TIMESTAMP
    try:
        base_offset, length, _, magic, crc, attributes, last_delta, _, max_timestamp, producer_id, epoch, \
            base_sequence, count = HEADER.unpack_from(records)  # fmt: skip
        takes_as_it_is = (
            config.takes_batches_as_they_are
            and magic == MAGIC
            and base_offset == 0
            and length + LOG_OVERHEAD == len(records) <= config.max_message_bytes
            and count == last_delta + 1 > 0
            and not attributes & (APPEND_TIME_BIT | CONTROL_BIT)
            and attributes & CODEC_MASK <= _CODEC_MAX
            and (base_sequence >= 0 or producer_id < 0)
            and max_timestamp <= now_ms + config.message_timestamp_after_max_ms
            and crc32c(records[ATTRIBUTES_OFFSET:]) == crc
        )
    except struct_error:
        takes_as_it_is = False
    if not takes_as_it_is:
        records, log_append_time_ms = validate_client_batch(records, config, now_ms)
        _, length, _, _, _, attributes, last_delta, _, max_timestamp, producer_id, epoch, base_sequence, _ = (
            HEADER.unpack_from(records)
        )

    size_bytes = len(records)
    if size_bytes > config.segment_bytes:
        raise _does_not_fit(size_bytes, config.segment_bytes)
    first_offset = log.log_end_offset
    # Calling a NewType costs 60 ns, so offsets are computed as the plain numbers they are.
    last_offset: Offset = first_offset + last_delta
    producer = None
    if producer_id >= 0:
        producer = log.producer_state.producers.get(producer_id)
        if not (
            producer is not None
            and producer.is_next(epoch, base_sequence, attributes & TRANSACTIONAL_BIT != 0)
            and not log.verifications
        ):
            duplicate = _check_producer(
                log, producer_id, epoch, base_sequence, last_delta, attributes, verification
            )
            if duplicate is not None:
                return duplicate
            producer = None

    is_new_epoch = leader_epoch != log.leader_epochs.latest
    if is_new_epoch:
        _check_leader_epoch(log, leader_epoch)
    segment = log.segments[-1]
    # What holds for nearly every append is asked here, with some room to the real limits; see `must_roll`.
    may_roll = (
        segment.size + size_bytes > config.segment_bytes
        or max_timestamp - segment.first_timestamp_known > config.segment_ms - segment.roll_jitter_ms
        or last_delta + first_offset - segment.base_offset > _RELATIVE_OFFSET_MAX
        or segment.first_timestamp_known < 0
        or 2 * segment.offset_bytes + _INDEX_BYTES_SPARE > config.segment_index_bytes
    )
    rolls = False
    try:
        if may_roll and must_roll(log, size_bytes, last_offset, max_timestamp, now_ms):
            rolls = True
            segment = roll(log, first_offset, now_ms)
        if is_new_epoch:
            log.assign_leader_epoch(leader_epoch, first_offset)
        _ASSIGNED.pack_into(records, 0, first_offset, length, leader_epoch)
        segment.append(records, last_offset, max_timestamp, config.index_interval_bytes)
    except DiskError as error:
        raise _give_up(log, error) from error
    log.log_end_offset = last_offset + 1  # type: ignore[assignment]
    if log.recovery_point == first_offset:
        log.unflushed_since_ms = now_ms
    if producer is not None:
        last_sequence = (base_sequence + last_delta) & SEQUENCE_MASK
        producer.add_batch(last_sequence, last_offset, last_delta, max_timestamp)
    elif producer_id >= 0:
        log.producer_state.note_batch(
            producer_id,
            epoch,
            (base_sequence + last_delta) & SEQUENCE_MASK,
            first_offset,
            last_offset,
            max_timestamp,
            attributes & TRANSACTIONAL_BIT != 0,
        )
        if log.verifications:
            log.verifications.pop(producer_id, None)
    # The constructor of a named tuple is interpreted: this takes half as long.
    return _new_tuple(
        AppendInfo,
        (
            first_offset,
            last_offset,
            max_timestamp,
            log_append_time_ms,
            log.log_start_offset,
            False,
            rolls or last_offset - log.recovery_point >= config.flush_messages,
        ),
    )


def _check_leader_epoch(log: "Log", leader_epoch: LeaderEpoch) -> None:
    """Refuse what a leader still appends that has been replaced."""
    if leader_epoch < log.leader_epochs.latest:
        raise AppendError(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"leader epoch {leader_epoch} is older than {log.leader_epochs.latest}, which was here before",
        )


def _check_producer(
    log: "Log",
    producer_id: ProducerId,
    epoch: int,
    base_sequence: int,
    last_delta: int,
    attributes: int,
    verification: Verification | None,
) -> AppendInfo | None:
    """Return the answer to a duplicate, or check that the batch is its producer's next."""
    state = log.producer_state
    producer = state.producers.get(producer_id)
    if producer is not None:
        last_sequence = (base_sequence + last_delta) & SEQUENCE_MASK
        duplicate = producer.find_duplicate(epoch, base_sequence, last_sequence)
        if duplicate is not None:
            _, last_offset, delta, timestamp_ms = duplicate
            return AppendInfo(
                Offset(last_offset - delta),
                Offset(last_offset),
                timestamp_ms,
                # Kafka answers with the timestamp of the stored batch, whoever set it.
                timestamp_ms,
                log.log_start_offset,
                is_duplicate=True,
            )
    is_transactional = attributes & TRANSACTIONAL_BIT != 0
    expected = log.verifications.get(producer_id) if log.verifications else None
    if is_transactional:
        _check_verified(log, producer_id, epoch, expected, verification)
    state.check_batch(producer_id, epoch, base_sequence, is_transactional, expected)
    return None


def _check_verified(
    log: "Log",
    producer_id: ProducerId,
    epoch: int,
    expected: Verification | None,
    verification: Verification | None,
) -> None:
    """Refuse the first batch of a transaction that its coordinator was not asked about."""
    producer = log.producer_state.producers.get(producer_id)
    if producer is not None and producer.has_open_transaction and producer.epoch == epoch:
        return
    if log.config.verifies_transactions and (expected is None or expected is not verification):
        raise AppendError(
            ErrorCode.INVALID_TXN_STATE,
            f"the batch of producer {producer_id} is of no transaction that its coordinator has confirmed",
        )


class _Assigned(NamedTuple):
    """A batch with its offset, at a position within what is appended at once."""

    position: int
    header: BatchHeader
    view: memoryview


def _append_internal(
    log: "Log",
    records: memoryview,
    leader_epoch: LeaderEpoch,
    now_ms: int,
    origin: AppendOrigin,
    verification: Verification | None,
    transaction_version: int,
) -> AppendInfo:
    """Append batches of a coordinator or of the quorum's leader: any number, control batches too."""
    views: list[memoryview] = []
    log_append_time_ms = NO_TIMESTAMP
    for batch in _whole_batches(records):
        if isinstance(batch, LegacyBatchView):
            raise AppendError(ErrorCode.INVALID_RECORD, f"format {batch.magic} is not written any more")
        if len(batch.view) > log.config.max_message_bytes:
            raise AppendError(ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {len(batch.view)} bytes is too large")
        valid = validate_internal_batch(batch.view, log.config, now_ms)
        views.append(valid.records)
        log_append_time_ms = max(log_append_time_ms, valid.log_append_time_ms)
    if not views:
        raise AppendError(ErrorCode.INVALID_RECORD, "there is no batch to append")
    _check_leader_epoch(log, leader_epoch)
    offset = log.log_end_offset
    position = 0
    batches: list[_Assigned] = []
    for view in views:
        length, last_delta = int.from_bytes(view[8:12]), int.from_bytes(view[23:27])
        _ASSIGNED.pack_into(view, 0, offset, length, leader_epoch)
        batches.append(_Assigned(position, BatchView(view).header, view))
        offset = Offset(offset + last_delta + 1)
        position += len(view)
    if position > log.config.segment_bytes:
        raise _does_not_fit(position, log.config.segment_bytes)
    for assigned in batches:
        if assigned.header.producer_id >= 0:
            _check_internal_producer(log, assigned, origin, verification, transaction_version)
    rolls = _write(log, batches, now_ms)
    first, last = batches[0].header, batches[-1].header
    return AppendInfo(
        Offset(first.base_offset),
        Offset(last.last_offset),
        max([assigned.header.max_timestamp for assigned in batches]),
        log_append_time_ms,
        log.log_start_offset,
        flush_is_due=rolls or last.last_offset - log.recovery_point >= log.config.flush_messages,
    )


def _check_internal_producer(
    log: "Log",
    assigned: _Assigned,
    origin: AppendOrigin,
    verification: Verification | None,
    transaction_version: int,
) -> None:
    header = assigned.header
    producer_id = ProducerId(header.producer_id)
    if header.is_control:
        record = find_control_record(BatchView(assigned.view))
        if record is not None:
            marker = decode_end_txn_marker(record)
            log.producer_state.check_marker(
                producer_id, header.producer_epoch, marker.coordinator_epoch, transaction_version
            )
        return
    if origin is AppendOrigin.COORDINATOR and header.is_transactional:
        expected = log.verifications.get(producer_id) if log.verifications else None
        _check_verified(log, producer_id, header.producer_epoch, expected, verification)
    log.producer_state.check_internal_batch(producer_id, header.producer_epoch, header.is_transactional)


def append_as_follower(
    log: "Log", records: memoryview, leader_epoch: LeaderEpoch | None = None, now_ms: int = NO_TIMESTAMP
) -> AppendInfo | None:
    """Append batches as the leader has them. Returns None if there was no whole one.

    A batch that is cut off at the end is left out: the next fetch brings it. With a `leader_epoch`, a batch
    of a later one is left out too, with all after it: it must come from the leader of that epoch.
    """
    log.volume.check()
    batches: list[_Assigned] = []
    info: AppendInfo | None = None
    next_offset = log.log_end_offset
    position = 0
    for batch in _whole_batches(records):
        header = _follower_header(batch)
        if leader_epoch is not None and header.leader_epoch > leader_epoch:
            break
        if not next_offset <= header.base_offset <= header.last_offset:
            raise AppendError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"batch {header.base_offset} to {header.last_offset} must not be appended at {next_offset}",
            )
        if not batch.crc_is_valid():
            raise AppendError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the checksum of the batch at offset {header.base_offset} is wrong",
            )
        if position and position + len(batch.view) > log.config.segment_bytes:
            info = _append_chunk(log, batches, now_ms, info)
            batches, position = [], 0
        batches.append(_Assigned(position, header, batch.view))
        position += len(batch.view)
        next_offset = Offset(header.last_offset + 1)
    return _append_chunk(log, batches, now_ms, info) if batches else info


def _follower_header(batch: BatchView) -> BatchHeader:
    """Return a batch's header. One of an older format gets what it would have in format 2."""
    if not isinstance(batch, LegacyBatchView):
        return batch.header
    return BatchHeader(
        batch.base_offset, batch.batch_length, -1, batch.magic, batch.crc, batch.attributes, 0,
        batch.max_timestamp, batch.max_timestamp, -1, -1, -1, batch.count,
    )  # fmt: skip


def _append_chunk(log: "Log", batches: list[_Assigned], now_ms: int, before: AppendInfo | None) -> AppendInfo:
    """Append what fits into one segment, and tell it together with what was appended before."""
    rolls = _write(log, batches, now_ms)
    first, last = batches[0].header, batches[-1].header
    max_timestamp = max([assigned.header.max_timestamp for assigned in batches])
    return AppendInfo(
        Offset(first.base_offset) if before is None else before.first_offset,
        Offset(last.last_offset),
        max_timestamp if before is None else max(before.max_timestamp, max_timestamp),
        NO_TIMESTAMP,
        log.log_start_offset,
        flush_is_due=rolls
        or (before is not None and before.flush_is_due)
        or last.last_offset - log.recovery_point >= log.config.flush_messages,
    )


def _whole_batches(records: memoryview) -> list[BatchView]:
    try:
        return list(iter_batches(records))
    except CorruptBatch as error:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def _write(log: "Log", batches: list[_Assigned], now_ms: int) -> bool:
    """Write batches at once and take notice of each. Says whether a new segment was started."""
    first, last = batches[0].header, batches[-1].header
    size_bytes = batches[-1].position + len(batches[-1].view)
    max_timestamp = max([assigned.header.max_timestamp for assigned in batches])
    try:
        rolls = must_roll(log, size_bytes, last.last_offset, max_timestamp, now_ms)
        segment = roll(log, _base_of_next(log, first, last), now_ms) if rolls else log.active_segment
        start = segment.size
        segment.file.write(start, [assigned.view for assigned in batches])
        if log.recovery_point == log.log_end_offset:
            log.unflushed_since_ms = now_ms
        for assigned in batches:
            _note(log, segment, start, assigned)
    except DiskError as error:
        raise _give_up(log, error) from error
    return rolls


def _base_of_next(log: "Log", first: BatchHeader, last: BatchHeader) -> Offset:
    """Return the base offset of a new segment.

    Deviation: Kafka takes the first batch's offset, ours starts where the last segment ended, also when a
    follower gets batches with a gap before them. So a gap between segments always means that some is lost.
    """
    is_indexable = last.last_offset - log.log_end_offset <= RELATIVE_OFFSET_MAX
    return log.log_end_offset if is_indexable else Offset(first.base_offset)


def _note(log: "Log", segment: "Segment", start: int, assigned: _Assigned) -> None:
    header = assigned.header
    if header.leader_epoch >= 0 and header.leader_epoch != log.leader_epochs.latest:
        log.assign_leader_epoch(LeaderEpoch(header.leader_epoch), Offset(header.base_offset))
    segment.note_batch(
        start + assigned.position,
        len(assigned.view),
        header.last_offset,
        header.max_timestamp,
        log.config.index_interval_bytes,
    )
    log.log_end_offset = Offset(header.next_offset)
    if header.producer_id >= 0:
        completed = replay_batch(log.producer_state, header, assigned.view)
        if completed is not None and completed.is_aborted:
            segment.add_aborted(aborted_transaction_of(completed))
        if log.verifications:
            log.verifications.pop(ProducerId(header.producer_id), None)


def _give_up(log: "Log", error: DiskError) -> Exception:
    """Cut off what a failed write may have left, as far as the disk still lets us."""
    segment = log.active_segment
    # If that fails too, recovery finds the rest: it lies above the recovery point.
    with suppress(DiskError):
        segment.file.truncate(segment.size)
    return log.volume.fail(error)


def _does_not_fit(size_bytes: int, segment_bytes: int) -> AppendError:
    return AppendError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"{size_bytes} bytes at once are more than a segment holds (segment.bytes is {segment_bytes})",
    )
