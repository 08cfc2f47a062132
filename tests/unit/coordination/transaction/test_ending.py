"""EndTxn's table, checked against the rules of KIP-890 row by row."""

import pytest

from ottla.coordination.transaction.decide import (
    Identity,
    Outcome,
    decide_add_partitions,
    decide_end,
    decide_init,
    end_needs_producer_id,
)
from ottla.coordination.transaction.ending import (
    VERSION_1,
    VERSION_2,
    Ending,
    EpochMatch,
    find_ending,
    match_epoch,
)
from ottla.coordination.transaction.status import TransactionStatus
from ottla.coordination.transaction.transaction import EPOCH_MAX, Transaction
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

S = TransactionStatus
PERSISTED = [status for status in S if status not in (S.DEAD, S.PREPARE_EPOCH_FENCE)]
BOTH = (True, False)


def test_tables_have_a_row_for_every_status_that_is_written_and_every_outcome() -> None:
    assert set(VERSION_1) == {(status, committed) for status in PERSISTED for committed in BOTH}
    assert set(VERSION_2) == {row for row in VERSION_1 if not row[0].is_ending}


@pytest.mark.parametrize(
    ("status", "committed", "in_retry", "with_current"),
    [
        (S.EMPTY, False, Ending.FENCED, Ending.DECIDE_EMPTY),
        (S.EMPTY, True, Ending.FENCED, Ending.WRONG_STATE),
        (S.COMPLETE_ABORT, False, Ending.ALREADY_DONE, Ending.DECIDE_EMPTY),
        (S.COMPLETE_ABORT, True, Ending.WRONG_STATE, Ending.WRONG_STATE),
        (S.COMPLETE_COMMIT, False, Ending.WRONG_STATE, Ending.DECIDE_EMPTY),
        (S.COMPLETE_COMMIT, True, Ending.ALREADY_DONE, Ending.WRONG_STATE),
    ],
)
def test_version_2_is_kafkas_table(
    status: S, committed: bool, in_retry: Ending, with_current: Ending
) -> None:
    assert find_ending(status, committed, EpochMatch.RETRY, raises=True) is in_retry
    assert find_ending(status, committed, EpochMatch.CURRENT, raises=True) is with_current


@pytest.mark.parametrize("status", PERSISTED)
@pytest.mark.parametrize("committed", [True, False])
def test_any_other_epoch_is_fenced(status: S, committed: bool) -> None:
    assert find_ending(status, committed, EpochMatch.OTHER, raises=False) is Ending.FENCED
    assert find_ending(status, committed, EpochMatch.RETRY, raises=False) is Ending.FENCED
    if not status.is_ending:
        assert find_ending(status, committed, EpochMatch.OTHER, raises=True) is Ending.FENCED


@pytest.mark.parametrize("status", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
@pytest.mark.parametrize("committed", [True, False])
def test_while_markers_are_written_nothing_is_decided(status: S, committed: bool) -> None:
    decided = Transaction("t", 7, 4, 1000, status, client_version=2)
    for version in (0, 2):
        outcome = decide_end(decided, Identity(7, 4), committed, version, None, 0)
        assert outcome == Outcome(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)


def test_who_goes_on_with_another_id_has_to_wait_for_the_markers_too() -> None:
    """The last epoch is used up: the client has been given another id, which is not in force yet."""
    decided = Transaction("t", 7, EPOCH_MAX, 1000, S.PREPARE_COMMIT, client_version=2, next_producer_id=8)
    after, waits = Identity(8, 0), Outcome(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
    assert decide_end(decided, after, False, 2, None, 0) == waits
    assert decide_add_partitions(decided, after, frozenset((TopicPartition("a", 0),)), 2, 0) == waits
    assert decide_init(decided, "t", 1000, after, None, 0) == waits
    assert not end_needs_producer_id(decided, 2), "a producer id for each retry would be wasted"


def test_only_an_open_transaction_is_committed() -> None:
    deciding = {
        status
        for (status, committed), endings in VERSION_2.items()
        if committed and (Ending.DECIDE in endings or Ending.DECIDE_EMPTY in endings)
    }
    assert deciding == {S.ONGOING}


def test_epoch_before_is_a_retry() -> None:
    transaction = Transaction("t", 7, 4, 1000, S.COMPLETE_COMMIT)
    assert match_epoch(transaction, 7, 4) is EpochMatch.CURRENT
    assert match_epoch(transaction, 7, 3) is EpochMatch.RETRY
    assert match_epoch(transaction, 7, 2) is EpochMatch.OTHER
    assert match_epoch(transaction, 7, 5) is EpochMatch.OTHER


def test_last_epoch_of_the_previous_id_is_a_retry_once_it_was_used_up() -> None:
    rotated = Transaction("t", 8, 0, 1000, S.COMPLETE_COMMIT, previous_producer_id=7)
    assert match_epoch(rotated, 7, EPOCH_MAX - 1) is EpochMatch.RETRY
    assert match_epoch(rotated._replace(status=S.EMPTY), 7, EPOCH_MAX - 1) is EpochMatch.OTHER
