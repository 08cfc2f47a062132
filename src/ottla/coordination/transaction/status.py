"""Where a transactional id is in its life, and what may follow what."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class TransactionStatus(IntEnum):
    """The states, by the numbers that `__transaction_state` has for them.

    DEAD and PREPARE_EPOCH_FENCE are never written. Kafka has them for what is under way in memory, and knows
    them as filters; here nothing is under way in memory alone, so no transaction is ever in one of them.
    """

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name that clients see."""
        return _TITLES[self]

    @property
    def is_ending(self) -> bool:
        """Say whether the outcome is decided, but not yet written to all partitions."""
        return self in (TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Say whether no transaction is open or being ended."""
        return self in _IDLE


_IDLE: Final = frozenset(
    (TransactionStatus.EMPTY, TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT)
)
_TITLES: Final[Mapping[TransactionStatus, str]] = {
    status: "".join(word.capitalize() for word in status.name.split("_")) for status in TransactionStatus
}
STATUS_BY_TITLE: Final[Mapping[str, TransactionStatus]] = {title: status for status, title in _TITLES.items()}

FOLLOWERS: Final[Mapping[TransactionStatus, frozenset[TransactionStatus]]] = {
    # InitProducerId comes back to EMPTY, a first partition begins a transaction; version 2 also ends one
    # that has no partitions, because the client cannot know whether it has any.
    TransactionStatus.EMPTY: frozenset(
        (TransactionStatus.EMPTY, TransactionStatus.ONGOING, TransactionStatus.PREPARE_ABORT)
    ),
    TransactionStatus.ONGOING: frozenset(
        (TransactionStatus.ONGOING, TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT)
    ),
    # Once decided there is no way back.
    TransactionStatus.PREPARE_COMMIT: frozenset((TransactionStatus.COMPLETE_COMMIT,)),
    TransactionStatus.PREPARE_ABORT: frozenset((TransactionStatus.COMPLETE_ABORT,)),
    TransactionStatus.COMPLETE_COMMIT: frozenset(
        (TransactionStatus.EMPTY, TransactionStatus.ONGOING, TransactionStatus.PREPARE_ABORT)
    ),
    TransactionStatus.COMPLETE_ABORT: frozenset(
        (TransactionStatus.EMPTY, TransactionStatus.ONGOING, TransactionStatus.PREPARE_ABORT)
    ),
    TransactionStatus.DEAD: frozenset(),
    TransactionStatus.PREPARE_EPOCH_FENCE: frozenset(),
}
"""What may follow in the log. A tombstone may follow whatever `is_idle`."""
