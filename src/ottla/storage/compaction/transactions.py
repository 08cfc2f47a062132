"""Which batches belong to an aborted transaction, and which markers end a transaction without data.

Follows the batches of a log in order, as a reader with read_committed does. An aborted transaction is known
beforehand from the transaction indexes. What a transaction's marker tells depends on whether any batch of the
transaction was met before it: an ABORT marker has to stay as long as there is one, since readers would take
the data for committed without it; a COMMIT marker tells nothing to a reader, but both kinds tell a producer's
epoch and so stay for the delete horizon after the last data is gone (KIP-534).
"""

from collections.abc import Iterable
from heapq import heapify, heappop

from ottla.model.ids import Offset, ProducerId
from ottla.storage.indexes.transaction_index import AbortedTransaction


class CleanedTransactions:
    """The transactions of a log, as far as its batches have been met."""

    __slots__ = ("_aborted", "_pending", "_with_committed_data", "_with_data", "retained")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Start before the first batch, knowing all transactions that will turn out to be aborted."""
        # Begun later than the batches met so far, the earliest first.
        self._pending = [(transaction.first_offset, transaction) for transaction in set(aborted)]
        heapify(self._pending)
        # Begun and not ended, by producer; and those of them of which a batch was met.
        self._aborted: dict[ProducerId, AbortedTransaction] = {}
        self._with_data: set[ProducerId] = set()
        # Producers of which a batch was met that belongs to a transaction which is not aborted.
        self._with_committed_data: set[ProducerId] = set()
        # Aborted transactions whose marker stays, since the last `take_retained`.
        self.retained: list[AbortedTransaction] = []

    def is_aborted(self, last_offset: Offset, producer_id: ProducerId, *, is_transactional: bool) -> bool:
        """Meet a batch of data. Says whether it belongs to an aborted transaction."""
        self._begin_up_to(last_offset)
        if not is_transactional:
            return False
        if producer_id in self._aborted:
            self._with_data.add(producer_id)
            return True
        self._with_committed_data.add(producer_id)
        return False

    def abort_is_without_data(self, last_offset: Offset, producer_id: ProducerId) -> bool:
        """Meet an ABORT marker. Says whether no batch of its transaction was met."""
        self._begin_up_to(last_offset)
        transaction = self._aborted.pop(producer_id, None)
        if transaction is None or producer_id not in self._with_data:
            return True
        self._with_data.discard(producer_id)
        self.retained.append(transaction)
        return False

    def commit_is_without_data(self, last_offset: Offset, producer_id: ProducerId) -> bool:
        """Meet a COMMIT marker. Says whether no batch of its transaction was met."""
        self._begin_up_to(last_offset)
        if producer_id not in self._with_committed_data:
            return True
        self._with_committed_data.discard(producer_id)
        return False

    def take_retained(self) -> list[AbortedTransaction]:
        """Return the entries for the transaction index of the segment that was cleaned last."""
        retained, self.retained = self.retained, []
        return retained

    def _begin_up_to(self, offset: Offset) -> None:
        pending = self._pending
        while pending and pending[0][0] <= offset:
            transaction = heappop(pending)[1]
            self._aborted.setdefault(transaction.producer_id, transaction)
