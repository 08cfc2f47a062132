"""A single batch rewritten by the code that compaction uses, without a log around it."""

from collections.abc import Collection

from ottla.records.batch import BatchView
from ottla.records.compression import DEFAULT_LIMITS
from ottla.storage.compaction.areas import scan_placed_batch
from ottla.storage.compaction.rewrite import rewrite_batch
from ottla.storage.compaction.source import PlacedBatch


def rewrite(batch: BatchView, kept: Collection[int], delete_horizon_ms: int | None = None) -> bytearray:
    """Return the batch with only the records of the offsets `kept`, and perhaps with a first delete horizon.

    A horizon that the batch has already is not moved: `BatchCleaner` asks for that.
    """
    header = batch.header
    data = bytes(batch.view)
    area, records = scan_placed_batch(data, PlacedBatch(header, 0, len(data)), DEFAULT_LIMITS)
    indexes = [
        index for index, delta in enumerate(records.offset_deltas) if header.base_offset + delta in kept
    ]
    horizon_ms = delete_horizon_ms if header.delete_horizon_ms is None else header.delete_horizon_ms
    return rewrite_batch(header, area, records.starts, indexes, horizon_ms)
