"""Bugs in what nodes keep beside the records: producers, transactions, epochs, indexes, offsets."""

from typing import Final

from tests.simulation.planting import Bug

from ottla.broker.coordinators.markers import MarkerWriter
from ottla.broker.logs.leading import Leading
from ottla.broker.replication.fetcher import Fetcher
from ottla.coordination.group.offsets.committed_offsets import CommittedOffsets
from ottla.coordination.runtime.shard import Shard
from ottla.coordination.transaction import decide
from ottla.quorum.controller.producer_ids import decide_allocate_producer_ids
from ottla.storage import read
from ottla.storage.appending import append, write_batches
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.producers.producer_state import ProducerState
from ottla.storage.segment import Segment

STATE_BUGS: Final[dict[str, Bug]] = {
    # What is committed.
    "high-watermark-one-too-far": Bug(
        "the high watermark is one ahead of the slowest follower",
        Leading.maybe_advance,
        "new = Offset(follower.log_end_offset)",
        "new = Offset(follower.log_end_offset + 1)",
    ),
    "high-watermark-without-the-last": Bug(
        "the slowest follower does not count",
        Leading.maybe_advance,
        "for follower in self.followers.values():",
        "for follower in list(self.followers.values())[1:]:",
    ),
    "follower-keeps-no-high-watermark": Bug(
        "a follower does not take over the high watermark",
        Fetcher._take_records,
        "log.update_high_watermark(high_watermark)",
        "pass",
    ),
    # Producers and transactions in a log.
    "marker-ends-nothing": Bug(
        "a transaction stays open after its marker",
        ProducerState.note_marker,
        "producer.transaction_first_offset = NO_OFFSET",
        "pass",
    ),
    "marker-keeps-holding-back": Bug(
        "an ended transaction holds back the last stable offset",
        ProducerState.note_marker,
        "del self._open[first_offset]",
        "pass",
    ),
    "marker-is-stable-at-once": Bug(
        "an ended transaction is stable before its marker is on all replicas",
        ProducerState.note_marker,
        "self.unreplicated[first_offset] = offset",
        "pass",
    ),
    "window-of-two-epochs": Bug(
        "batches of the last epoch are taken for those of the next",
        ProducerState.note_batch,
        "producer.batches.clear()",
        "pass",
    ),
    "transaction-begins-with-each-batch": Bug(
        "each batch of a transaction begins another one",
        ProducerState.note_batch,
        "if is_transactional and producer.transaction_first_offset < 0:",
        "if is_transactional:",
    ),
    "transactions-do-not-hold-back": Bug(
        "a follower does not see that a transaction is open",
        ProducerState.note_batch,
        "self._open[base_offset] = producer_id",
        "pass",
    ),
    "aborted-is-not-noted": Bug(
        "an aborted transaction is not written to the index",
        write_batches._note,
        "if completed is not None and completed.is_aborted:",
        "if False:",
    ),
    "committed-is-noted-as-aborted": Bug(
        "a committed transaction is written to the index of aborted ones",
        write_batches._note,
        "if completed is not None and completed.is_aborted:",
        "if completed is not None:",
    ),
    "readers-are-not-told-of-aborts": Bug(
        "a reader is not told which transactions were aborted",
        read._find_aborted,
        "return tuple(found)",
        "return ()",
    ),
    # Epochs and indexes.
    "batches-of-epoch-zero": Bug(
        "a leader writes epoch 0 into its batches",
        append.append_as_leader,
        "_ASSIGNED.pack_into(records, 0, first_offset, length, leader_epoch)",
        "_ASSIGNED.pack_into(records, 0, first_offset, length, 0)",
    ),
    "follower-notes-no-epoch": Bug(
        "a follower does not see where a new epoch begins",
        write_batches._note,
        "if header.leader_epoch >= 0 and header.leader_epoch != log.leader_epochs.latest:",
        "if False:",
    ),
    "index-points-behind": Bug(
        "an entry of the offset index points to the batch after",
        Segment.note_batch,
        "self._add_index_entries(position, last_offset)",
        "self._add_index_entries(position + size_bytes, last_offset)",
    ),
    "offset-look-up-too-far": Bug(
        "the offset index is searched for an entry after an offset, not before",
        OffsetIndex.find_scan_position,
        "return self._entry_at(low - 1)",
        "return self._entry_at(min(low, len(self) - 1))",
    ),
    "largest-timestamp-stays": Bug(
        "the largest timestamp of a segment is that of its first batch",
        Segment.note_batch,
        "if max_timestamp > self._largest_timestamp:",
        "if self._largest_timestamp < 0:",
    ),
    # Coordinators.
    "second-partition-is-not-added": Bug(
        "only the first partitions of a transaction are remembered",
        decide.decide_add_partitions,
        "if is_ongoing and partitions <= transaction.partitions:",
        "if is_ongoing:",
    ),
    "aborts-what-was-committed": Bug(
        "a commit is carried out as an abort",
        decide.decide_end,
        "status = _S.PREPARE_COMMIT if committed else _S.PREPARE_ABORT",
        "status = _S.PREPARE_ABORT",
    ),
    "one-marker-for-each-leader": Bug(
        "of the markers for one leader only the last is sent",
        MarkerWriter._by_leader,
        "by_leader.setdefault(record.leader, []).append(one)",
        "by_leader[record.leader] = [one]",
    ),
    "markers-of-others-are-forgotten": Bug(
        "markers are written where the coordinator leads, and nowhere else",
        MarkerWriter._by_leader,
        "if record is not None:",
        "if record is not None and record.leader == self._broker.node_id:",
    ),
    "offsets-never-move": Bug(
        "the first offset that a transaction commits stays for ever",
        CommittedOffsets.replay_marker,
        "if known is None or known.place < offset.place:",
        "if known is None:",
    ),
    "loads-no-markers": Bug(
        "a coordinator that is loaded passes over the ends of transactions",
        Shard._replay_batch,
        "self.state.replay_marker(batch.producer, batch.committed)",
        "pass",
    ),
    "loads-the-first-batches-only": Bug(
        "a coordinator passes over batches of several records",
        Shard._replay_batch,
        "self.state.replay(records, batch.producer)",
        "self.state.replay(list(records)[:1], batch.producer)",
    ),
    "producer-ids-twice": Bug(
        "the same producer ids are given to several brokers",
        decide_allocate_producer_ids,
        "next_producer_id=start + BLOCK_SIZE",
        "next_producer_id=start",
    ),
}
