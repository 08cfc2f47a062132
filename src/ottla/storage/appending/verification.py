"""Proof that a transaction is known to its coordinator, asked for before its first append (KIP-890).

Without it a batch that arrives after its transaction was aborted would open the transaction again, and nobody
would ever end it: the last stable offset would hang. The broker starts a verification, asks the coordinator,
and hands it in with the append. A marker that came in between has removed it, so that it counts no more.
"""

from ottla.model.ids import ProducerId
from ottla.records.batch import BatchHeader
from ottla.storage.errors import AppendError
from ottla.wire.error_code import ErrorCode


class Verification:
    """One that was started. Only the very object counts that the log handed out and still has."""

    __slots__ = ("epoch", "lowest_sequence", "producer_id", "started_ms", "supports_epoch_bump")

    def __init__(
        self, producer_id: ProducerId, epoch: int, sequence: int, supports_epoch_bump: bool, started_ms: int
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.lowest_sequence = sequence
        # The client speaks transactions version 2 (Produce version 12 or later).
        self.supports_epoch_bump = supports_epoch_bump
        self.started_ms = started_ms

    def note_attempt(self, epoch: int, sequence: int) -> None:
        """Take notice of another batch that waits for the same answer."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence

    def check_sequence(self, sequence: int, has_batches: bool) -> None:
        """Refuse a batch that overtook the first one of its transaction."""
        if self.supports_epoch_bump and sequence != 0 and not has_batches:
            raise out_of_order(
                f"producer {self.producer_id} has no batches here, so its transaction must start with "
                f"sequence 0, not {sequence}"
            )
        if sequence > self.lowest_sequence:
            raise out_of_order(
                f"sequence {sequence} of producer {self.producer_id} comes before {self.lowest_sequence}, "
                "which was verified"
            )


def end_verification(verifications: dict[ProducerId, Verification], header: BatchHeader) -> None:
    """Take back what a batch of its producer has used up, or a marker has made void.

    Not the one of a transaction that waits for the marker of the one before. A producer of transactions
    version 2 gets a new epoch with each, and the marker that ends one has the epoch of the next already.
    """
    producer_id = ProducerId(header.producer_id)
    verification = verifications.get(producer_id)
    if verification is None:
        return
    is_of_next = verification.supports_epoch_bump and verification.epoch >= header.producer_epoch
    if not (header.is_control and is_of_next):
        del verifications[producer_id]


def out_of_order(message: str) -> AppendError:
    """Return the error of a batch that is not its producer's next."""
    return AppendError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)
