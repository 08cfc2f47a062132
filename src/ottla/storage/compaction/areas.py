"""The records of a batch as compaction looks at them: decompressed if need be, and scanned for keys."""

from typing import NamedTuple

from ottla.records.attributes import CODEC_MASK, codec_of
from ottla.records.batch import HEADER_BYTES
from ottla.records.compression import DecompressionLimits, decompress
from ottla.records.control import ControlType, decode_control_type
from ottla.storage.compaction.keys import ScannedRecords, scan_keys, scan_starts
from ottla.storage.compaction.source import PlacedBatch


class ScannedBatch(NamedTuple):
    """The records of a batch, and the bytes that they were scanned from."""

    area: bytes
    records: ScannedRecords


def scan_placed_batch(data: bytes, batch: PlacedBatch, limits: DecompressionLimits) -> ScannedBatch:
    """Scan the records of a batch. Uncompressed ones are scanned where they are, within the chunk."""
    area, start, end = _open_area(data, batch, limits)
    return ScannedBatch(area, scan_keys(area, start, end, batch.header.count))


def find_starts(data: bytes, batch: PlacedBatch, limits: DecompressionLimits) -> tuple[bytes, list[int]]:
    """Return where the records of a batch start that was scanned before, and the bytes that they start in."""
    area, start, end = _open_area(data, batch, limits)
    return area, scan_starts(area, start, end, batch.header.count)


def _open_area(data: bytes, batch: PlacedBatch, limits: DecompressionLimits) -> tuple[bytes, int, int]:
    """Return bytes that the records of a batch are in, and from where to where."""
    header, start, end = batch
    start += HEADER_BYTES
    attributes = header.attributes
    if attributes & CODEC_MASK and header.count:
        area = decompress(codec_of(attributes), memoryview(data)[start:end], limits)
        return area, 0, len(area)
    return data, start, end


def find_control_type(data: bytes, batch: PlacedBatch) -> ControlType | None:
    """Return what a control batch says, or None if its record is gone. Control batches have no codec."""
    keys = scan_keys(data, batch.start + HEADER_BYTES, batch.end, batch.header.count).keys
    return decode_control_type(keys[0]) if keys else None
