"""Filling the offset map from the dirty part of a log.

Control batches and the batches of aborted transactions tell nothing about keys: an aborted record must not
displace the committed one before it.
"""

from ottla.model.ids import Offset, ProducerId
from ottla.records.batch_records import iter_batch_records
from ottla.records.compression import DecompressionLimits
from ottla.storage.compaction.areas import find_control_type, scan_placed_batch
from ottla.storage.compaction.keys import digest_key
from ottla.storage.compaction.offset_map import OffsetMap
from ottla.storage.compaction.rules import meet_control_batch
from ottla.storage.compaction.source import Chunk, PlacedBatch, PlacedMessage
from ottla.storage.compaction.transactions import CleanedTransactions


class MapFiller:
    """Adds the keys of one chunk after the other, from the first dirty offset on."""

    def __init__(
        self,
        offset_map: OffsetMap,
        first_dirty_offset: Offset,
        transactions: CleanedTransactions,
        limits: DecompressionLimits,
    ) -> None:
        self._map = offset_map
        self._first_dirty_offset = first_dirty_offset
        self._transactions = transactions
        self._limits = limits

    def add(self, chunk: Chunk) -> bool:
        """Add the keys of a chunk. Returns False once the map is full."""
        for batch in chunk.batches:
            if isinstance(batch, PlacedMessage):
                if not self._add_message(batch):
                    return False
                last_offset = batch.message.last_offset
            else:
                if not self._add_batch(chunk.data, batch):
                    return False
                last_offset = batch.header.last_offset
            self._map.advance(last_offset)
        return True

    def _add_batch(self, data: bytes, batch: PlacedBatch) -> bool:
        header = batch.header
        if header.is_control:
            meet_control_batch(header, self._transactions, find_control_type(data, batch))
            return True
        if self._transactions.is_aborted(
            Offset(header.last_offset),
            ProducerId(header.producer_id),
            is_transactional=header.is_transactional,
        ):
            return True
        records = scan_placed_batch(data, batch, self._limits).records
        keys, base_offset = records.keys, header.base_offset
        if base_offset >= self._first_dirty_offset and records.have_offsets_and_values_throughout():
            if not self._map.put_all(keys, range(base_offset, base_offset + len(keys))):
                return False
            self._map.judge(base_offset)
            return True
        offsets = [base_offset + delta for delta in records.offset_deltas]
        if base_offset < self._first_dirty_offset:
            clean = sum(offset < self._first_dirty_offset for offset in offsets)
            keys, offsets = keys[clean:], offsets[clean:]
        return self._map.put_all(keys, offsets)

    def _add_message(self, batch: PlacedMessage) -> bool:
        keys: list[bytes | None] = []
        offsets: list[int] = []
        for record in iter_batch_records(batch.message, self._limits):
            if record.key is not None and record.offset >= self._first_dirty_offset:
                keys.append(digest_key(record.key))
                offsets.append(record.offset)
        return self._map.put_all(keys, offsets)
