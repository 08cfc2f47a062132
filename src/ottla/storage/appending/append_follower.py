"""Appending what a leader sent to its follower: batches as they are, with the offsets they have."""

from typing import TYPE_CHECKING

from ottla.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset
from ottla.records.batch import BatchHeader, BatchView, LegacyBatchView
from ottla.storage.appending.append_info import AppendInfo
from ottla.storage.appending.write_batches import AssignedBatch, whole_batches, write_batches
from ottla.storage.config import LONG_MAX
from ottla.storage.errors import AppendError
from ottla.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.storage.log import Log


def append_as_follower(
    log: "Log",
    records: memoryview,
    leader_epoch: LeaderEpoch | None = None,
    now_ms: int = NO_TIMESTAMP,
    gaps_end: int = LONG_MAX,
) -> AppendInfo | None:
    """Append batches as the leader has them. Returns None if there was no whole one.

    A batch that is cut off at the end is left out: the next fetch brings it. With a `leader_epoch`, a batch
    of a later one is left out too, with all after it: it must come from the leader of that epoch.

    So is a batch above `gaps_end` that does not follow the one before it: no checksum covers its base offset.
    The next fetch asks for what is missing, so the leader sees the gap itself, and checks it (`gaps`). The
    first batch may come after a gap: it is what the leader has for the offset that it was asked for.
    """
    log.volume.check()
    batches: list[AssignedBatch] = []
    info: AppendInfo | None = None
    next_offset = log.log_end_offset
    position = 0
    for batch in whole_batches(records):
        header = _follower_header(batch)
        if leader_epoch is not None and header.leader_epoch > leader_epoch:
            break
        if not next_offset == header.base_offset <= header.last_offset:
            is_first = not batches and info is None
            if header.base_offset > max(next_offset, gaps_end) and not is_first:
                break
            _check_order(header, next_offset, is_first)
        if not batch.crc_is_valid():
            raise AppendError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the checksum of the batch at offset {header.base_offset} is wrong",
            )
        if position and position + len(batch.view) > log.config.segment_bytes:
            info = _append_chunk(log, batches, now_ms, info)
            batches, position = [], 0
        batches.append(AssignedBatch(position, header, batch.view))
        position += len(batch.view)
        next_offset = Offset(header.last_offset + 1)
    return _append_chunk(log, batches, now_ms, info) if batches else info


def _check_order(header: BatchHeader, next_offset: Offset, is_first: bool) -> None:
    """Raise if a batch goes back. Behind others, that is damage: of its own base offset, or of theirs."""
    if not next_offset <= header.base_offset <= header.last_offset:
        raise AppendError(
            ErrorCode.UNKNOWN_SERVER_ERROR if is_first else ErrorCode.CORRUPT_MESSAGE,
            f"batch {header.base_offset} to {header.last_offset} must not be appended at {next_offset}",
        )


def _follower_header(batch: BatchView) -> BatchHeader:
    """Return a batch's header. One of an older format gets what it would have in format 2."""
    if not isinstance(batch, LegacyBatchView):
        return batch.header
    return BatchHeader(
        batch.base_offset, batch.batch_length, -1, batch.magic, batch.crc, batch.attributes, 0,
        batch.max_timestamp, batch.max_timestamp, -1, -1, -1, batch.count,
    )  # fmt: skip


def _append_chunk(
    log: "Log", batches: list[AssignedBatch], now_ms: int, before: AppendInfo | None
) -> AppendInfo:
    """Append what fits into one segment, and tell it together with what was appended before."""
    rolls = write_batches(log, batches, now_ms)
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
