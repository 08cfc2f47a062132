"""What EndTxn does, as a table.

A client asks for an outcome with the epoch it knows. With version 2 of transactions (KIP-890) the epoch is
raised when the outcome is decided, so an epoch tells which transaction is meant: the current one belongs to
the next transaction, the one before is a retry whose answer was lost. So a request that is late by a whole
transaction can never end the wrong one. With version 1 only the current epoch counts, and a late request
looks like a timely one.

Between the decision and the last marker nothing can be decided, so every client is to come back: also with
an epoch, or a producer id, that is another one. What it will be once the transaction is complete is known to
its client already. A producer that goes on at once, and aborts before it has written anything, is not
another instance.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ottla.coordination.transaction.status import TransactionStatus
from ottla.coordination.transaction.transaction import EPOCH_MAX, Transaction

_S: Final = TransactionStatus


class EpochMatch(Enum):
    """How the epoch of a request relates to the one that is known."""

    CURRENT = "current"
    RETRY = "retry"
    OTHER = "other"


class Ending(Enum):
    """What to do."""

    DECIDE = "decide the outcome"
    DECIDE_EMPTY = "decide the outcome of a transaction that has no partitions, so as to raise the epoch"
    ALREADY_DONE = "say once more that it is done"
    WAIT = "ask the client to come back: the markers are being written"
    WRONG_STATE = "refuse: this outcome is not possible any more"
    FENCED = "refuse: the epoch is another instance's"


_COMMIT: Final = True
_ABORT: Final = False

VERSION_1: Final[Mapping[tuple[TransactionStatus, bool], Ending]] = {
    (_S.EMPTY, _COMMIT): Ending.WRONG_STATE,
    (_S.EMPTY, _ABORT): Ending.WRONG_STATE,
    (_S.ONGOING, _COMMIT): Ending.DECIDE,
    (_S.ONGOING, _ABORT): Ending.DECIDE,
    (_S.PREPARE_COMMIT, _COMMIT): Ending.WAIT,
    (_S.PREPARE_COMMIT, _ABORT): Ending.WAIT,
    (_S.PREPARE_ABORT, _COMMIT): Ending.WAIT,
    (_S.PREPARE_ABORT, _ABORT): Ending.WAIT,
    (_S.COMPLETE_COMMIT, _COMMIT): Ending.ALREADY_DONE,
    (_S.COMPLETE_COMMIT, _ABORT): Ending.WRONG_STATE,
    (_S.COMPLETE_ABORT, _COMMIT): Ending.WRONG_STATE,
    (_S.COMPLETE_ABORT, _ABORT): Ending.ALREADY_DONE,
}
"""By status and wanted outcome, for a request with the current epoch. All others are fenced."""

VERSION_2: Final[Mapping[tuple[TransactionStatus, bool], tuple[Ending, Ending]]] = {
    #                           with the current epoch, in a retry
    (_S.EMPTY, _COMMIT): (Ending.WRONG_STATE, Ending.FENCED),
    (_S.EMPTY, _ABORT): (Ending.DECIDE_EMPTY, Ending.FENCED),
    (_S.ONGOING, _COMMIT): (Ending.DECIDE, Ending.FENCED),
    (_S.ONGOING, _ABORT): (Ending.DECIDE, Ending.FENCED),
    (_S.COMPLETE_COMMIT, _COMMIT): (Ending.WRONG_STATE, Ending.ALREADY_DONE),
    (_S.COMPLETE_COMMIT, _ABORT): (Ending.DECIDE_EMPTY, Ending.WRONG_STATE),
    (_S.COMPLETE_ABORT, _COMMIT): (Ending.WRONG_STATE, Ending.WRONG_STATE),
    (_S.COMPLETE_ABORT, _ABORT): (Ending.DECIDE_EMPTY, Ending.ALREADY_DONE),
}
"""By status and wanted outcome: what to do with the current epoch, and with the one before.

While the markers are being written everybody is to wait, so there are no rows for that.
"""


def match_epoch(transaction: Transaction, producer_id: int, producer_epoch: int) -> EpochMatch:
    """Say how the identity in a request of version 2 relates to the one that is known."""
    if is_retry_over_ids(transaction, producer_id, producer_epoch):
        return EpochMatch.RETRY
    if producer_epoch == transaction.producer_epoch:
        return EpochMatch.CURRENT
    return EpochMatch.RETRY if producer_epoch + 1 == transaction.producer_epoch else EpochMatch.OTHER


def is_retry_over_ids(transaction: Transaction, producer_id: int, producer_epoch: int) -> bool:
    """Say whether a request comes with the last epoch of the producer id that was used up by it."""
    return (
        transaction.status in (_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT)
        and producer_id == transaction.previous_producer_id != transaction.producer_id
        and producer_epoch == EPOCH_MAX - 1
        and transaction.producer_epoch == 0
    )


def find_ending(status: TransactionStatus, committed: bool, match: EpochMatch, raises: bool) -> Ending:
    """Look up what EndTxn does. `raises` is whether it is of version 2: then no markers are being written."""
    if match is EpochMatch.OTHER:
        return Ending.FENCED
    if not raises:
        return VERSION_1[status, committed] if match is EpochMatch.CURRENT else Ending.FENCED
    with_current, in_retry = VERSION_2[status, committed]
    return with_current if match is EpochMatch.CURRENT else in_retry
