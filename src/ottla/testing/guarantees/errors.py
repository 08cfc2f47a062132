"""What an error tells: that an operation surely failed, or that nobody knows. The checker relies on it.

Code that is too sure here finds violations that are none, or overlooks real ones.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple


class MalformedHistory(ValueError):
    """What was read is no history."""


class Stage(Enum):
    """How far an operation came before the error."""

    BEFORE_COMMIT = "before commit"
    COMMIT = "commit"


class Verdict(NamedTuple):
    """How an operation ends, and whether its client is thrown away."""

    type: str
    needs_new_client: bool


UNKNOWN: Final = Verdict("info", True)
FAILED: Final = Verdict("fail", False)
FAILED_FOR_GOOD: Final = Verdict("fail", True)

_UNKNOWN: Final = frozenset(
    (
        "_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "REQUEST_TIMED_OUT", "NETWORK_EXCEPTION",
        "UNKNOWN_SERVER_ERROR", "UNKNOWN", "_MSG_TIMED_OUT", "_TIMED_OUT_QUEUE",
        # The leader may have written it and lost the leadership before it answered (KAFKA-13574).
        "NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_FOR_PARTITION",
    )
)  # fmt: skip
_FAILED: Final = frozenset(
    (
        "INVALID_PRODUCER_EPOCH", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PART",
        "INVALID_TOPIC_EXCEPTION", "TOPIC_EXCEPTION", "NOT_CONTROLLER",
    )
)  # fmt: skip
_FAILED_FOR_GOOD: Final = frozenset(
    (
        "PRODUCER_FENCED", "_FENCED", "OUT_OF_ORDER_SEQUENCE_NUMBER", "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "_FATAL", "_STATE",
    )
)  # fmt: skip

_PLAIN: Final[Mapping[str, Verdict]] = {
    **dict.fromkeys(_UNKNOWN, UNKNOWN),
    **dict.fromkeys(_FAILED, FAILED),
    **dict.fromkeys(_FAILED_FOR_GOOD, FAILED_FOR_GOOD),
}


def judge_plain(error: str) -> Verdict:
    """Judge the error of an operation outside of a transaction. What is not known is not sure."""
    return _PLAIN.get(error, UNKNOWN)


def judge_transaction(stage: Stage, error: str, abort_error: str | None) -> Verdict:
    """Judge the error of a transaction, and of the abort that was tried afterwards (None: it succeeded)."""
    if stage is Stage.BEFORE_COMMIT:
        # Without a commit nothing of it can ever be seen.
        return FAILED if abort_error is None else FAILED_FOR_GOOD
    if judge_plain(error) is UNKNOWN:
        return UNKNOWN
    if abort_error is None:
        return FAILED
    return FAILED_FOR_GOOD if abort_error == "INVALID_TXN_STATE" else UNKNOWN
