"""From a batch to its records, whatever its format and codec.

In a batch with LogAppendTime all records have the batch's timestamp. Those they were made with are still in
there, but nobody sees them: Kafka's compaction writes such records with the time of their append.

Deviation: Kafka decompresses only until it has the declared number of records, so it reads batches whose
compressed area is damaged after that. Here all of it must be sound.
"""

from collections.abc import Iterator

from ottla.records.attributes import APPEND_TIME_BIT, CODEC_MASK, Codec
from ottla.records.batch import BatchHeader, BatchView, LegacyBatchView
from ottla.records.codec import Record, RecordTuple, iter_record_tuples, iter_records
from ottla.records.compression import DEFAULT_LIMITS, DecompressionLimits, decompress
from ottla.records.legacy import iter_legacy_records


def iter_batch_records(batch: BatchView, limits: DecompressionLimits = DEFAULT_LIMITS) -> Iterator[Record]:
    """Decompress a batch and decode its records one by one. The checksum is the caller's to check."""
    if isinstance(batch, LegacyBatchView):
        return iter_legacy_records(batch, limits)
    return iter_records(*_opened(batch.header, batch.records_bytes, limits))


def iter_batch_record_tuples(
    batch: BatchView, limits: DecompressionLimits = DEFAULT_LIMITS, header: BatchHeader | None = None
) -> Iterator[RecordTuple]:
    """Do the same with plain tuples instead of records, which is a third faster.

    A caller that has unpacked the header already may pass it.
    """
    if isinstance(batch, LegacyBatchView):
        return iter_legacy_records(batch, limits)
    return iter_record_tuples(*_opened(header or batch.header, batch.records_bytes, limits))


def _opened(
    header: BatchHeader, records_bytes: memoryview, limits: DecompressionLimits
) -> tuple[bytes, int, int, int, int | None]:
    """Return the decompressed record area and what decoding it takes."""
    append_time = header.max_timestamp if header.attributes & APPEND_TIME_BIT else None
    if header.count == 0:
        # Nobody looks at the record area then, as in Kafka.
        area = b""
    elif header.attributes & CODEC_MASK == Codec.NONE:
        area = bytes(records_bytes)
    else:
        area = decompress(header.codec, records_bytes, limits)
    return area, header.count, header.base_offset, header.base_timestamp, append_time
