"""From a batch to its records, whatever its format and codec.

Two views of time: readers of a topic with LogAppendTime see one timestamp for the whole batch. Whoever writes
the records again (compaction, recompression) needs those they were made with, which are still in there.
"""

from collections.abc import Iterator

from ottla.records.attributes import APPEND_TIME_BIT
from ottla.records.batch import BatchView, LegacyBatchView
from ottla.records.codec import Record, ScannedRecord, iter_records, scan_records
from ottla.records.compression import DEFAULT_LIMITS, DecompressionLimits, decompress
from ottla.records.legacy import iter_legacy_records


def iter_batch_records(
    batch: BatchView, limits: DecompressionLimits = DEFAULT_LIMITS, *, original_timestamps: bool = False
) -> Iterator[Record]:
    """Decompress a batch and decode its records one by one. The checksum is the caller's to check."""
    if isinstance(batch, LegacyBatchView):
        return iter_legacy_records(batch, limits)
    header = batch.header
    area = decompress(header.codec, batch.records_bytes, limits)
    append_time = None
    if header.attributes & APPEND_TIME_BIT and not original_timestamps:
        append_time = header.max_timestamp
    return iter_records(area, header.count, header.base_offset, header.base_timestamp, append_time)


def scan_batch(batch: BatchView, limits: DecompressionLimits = DEFAULT_LIMITS) -> Iterator[ScannedRecord]:
    """Decompress a batch of format 2 and check its records one by one, without making objects of them."""
    header = batch.header
    return scan_records(decompress(header.codec, batch.records_bytes, limits), header.count)
