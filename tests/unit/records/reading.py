"""What many tests ask of batches and records, in one call each."""

from collections.abc import Iterator

from ottla.records.batch import BatchHeader, BatchView
from ottla.records.codec import Record, ScannedRecord, iter_records, scan_records
from ottla.records.compression import DEFAULT_LIMITS, DecompressionLimits, decompress


def header_of(batch: bytes | bytearray) -> BatchHeader:
    """Return the header of a batch of format 2."""
    return BatchView(memoryview(batch)).header


def decode_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None = None
) -> list[Record]:
    """Decode all records of a record area."""
    return list(iter_records(data, count, base_offset, base_timestamp, append_time))


def scan_batch(batch: BatchView, limits: DecompressionLimits = DEFAULT_LIMITS) -> Iterator[ScannedRecord]:
    """Decompress a batch of format 2 and scan its records. That of a batch without any is not looked at."""
    header = batch.header
    area = decompress(header.codec, batch.records_bytes, limits) if header.count else b""
    return scan_records(area, header.count)
