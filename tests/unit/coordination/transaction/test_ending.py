"""EndTxn's table, checked against the rules of KIP-890 row by row."""

import pytest

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

S = TransactionStatus
PERSISTED = [status for status in S if status not in (S.DEAD, S.PREPARE_EPOCH_FENCE)]


def test_tables_have_a_row_for_every_status_that_is_written_and_every_outcome() -> None:
    rows = {(status, committed) for status in PERSISTED for committed in (True, False)}
    assert set(VERSION_1) == rows
    assert set(VERSION_2) == rows


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
    for raises in (True, False):
        assert find_ending(status, committed, EpochMatch.OTHER, raises) is Ending.FENCED
    assert find_ending(status, committed, EpochMatch.RETRY, raises=False) is Ending.FENCED


@pytest.mark.parametrize("raises", [True, False])
def test_a_decided_outcome_is_never_turned_round(raises: bool) -> None:
    for status, committed in ((S.PREPARE_COMMIT, False), (S.PREPARE_ABORT, True)):
        for match in EpochMatch:
            ending = find_ending(status, committed, match, raises)
            assert ending in (Ending.WRONG_STATE, Ending.FENCED)


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
