"""Cleaning messages of format 0 and 1. What stays of them becomes batches of format 2, as in Kafka."""

from ottla.records.attributes import TimestampType
from ottla.records.batch import LegacyBatchView
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.compression import DecompressionLimits
from ottla.storage.compaction.keys import digest_key
from ottla.storage.compaction.rules import Rules


def clean_message(
    message: LegacyBatchView, rules: Rules, limits: DecompressionLimits, *, keep_tombstones: bool
) -> tuple[int, list[Record]]:
    """Return how many records a message is or wraps, and those of them that stay."""
    records = list(iter_batch_records(message, limits))
    return len(records), [record for record in records if _stays(record, rules, keep_tombstones)]


def _stays(record: Record, rules: Rules, keep_tombstones: bool) -> bool:
    offset_map = rules.offset_map
    if record.offset > offset_map.latest_offset:
        return True
    if record.key is None or (record.value is None and not keep_tombstones):
        return False
    return record.offset >= offset_map.offsets.get(digest_key(record.key), -1)


def convert_message(message: LegacyBatchView, kept: list[Record], rules: Rules) -> bytearray:
    """Return a batch of format 2 of the records that stay. Format 0 has no timestamps, nor gets any."""
    has_tombstone = any(record.value is None for record in kept)
    is_append_time = message.timestamp_type is TimestampType.LOG_APPEND_TIME
    return build_batch(
        kept,
        base_offset=kept[0].offset,
        codec=message.codec,
        append_time=message.max_timestamp if is_append_time else None,
        delete_horizon_ms=rules.now_ms + rules.delete_retention_ms if has_tombstone else None,
    )
