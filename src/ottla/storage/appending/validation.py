"""What a leader accepts of a producer, and what it has to change in a batch before appending it.

Nearly every batch passes `Log.append_as_leader` without coming here: its header and checksum are right and
the topic takes it as it is. What comes here is refused with the code Kafka gives for it, or is one of those
that must be opened:

- the topic is compacted, so every record needs a key;
- the topic has another codec, so the batch is compressed again;
- the topic bounds how old a record may be, or one may lie too far in the future;
- the header says that records have no timestamps, or that the largest lies before the first;
- the timestamps are the broker's to set (LogAppendTime), or the client wrongly said so;
- its records are to be checked, all of them or as far as it is cheap, and they do not seem sound.

Order of the checks: whole and exactly one batch, base offset, size, checksum, header, records.

Deviation: Kafka drops a few stray bytes, or a batch that is cut off, behind the one batch and tells nobody.
Somebody meant those bytes to be kept, so Ottla refuses the whole. No client sends them.
"""

from typing import Final, NamedTuple

from ottla.model.ids import NO_TIMESTAMP
from ottla.records.attributes import APPEND_TIME_BIT, CODEC_ID_MAX, CODEC_MASK, Codec, TimestampType
from ottla.records.batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC, BatchView
from ottla.records.bulk import check_numbered
from ottla.records.codec import scan_records
from ottla.records.compression import DecompressionLimits, compress, decompress
from ottla.records.errors import (
    CorruptBatch,
    CorruptCompression,
    DecompressionTooLarge,
    InvalidRecord,
    RecordsError,
)
from ottla.storage.appending.record_checks import RecordsValidation, have_room, seem_sound
from ottla.storage.config import LONG_MAX, LogConfig
from ottla.storage.errors import AppendError, RecordError
from ottla.wire.error_code import ErrorCode

OPENED_AT_ONCE_BYTES: Final = 64 * 1024
OPENED_AT_ONCE_RECORDS: Final = 2_000
COMPRESSED_AT_ONCE_BYTES: Final = 4 * 1024
"""Up to this size a batch is opened at once. A compressed one may be a thousand times as large inside."""
_RECORD_ERRORS_MAX: Final = 100
_SMALLEST_MESSAGE: Final = 14


class ValidBatch(NamedTuple):
    """A batch to append, and the time it was given if that was the broker's to do."""

    records: memoryview
    log_append_time_ms: int


def takes_long_to_open(records: memoryview) -> bool:
    """Say whether to open a batch would keep others waiting: it takes more than some milliseconds."""
    if len(records) > OPENED_AT_ONCE_BYTES:
        return True
    if len(records) < HEADER_BYTES:
        return False
    header = BatchView(records).header
    return header.count > OPENED_AT_ONCE_RECORDS or (
        header.attributes & CODEC_MASK != 0 and len(records) > COMPRESSED_AT_ONCE_BYTES
    )


def validate_client_batch(records: memoryview, config: LogConfig, now_ms: int) -> ValidBatch:
    """Return a producer's batch as it is to be appended, or raise `AppendError`."""
    batch = _check_frame(records, config)
    _check_header(batch)
    return _conform(batch, config, now_ms, is_of_client=True)


def validate_internal_batch(records: memoryview, config: LogConfig, now_ms: int) -> ValidBatch:
    """Return a batch of the broker's own as it is to be appended. Control batches are not touched."""
    batch = BatchView(records)
    if batch.is_control:
        return ValidBatch(records, NO_TIMESTAMP)
    return _conform(batch, config, now_ms, is_of_client=False)


def _check_frame(records: memoryview, config: LogConfig) -> BatchView:
    """Check that there is exactly one batch of format 2, whole, and that its bytes arrived unharmed."""
    if len(records) < LOG_OVERHEAD:
        raise _invalid("the records must be exactly one batch, and there is none")
    length = int.from_bytes(records[8:12], signed=True)
    if length < _SMALLEST_MESSAGE:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, f"a batch cannot have a length of {length}")
    if length + LOG_OVERHEAD > len(records):
        raise _invalid("the records must be exactly one batch, and it is cut off")
    magic = records[16]
    if magic > MAGIC:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, f"a batch cannot have magic {magic}")
    if magic < MAGIC:
        raise _invalid(f"format {magic} is not written any more: batches must have magic {MAGIC}")
    if length + LOG_OVERHEAD < HEADER_BYTES:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, f"a batch cannot have a length of {length}")
    if length + LOG_OVERHEAD < len(records):
        raise _invalid("the records must be exactly one batch, and there is more")
    batch = BatchView(records)
    if batch.base_offset != 0:
        raise _invalid(f"the base offset must be 0, not {batch.base_offset}")
    if len(records) > config.max_message_bytes:
        raise _too_large(len(records), config)
    if not batch.crc_is_valid():
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, f"the checksum {batch.crc} of the batch does not match")
    return batch


