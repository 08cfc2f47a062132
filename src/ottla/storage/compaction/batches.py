"""Cleaning one batch after the other: from the bytes of a batch to the bytes that stay of it."""

from typing import NamedTuple

from ottla.records.batch import HEADER, BatchHeader
from ottla.records.builder import empty_batch
from ottla.records.compression import DecompressionLimits
from ottla.storage.compaction.areas import find_control_type, find_starts, scan_placed_batch
from ottla.storage.compaction.cleaned_segment import WrittenBatch
from ottla.storage.compaction.keys import ScannedRecords
from ottla.storage.compaction.legacy import clean_message, convert_message
from ottla.storage.compaction.rewrite import rewrite_batch
from ottla.storage.compaction.rules import (
    Rules,
    decide_batch,
    decide_judged,
    decide_records,
    find_new_horizon,
)
from ottla.storage.compaction.source import PlacedBatch, PlacedMessage, SourceSegment
from ottla.storage.compaction.transactions import CleanedTransactions


class Kept(NamedTuple):
    """A batch that stays. Without `data` it stays byte for byte."""

    batch: WrittenBatch
    data: bytearray | None = None


class BatchCleaner:
    """Cleans the batches of a log in order, across its segments."""

    def __init__(self, rules: Rules, transactions: CleanedTransactions, limits: DecompressionLimits) -> None:
        self.transactions = transactions
        self.read_records = 0
        self.kept_records = 0
        self._rules = rules
        self._limits = limits

    def clean(self, data: bytes, batch: PlacedBatch | PlacedMessage, segment: SourceSegment) -> Kept | None:
        """Return what stays of a batch within `data`, or None if all of it goes."""
        if isinstance(batch, PlacedMessage):
            return self._clean_message(batch, segment)
        header = batch.header
        control_type = find_control_type(data, batch) if header.is_control else None
        fate = decide_batch(header, self.transactions, self._rules, control_type)
        self.read_records += header.count
        if fate.discard_records:
            return _kept(empty_batch(header)) if fate.keep_empty else None
        if header.base_offset in self._rules.offset_map.judged:
            return self._clean_judged(data, batch, keep_empty=fate.keep_empty)
        area, records = scan_placed_batch(data, batch, self._limits)
        kept = self._decide_records(header, records)
        self.kept_records += len(kept)
        if not kept:
            return _kept(empty_batch(header)) if fate.keep_empty else None
        horizon_ms = find_new_horizon(header, records, kept, fate, self._rules)
        if horizon_ms is None:
            if len(kept) == header.count:
                return _unchanged(batch)
            horizon_ms = header.delete_horizon_ms
        return _kept(rewrite_batch(header, area, records.starts, kept, horizon_ms))

    def _clean_judged(self, data: bytes, batch: PlacedBatch, *, keep_empty: bool) -> Kept | None:
        """Clean a batch that has no tombstones, by the offsets of its records."""
        header = batch.header
        kept = decide_judged(header, self._rules)
        self.kept_records += len(kept)
        if not kept:
            return _kept(empty_batch(header)) if keep_empty else None
        if len(kept) == header.count:
            return _unchanged(batch)
        area, starts = find_starts(data, batch, self._limits)
        return _kept(rewrite_batch(header, area, starts, kept, header.delete_horizon_ms))

    def _decide_records(self, header: BatchHeader, records: ScannedRecords) -> list[int]:
        if header.is_control:
            return list(range(header.count))
        return decide_records(header, records, self._rules)

    def _clean_message(self, batch: PlacedMessage, segment: SourceSegment) -> Kept | None:
        rules = self._rules
        keep_tombstones = segment.modified_ms > rules.legacy_horizon_ms
        read_records, kept = clean_message(
            batch.message, rules, self._limits, keep_tombstones=keep_tombstones
        )
        self.read_records += read_records
        self.kept_records += len(kept)
        return _kept(convert_message(batch.message, kept, rules)) if kept else None


def _unchanged(batch: PlacedBatch) -> Kept:
    header = batch.header
    return Kept(WrittenBatch(batch.end - batch.start, header.last_offset, header.max_timestamp))


def _kept(data: bytearray) -> Kept:
    header = BatchHeader._make(HEADER.unpack_from(data))
    return Kept(WrittenBatch(len(data), header.last_offset, header.max_timestamp), data)
