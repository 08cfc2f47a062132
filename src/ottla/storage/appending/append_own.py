"""Appending what the broker itself writes: a coordinator's records and markers, the quorum's metadata.

Any number of batches at once, control batches too. Sequences are not looked at, since there are none.
"""

from struct import Struct
from typing import TYPE_CHECKING, Final

from ottla.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset, ProducerId
from ottla.records.batch import BatchView, LegacyBatchView
from ottla.records.control import decode_end_txn_marker, find_control_record
from ottla.storage.appending.append_checks import check_leader_epoch, check_verified, does_not_fit
from ottla.storage.appending.append_info import AppendInfo, AppendOrigin
from ottla.storage.appending.validation import validate_internal_batch
from ottla.storage.appending.verification import Verification
from ottla.storage.appending.write_batches import AssignedBatch, whole_batches, write_batches
from ottla.storage.errors import AppendError
from ottla.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.storage.log import Log

# Base offset, length, leader epoch: what a leader sets, and the length between, in one go.
_ASSIGNED: Final = Struct(">qii")


def append_own(
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
    for batch in whole_batches(records):
        if isinstance(batch, LegacyBatchView):
            raise AppendError(ErrorCode.INVALID_RECORD, f"format {batch.magic} is not written any more")
        if len(batch.view) > log.config.max_message_bytes:
            raise AppendError(ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {len(batch.view)} bytes is too large")
        valid = validate_internal_batch(batch.view, log.config, now_ms)
        views.append(valid.records)
        log_append_time_ms = max(log_append_time_ms, valid.log_append_time_ms)
    if not views:
        raise AppendError(ErrorCode.INVALID_RECORD, "there is no batch to append")
    check_leader_epoch(log, leader_epoch)
    offset = log.log_end_offset
    position = 0
    batches: list[AssignedBatch] = []
    for view in views:
        length, last_delta = int.from_bytes(view[8:12]), int.from_bytes(view[23:27])
        _ASSIGNED.pack_into(view, 0, offset, length, leader_epoch)
        batches.append(AssignedBatch(position, BatchView(view).header, view))
        offset = Offset(offset + last_delta + 1)
        position += len(view)
    if position > log.config.segment_bytes:
        raise does_not_fit(position, log.config.segment_bytes)
    for assigned in batches:
        if assigned.header.producer_id >= 0:
            _check_internal_producer(log, assigned, origin, verification, transaction_version)
    rolls = write_batches(log, batches, now_ms)
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
    assigned: AssignedBatch,
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
        check_verified(log, producer_id, header.producer_epoch, expected, verification)
    log.producer_state.check_internal_batch(producer_id, header.producer_epoch, header.is_transactional)
