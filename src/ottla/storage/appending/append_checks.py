"""Checks of every append to a leader, whatever its source."""

from typing import TYPE_CHECKING

from ottla.model.ids import LeaderEpoch, ProducerId
from ottla.storage.appending.verification import Verification
from ottla.storage.errors import AppendError
from ottla.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.storage.log import Log


def check_leader_epoch(log: "Log", leader_epoch: LeaderEpoch) -> None:
    """Refuse what a leader still appends that has been replaced."""
    if leader_epoch < log.leader_epochs.latest:
        raise AppendError(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"leader epoch {leader_epoch} is older than the current one, {log.leader_epochs.latest}",
        )


def check_verified(
    log: "Log",
    producer_id: ProducerId,
    epoch: int,
    expected: Verification | None,
    verification: Verification | None,
) -> None:
    """Refuse the first batch of a transaction that its coordinator was not asked about."""
    producer = log.producer_state.producers.get(producer_id)
    if producer is not None and producer.has_open_transaction and producer.epoch == epoch:
        return
    if log.config.verifies_transactions and (expected is None or expected is not verification):
        raise AppendError(
            ErrorCode.INVALID_TXN_STATE,
            f"the batch of producer {producer_id} belongs to no transaction that its coordinator has "
            "confirmed",
        )


def no_room() -> AppendError:
    """Return the error for records of producers when less than the reserve is free.

    Deviation: Kafka writes until nothing is left, and then stops. No retry would help before somebody has
    made room, so producers are to learn of it at once.
    """
    return AppendError(
        ErrorCode.POLICY_VIOLATION,
        "The disk of the partition's leader is nearly full: no records are taken until topics are deleted or "
        "their retention is lowered (ottla.disk.reserve.bytes).",
    )


def does_not_fit(size_bytes: int, segment_bytes: int) -> AppendError:
    """Return the error for more than a segment can hold."""
    return AppendError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"{size_bytes} bytes at once are more than a segment holds (segment.bytes is {segment_bytes})",
    )