def _check_header(batch: BatchView) -> None:
    header = batch.header
    if header.count <= 0 or header.count != header.last_offset_delta + 1:
        raise _invalid(
            f"{header.count} records cannot have a last offset delta of {header.last_offset_delta}"
        )
    if header.is_control:
        raise _invalid("clients are not allowed to write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid(f"producer {header.producer_id} must give a sequence, not {header.base_sequence}")
    if header.attributes & CODEC_MASK > CODEC_ID_MAX:
        raise _invalid(f"unknown compression codec {header.attributes & CODEC_MASK}")
    area_bytes = len(batch.view) - HEADER_BYTES
    if not have_room(header.count, area_bytes, header.attributes & CODEC_MASK):
        raise _invalid(f"{header.count} records cannot be in {area_bytes} bytes")


def _conform(batch: BatchView, config: LogConfig, now_ms: int, is_of_client: bool) -> ValidBatch:
    """Check the records as far as the topic's settings ask for it, and make them what it wants."""
    header = batch.header
    sets_time = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    if sets_time and header.attributes & APPEND_TIME_BIT:
        raise AppendError(
            ErrorCode.INVALID_TIMESTAMP,
            "the timestamps of this topic are set on append, and the batch says they are set already",
        )
    target = header.codec if config.compression_type is None else config.compression_type
    changes_codec = target is not header.codec
    must_open = (
        changes_codec
        or config.is_compacted
        or (is_of_client and config.records_validation is RecordsValidation.RECORDS)
        or (is_of_client and not seem_sound(batch.view, header.count, header.codec, config.looks_at_records))
        or (not sets_time and _timestamps_are_in_doubt(batch, config, now_ms))
    )
    if must_open:
        opened = _open(batch, config)
        max_timestamp = _check_records(batch, opened, config, now_ms, sets_time)
        if changes_codec:
            batch = _recompress(batch, opened, target, config)
        if not sets_time:
            _set_create_time(batch, max_timestamp)
    if sets_time:
        batch.patch_append_time(now_ms)
    return ValidBatch(batch.view, now_ms if sets_time else NO_TIMESTAMP)


def _timestamps_are_in_doubt(batch: BatchView, config: LogConfig, now_ms: int) -> bool:
    # librdkafka gives records without a timestamp a largest one of 0. Retention would go by that, and drop
    # them at once; Kafka goes by the records, which have none, and then by when the file was modified.
    return (
        not 0 <= batch.header.base_timestamp <= batch.max_timestamp
        or config.message_timestamp_before_max_ms != LONG_MAX
        or batch.max_timestamp > now_ms + config.message_timestamp_after_max_ms
        or batch.attributes & APPEND_TIME_BIT != 0
    )


def _open(batch: BatchView, config: LogConfig) -> bytes:
    """Return the records uncompressed, within the bound for what strangers may make us unpack."""
    try:
        limits = DecompressionLimits(bytes_max=config.decompressed_bytes_max)
        return decompress(batch.codec, batch.records_bytes, limits)
    except DecompressionTooLarge as error:
        raise AppendError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except (CorruptCompression, CorruptBatch) as error:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def _check_records(batch: BatchView, opened: bytes, config: LogConfig, now_ms: int, sets_time: bool) -> int:
    """Check every record, and return their largest timestamp."""
    header = batch.header
    base_timestamp = header.base_timestamp
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    needs_key = config.is_compacted
    checked = check_numbered(opened, len(opened), header.count, header.count)
    if (
        checked is not None
        and (checked.have_keys or not needs_key)
        and (sets_time or earliest <= base_timestamp + checked.earliest_delta)
        and (sets_time or base_timestamp + checked.latest_delta <= latest)
    ):
        return max(base_timestamp + checked.latest_delta, NO_TIMESTAMP)
    # Something is wrong, or there is a record without a timestamp: find out which.
    max_timestamp = NO_TIMESTAMP
    errors: list[RecordError] = []
    code = ErrorCode.INVALID_RECORD
    try:
        for index, (offset_delta, timestamp_delta, has_key, _) in enumerate(
            scan_records(opened, header.count)
        ):
            timestamp = base_timestamp + timestamp_delta
            if timestamp > max_timestamp:
                max_timestamp = timestamp
            if offset_delta != index:
                raise _invalid(f"record {index} has offset delta {offset_delta}")
            if needs_key and not has_key:
                _add(errors, index, "a compacted topic takes no record without a key")
            elif not sets_time and timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
                code = ErrorCode.INVALID_TIMESTAMP
                _add(errors, index, f"timestamp {timestamp} is not within {earliest} to {latest}")
    except InvalidRecord as error:
        raise _invalid(str(error)) from error
    except RecordsError as error:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if errors:
        why = " due to invalid timestamp" if code is ErrorCode.INVALID_TIMESTAMP else ""
        raise AppendError(code, f"One or more records have been rejected{why}", tuple(errors))
    return max_timestamp


def _add(errors: list[RecordError], index: int, message: str) -> None:
    # A batch of a million bad records must not become an answer of a hundred megabytes.
    if len(errors) < _RECORD_ERRORS_MAX:
        errors.append(RecordError(index, message))


def _recompress(batch: BatchView, opened: bytes, target: Codec, config: LogConfig) -> BatchView:
    """Return the batch with its records under another codec."""
    body = compress(target, opened, config.compression_level_of(target))
    view = memoryview(bytearray(HEADER_BYTES + len(body)))
    view[:HEADER_BYTES] = batch.view[:HEADER_BYTES]
    view[HEADER_BYTES:] = body
    view[8:12] = (len(view) - LOG_OVERHEAD).to_bytes(4)
    attributes = batch.attributes & ~CODEC_MASK | target
    view[21:23] = attributes.to_bytes(2, signed=True)
    if len(view) > config.max_message_bytes:
        raise _too_large(len(view), config)
    rebuilt = BatchView(view)
    rebuilt.patch_max_timestamp(batch.max_timestamp)
    return rebuilt


def _set_create_time(batch: BatchView, max_timestamp: int) -> None:
    """Let the records have their own timestamps, and the header the largest of them."""
    if batch.attributes & APPEND_TIME_BIT:
        batch.clear_append_time(max_timestamp)
    elif batch.max_timestamp != max_timestamp:
        batch.patch_max_timestamp(max_timestamp)


def _invalid(message: str) -> AppendError:
    return AppendError(ErrorCode.INVALID_RECORD, message)


def _too_large(size_bytes: int, config: LogConfig) -> AppendError:
    return AppendError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a batch of {size_bytes} bytes is larger than max.message.bytes, {config.max_message_bytes}",
    )
