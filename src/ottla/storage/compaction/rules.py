"""What stays of a batch: the rules of compaction, without any reading or writing.

    batch of data   aborted transaction     all records go
                    otherwise               a record stays if it is the newest of its key and has a value, or
                                            is a tombstone whose delete horizon has not passed; records above
                                            what the offset map covers stay; records without a key go
    control batch   its transaction has     stays
                    data left
                    otherwise               stays until its delete horizon has passed

A batch without records goes, unless it holds what must not be forgotten: the sequence numbers of an active
producer, the epoch of an active producer that has only markers left, or the last offset of the round, without
which the end of the cleaned part could move.

A tombstone or a marker without data gets its delete horizon (now + `delete.retention.ms`) when it is first
met: readers that are slower than that may miss it (KIP-534).

Deviation: Kafka keeps the newest batch of an active producer only. Ottla keeps the last five, as many as a
producer may have on the way. A replica that builds its producer state from the compacted log then knows a
retry of any of them; with the newest alone it would refuse the retry as out of order.
"""

from collections.abc import Iterable, Mapping
from itertools import compress, count, repeat
from operator import ge
from typing import NamedTuple

from ottla.model.ids import Offset, ProducerId
from ottla.records.batch import BatchHeader
from ottla.records.control import ControlType
from ottla.storage.compaction.keys import ScannedRecords
from ottla.storage.compaction.offset_map import OffsetMap
from ottla.storage.compaction.transactions import CleanedTransactions


class ActiveProducer(NamedTuple):
    """A producer that may still retry: its epoch and the last offsets of its newest batches of data."""

    epoch: int
    batch_last_offsets: frozenset[int]


class Rules(NamedTuple):
    """What one round of cleaning goes by. Nothing of it changes while the round lasts."""

    offset_map: OffsetMap
    active_producers: Mapping[ProducerId, ActiveProducer]
    # Where the round ends. The batch before it is kept, if only as a header.
    end_offset: Offset
    now_ms: int
    delete_retention_ms: int
    # Messages of the old formats have no delete horizon. Their tombstones go by when the file was modified.
    legacy_horizon_ms: int


class BatchFate(NamedTuple):
    """What becomes of a batch before its records are looked at."""

    discard_records: bool
    keep_empty: bool
    # A control batch whose transaction has no data left. It gets a delete horizon if it has none.
    ends_empty_transaction: bool


def decide_batch(
    header: BatchHeader,
    transactions: CleanedTransactions,
    rules: Rules,
    control_type: ControlType | None,
) -> BatchFate:
    """Decide about a batch as a whole. `control_type` is what a control batch says, None if it is empty."""
    if header.is_control:
        ends_empty = meet_control_batch(header, transactions, control_type)
        discard = ends_empty and horizon_has_passed(header, rules)
    else:
        ends_empty = False
        discard = transactions.is_aborted(
            Offset(header.last_offset),
            ProducerId(header.producer_id),
            is_transactional=header.is_transactional,
        )
    return BatchFate(discard, _keeps_empty(header, rules), ends_empty)


def meet_control_batch(
    header: BatchHeader, transactions: CleanedTransactions, control_type: ControlType | None
) -> bool:
    """Follow a control batch. Says whether it ends a transaction of which there is no data."""
    last_offset, producer_id = Offset(header.last_offset), ProducerId(header.producer_id)
    if control_type is None:
        # Its record went in an earlier round.
        return True
    if control_type is ControlType.ABORT:
        return transactions.abort_is_without_data(last_offset, producer_id)
    if control_type is ControlType.COMMIT:
        return transactions.commit_is_without_data(last_offset, producer_id)
    return False


def _keeps_empty(header: BatchHeader, rules: Rules) -> bool:
    if header.next_offset == rules.end_offset:
        return True
    if header.producer_id < 0:
        return False
    producer = rules.active_producers.get(ProducerId(header.producer_id))
    if producer is None:
        return False
    if producer.batch_last_offsets:
        return header.last_offset in producer.batch_last_offsets
    return header.is_control and header.producer_epoch == producer.epoch


def decide_judged(header: BatchHeader, rules: Rules) -> list[int]:
    """Return the indexes of the records that stay of a batch that was judged when the map was filled."""
    offsets = range(header.base_offset, header.base_offset + header.count)
    return list(compress(count(), map(rules.offset_map.newest.__contains__, offsets)))


def decide_records(header: BatchHeader, scanned: ScannedRecords, rules: Rules) -> list[int]:
    """Return the indexes of the records of a batch of data that stay."""
    offset_map = rules.offset_map
    base_offset = header.base_offset
    offsets = [base_offset + delta for delta in scanned.offset_deltas]
    # Without a step of the interpreter for each record: it takes 0.2 us here, and 0.5 us in a loop.
    newest: Iterable[int] = map(offset_map.offsets.get, scanned.keys, repeat(-1))
    kept = list(compress(count(), map(ge, offsets, newest)))
    dropped: set[int] = set()
    if scanned.has_null_key:
        dropped.update(index for index, key in enumerate(scanned.keys) if key is None)
    if scanned.tombstones and horizon_has_passed(header, rules):
        dropped.update(scanned.tombstones)
    if dropped:
        # What lies above the offset map is not judged.
        latest_offset = offset_map.latest_offset
        kept = [index for index in kept if index not in dropped or offsets[index] > latest_offset]
    return kept


def horizon_has_passed(header: BatchHeader, rules: Rules) -> bool:
    """Say whether the tombstones or the marker of a batch may go."""
    horizon_ms = header.delete_horizon_ms
    return horizon_ms is not None and horizon_ms <= rules.now_ms


def find_new_horizon(
    header: BatchHeader, scanned: ScannedRecords, kept: list[int], fate: BatchFate, rules: Rules
) -> int | None:
    """Return the delete horizon that the batch has to be given now, or None if it has one or needs none."""
    if header.has_delete_horizon:
        return None
    has_tombstone = bool(scanned.tombstones) and not set(scanned.tombstones).isdisjoint(kept)
    if has_tombstone or fate.ends_empty_transaction:
        return rules.now_ms + rules.delete_retention_ms
    return None
