"""From a batch to its records, whatever its format and codec.

In a batch with LogAppendTime all records have the batch's timestamp. Those they were made with are still in
there, but nobody sees them: Kafka's compaction writes such records with the time of their append.

Deviation: Kafka decompresses only until it has the declared number of records, so it reads batches whose
compressed area is damaged after that. Here all of it must be sound.
"""

from collections.abc import Iterator

from ottla.records.attributes import APPEND_TIME_BIT
from ottla.records.batch import BatchView, LegacyBatchView
from ottla.records.codec import Record, ScannedRecord, iter_records, scan_records
from ottla.records.compression import DEFAULT_LIMITS, DecompressionLimits, decompress
from ottla.records.legacy import iter_legacy_records


def iter_batch_records(batch: BatchView, limits: DecompressionLimits = DEFAULT_LIMITS) -> Iterator[Record]:
    """Decompress a batch and decode its records one by one. The checksum is the caller's to check."""
    if isinstance(batch, LegacyBatchView):
        return iter_legacy_records(batch, limits)
    header = batch.header
    if header.count == 0:
        # Then nobody looks at the record area, as in Kafka. There is none in a batch that compaction emptied.
        return iter(())
    area = decompress(header.codec, batch.records_bytes, limits)
    append_time = header.max_timestamp if header.attributes & APPEND_TIME_BIT else None
    return iter_records(area, header.count, header.base_offset, header.base_timestamp, append_time)


def scan_batch(batch: BatchView, limits: DecompressionLimits = DEFAULT_LIMITS) -> Iterator[ScannedRecord]:
    """Decompress a batch of format 2 and check its records one by one, without making objects of them."""
    header = batch.header
    if header.count == 0:
        return iter(())
    return scan_records(decompress(header.codec, batch.records_bytes, limits), header.count)
