"""Appending as the leader, who gives batches their offsets.

The way of one client batch is straight-line code on purpose: one header unpack, one checksum, one look-up of
the producer, one write. Everything rare is a call to somewhere else.

If a write fails, the segment is cut back to where it was, and the log directory goes offline: of the batch
nothing is in the log, whatever the disk did.
"""

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from ottla.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset, ProducerId
from ottla.records.attributes import APPEND_TIME_BIT, CODEC_ID_MAX, CODEC_MASK, CONTROL_BIT, TRANSACTIONAL_BIT
from ottla.records.batch import (
    ATTRIBUTES_LOW_BYTE,
    ATTRIBUTES_OFFSET,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    SEQUENCE_MASK,
)
from ottla.storage.appending.append_checks import check_leader_epoch, check_verified, does_not_fit, no_room
from ottla.storage.appending.append_info import AppendInfo, AppendOrigin
from ottla.storage.appending.append_own import append_own
from ottla.storage.appending.record_checks import seem_sound
from ottla.storage.appending.validation import ValidBatch, takes_long_to_open, validate_client_batch
from ottla.storage.appending.verification import Verification
from ottla.storage.appending.write_batches import give_up
from ottla.storage.errors import MustBeOpened
from ottla.storage.roll import must_roll, roll
from ottla.world.disk import DiskError

if TYPE_CHECKING:
    from ottla.storage.log import Log

# Base offset, length, leader epoch: what a leader sets, and the length between, in one go.
_ASSIGNED: Final = Struct(">qii")
_CLIENT: Final = AppendOrigin.CLIENT
_COORDINATOR: Final = AppendOrigin.COORDINATOR
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
    opens_large: bool = True,
    valid: ValidBatch | None = None,
) -> AppendInfo:
    """Give batches their offsets and append them. Raises `AppendError` if they are refused.

    `records` is written to: offsets and epoch are set in place. From a client it must be exactly one batch.
    Unless `opens_large`, one that has to be opened and is large is not, nor one whose schemas are checked:
    `MustBeOpened` is raised. The caller that has opened it since gives what came of that as `valid`.
    """
    if log.volume.error is not None:
        log.volume.check()
    if records.readonly:
        records = memoryview(bytearray(records))
    config = log.config
    trusts_records = config.takes_batches_as_they_are and valid is None
    if origin is not _CLIENT:
        # A batch of a coordinator is let in by its header, like most of clients: a third of the time.
        trusts_records = origin is _COORDINATOR and config.takes_own_batches_as_they_are
        if not trusts_records or _is_rare(records):
            return append_own(log, records, leader_epoch, now_ms, origin, verification, transaction_version)

    log_append_time_ms = NO_TIMESTAMP
    try:
        base_offset, length, _, magic, crc, attributes, last_delta, first_timestamp, max_timestamp, \
            producer_id, epoch, base_sequence, count = HEADER.unpack_from(records)  # fmt: skip
        takes_as_it_is = (
            trusts_records
            and magic == MAGIC
            and base_offset == 0
            and length + LOG_OVERHEAD == len(records) <= config.max_message_bytes
            and count == last_delta + 1 > 0
            and not attributes & (APPEND_TIME_BIT | CONTROL_BIT)
            and attributes & CODEC_MASK <= CODEC_ID_MAX
            and (base_sequence >= 0 or producer_id < 0)
            and 0 <= first_timestamp <= max_timestamp <= now_ms + config.message_timestamp_after_max_ms
            and crc32c(records[ATTRIBUTES_OFFSET:]) == crc
            and (
                origin is not _CLIENT
                or seem_sound(records, count, attributes & CODEC_MASK, config.looks_at_records)
            )
        )
    except struct_error:
        takes_as_it_is = False
    if not takes_as_it_is:
        if origin is not _CLIENT:
            return append_own(log, records, leader_epoch, now_ms, origin, verification, transaction_version)
        if valid is None:
            if not opens_large and (config.checks_schemas or takes_long_to_open(records)):
                raise MustBeOpened
            valid = validate_client_batch(records, config, now_ms)
        records, log_append_time_ms = valid
        _, length, _, _, _, attributes, last_delta, _, max_timestamp, producer_id, epoch, base_sequence, _ = (
            HEADER.unpack_from(records)
        )

    size_bytes = len(records)
    if size_bytes > config.segment_bytes:
        raise does_not_fit(size_bytes, config.segment_bytes)
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
    if log.volume.is_short and origin is _CLIENT:
        raise no_room()

    is_new_epoch = leader_epoch != log.leader_epochs.latest
    if is_new_epoch:
        check_leader_epoch(log, leader_epoch)
    segment = log.segments[-1]
    size = segment.size
    # What holds for nearly every append is asked here, with some room to the real limits; see `must_roll`.
    may_roll = (
        size + size_bytes > config.segment_bytes
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
        raise give_up(log, error, None if rolls else size) from error
    log.log_end_offset = last_offset + 1  # type: ignore[assignment]
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


def _is_rare(records: memoryview) -> bool:
    """Say whether a coordinator appends a marker, or on behalf of a producer."""
    attributes = records[ATTRIBUTES_LOW_BYTE] if len(records) > ATTRIBUTES_LOW_BYTE else CONTROL_BIT
    return attributes & (CONTROL_BIT | TRANSACTIONAL_BIT) != 0


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
    is_transactional = attributes & TRANSACTIONAL_BIT != 0
    if producer is not None:
        last_sequence = (base_sequence + last_delta) & SEQUENCE_MASK
        duplicate = producer.find_duplicate(epoch, base_sequence, last_sequence, is_transactional)
        if duplicate is not None:
            _, last_offset, delta, timestamp_ms = duplicate
            return AppendInfo(
                Offset(last_offset - delta),
                Offset(last_offset),
                timestamp_ms,
                # Kafka answers with the timestamp of the stored batch, also if the producer set it.
                timestamp_ms,
                log.log_start_offset,
                is_duplicate=True,
            )
    expected = log.verifications.get(producer_id) if log.verifications else None
    if is_transactional:
        check_verified(log, producer_id, epoch, expected, verification)
    state.check_batch(producer_id, epoch, base_sequence, is_transactional, expected)
    return None
