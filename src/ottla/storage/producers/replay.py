"""From a batch in the log to the state of its producer: the same while serving, recovering and loading."""

from ottla.model.ids import Offset, ProducerId
from ottla.records.batch import BatchHeader, BatchView
from ottla.records.control import ControlType, decode_end_txn_marker, find_control_record
from ottla.records.errors import RecordsError
from ottla.storage.indexes.transaction_index import AbortedTransaction
from ottla.storage.producers.producer_state import CompletedTransaction, ProducerState


def replay_batch(state: ProducerState, header: BatchHeader, view: memoryview) -> CompletedTransaction | None:
    """Let the state take notice of a batch with a producer id. Returns the transaction it ended."""
    producer_id = ProducerId(header.producer_id)
    if header.is_control:
        return _replay_marker(state, header, view)
    state.note_batch(
        producer_id,
        header.producer_epoch,
        header.last_sequence,
        Offset(header.base_offset),
        Offset(header.last_offset),
        header.max_timestamp,
        header.is_transactional,
    )
    return None


def _replay_marker(
    state: ProducerState, header: BatchHeader, view: memoryview
) -> CompletedTransaction | None:
    try:
        record = find_control_record(BatchView(view))
        if record is None:
            # What compaction leaves of the last marker of a producer that has no data left.
            state.note_epoch(ProducerId(header.producer_id), header.producer_epoch, header.max_timestamp)
            return None
        marker = decode_end_txn_marker(record)
    except RecordsError:
        # A control batch of another kind, or of a later version: it ends no transaction.
        return None
    return state.note_marker(
        ProducerId(header.producer_id),
        header.producer_epoch,
        marker.coordinator_epoch,
        Offset(header.base_offset),
        header.max_timestamp,
        marker.control_type is ControlType.ABORT,
    )


def aborted_transaction_of(completed: CompletedTransaction) -> AbortedTransaction:
    """Return the index entry of a transaction that was aborted."""
    return AbortedTransaction(
        completed.producer_id, completed.first_offset, completed.last_offset, completed.last_stable_offset
    )
