"""What each request does to a transactional id."""

import pytest

from ottla.coordination.transaction.decide import (
    Identity,
    completed,
    decide_add_partitions,
    decide_end,
    decide_fence,
    decide_init,
    end_needs_producer_id,
    has_expired,
    has_timed_out,
    init_needs_producer_id,
    verify_partition,
)
from ottla.coordination.transaction.status import TransactionStatus
from ottla.coordination.transaction.transaction import (
    EPOCH_MAX,
    TWO_PHASE_TIMEOUT_MS,
    Transaction,
    replayed,
    transaction_record,
)
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

S = TransactionStatus
A, B = TopicPartition("a", 0), TopicPartition("b", 1)
EMPTY = Transaction("t", 7, 3, 1000, updated_ms=1, previous_producer_id=7)
ONGOING = EMPTY._replace(status=S.ONGOING, partitions=frozenset((A,)), start_ms=5, client_version=2)


def through_the_log(transaction: Transaction, before: Transaction | None = None) -> Transaction:
    """Return what a coordinator makes of the record of a state."""
    return replayed(before, transaction.transactional_id, transaction_record(transaction, 2).value)


def test_first_instance_gets_a_new_id_with_epoch_zero() -> None:
    assert init_needs_producer_id(None, None)
    outcome = decide_init(None, "t", 1000, None, 42, 9)
    assert outcome.after == Transaction("t", 42, 0, 1000, updated_ms=9, previous_producer_id=42)


def test_next_instance_gets_the_next_epoch() -> None:
    after = decide_init(EMPTY, "t", 2000, None, None, 9).after
    assert after is not None
    assert (after.producer_id, after.producer_epoch, after.timeout_ms) == (7, 4, 2000)


def test_init_while_markers_are_written_has_to_come_again() -> None:
    for status in (S.PREPARE_ABORT, S.PREPARE_COMMIT):
        outcome = decide_init(ONGOING._replace(status=status), "t", 1000, None, None, 9)
        assert outcome.error_code is ErrorCode.CONCURRENT_TRANSACTIONS


def test_recovering_instance_goes_on_and_its_retry_gets_the_same_epoch() -> None:
    outcome = decide_init(EMPTY, "t", 1000, Identity(7, 3), None, 9)
    assert outcome.after is not None
    assert (outcome.after.producer_epoch, outcome.raised_from) == (4, 3)
    raised = outcome.after._replace(last_epoch=outcome.raised_from)
    again = decide_init(raised, "t", 1000, Identity(7, 3), None, 10).after
    assert again is not None
    assert again.producer_epoch == 4


def test_recovering_instance_that_was_replaced_is_fenced() -> None:
    replaced = decide_init(EMPTY, "t", 1000, None, None, 9).after
    for stranger in (Identity(7, 3), Identity(7, 2), Identity(6, 3)):
        outcome = decide_init(replaced, "t", 1000, stranger, None, 10)
        assert outcome.error_code is ErrorCode.PRODUCER_FENCED


def test_last_epoch_leads_to_another_id() -> None:
    worn = EMPTY._replace(producer_epoch=EPOCH_MAX - 1)
    assert init_needs_producer_id(worn, None)
    after = decide_init(worn, "t", 1000, None, 8, 9).after
    assert after is not None
    assert (after.producer_id, after.producer_epoch, after.previous_producer_id) == (8, 0, 7)


def test_first_partition_begins_a_transaction_and_others_join_it() -> None:
    who = Identity(7, 3)
    begun = decide_add_partitions(EMPTY, who, frozenset((A,)), 2, 20).after
    assert begun is not None
    assert (begun.status, begun.start_ms, begun.partitions) == (S.ONGOING, 20, frozenset((A,)))
    joined = decide_add_partitions(begun, who, frozenset((B,)), 2, 30).after
    assert joined is not None
    assert (joined.start_ms, joined.updated_ms, joined.partitions) == (20, 30, frozenset((A, B)))
    assert decide_add_partitions(joined, who, frozenset((A, B)), 2, 40) == (None, ErrorCode.NONE, -1)


@pytest.mark.parametrize(
    ("transaction", "who", "error_code"),
    [
        (None, Identity(7, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (EMPTY, Identity(8, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (EMPTY, Identity(7, 2), ErrorCode.PRODUCER_FENCED),
        (EMPTY, Identity(7, 4), ErrorCode.PRODUCER_FENCED),
        (ONGOING._replace(status=S.PREPARE_ABORT), Identity(7, 3), ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_who_may_not_write_neither_adds_nor_is_confirmed(
    transaction: Transaction | None, who: Identity, error_code: ErrorCode
) -> None:
    assert decide_add_partitions(transaction, who, frozenset((A,)), 2, 20).error_code is error_code
    assert verify_partition(transaction, who, A) is error_code


def test_partition_that_was_not_added_is_not_confirmed() -> None:
    assert verify_partition(ONGOING, Identity(7, 3), A) is ErrorCode.NONE
    assert verify_partition(ONGOING, Identity(7, 3), B) is ErrorCode.TRANSACTION_ABORTABLE


def test_end_of_version_2_raises_the_epoch_and_its_retry_gets_the_answer_again() -> None:
    prepared = decide_end(ONGOING, Identity(7, 3), True, 2, None, 30).after
    assert prepared is not None
    assert (prepared.status, prepared.producer_epoch, prepared.last_epoch) == (S.PREPARE_COMMIT, 4, -1)
    prepared = through_the_log(prepared, ONGOING)
    assert prepared.last_epoch == 3
    assert decide_end(prepared, Identity(7, 3), True, 2, None, 31).error_code is (
        ErrorCode.CONCURRENT_TRANSACTIONS
    )
    done = through_the_log(completed(prepared, 32), prepared)
    assert (done.status, done.producer_epoch, done.partitions) == (S.COMPLETE_COMMIT, 4, frozenset())
    assert decide_end(done, Identity(7, 3), True, 2, None, 33) == (None, ErrorCode.NONE, -1)


def test_delayed_commit_does_not_end_the_next_transaction() -> None:
    prepared = decide_end(ONGOING, Identity(7, 3), False, 2, None, 30).after
    assert prepared is not None
    following = decide_add_partitions(completed(prepared, 31), Identity(7, 4), frozenset((B,)), 2, 32).after
    assert decide_end(following, Identity(7, 3), True, 2, None, 33).error_code is ErrorCode.PRODUCER_FENCED


def test_end_of_version_1_keeps_the_epoch() -> None:
    prepared = decide_end(ONGOING, Identity(7, 3), True, 0, None, 30).after
    assert prepared is not None
    assert (prepared.producer_epoch, prepared.client_version) == (3, 0)


def test_abort_without_partitions_raises_the_epoch() -> None:
    prepared = decide_end(EMPTY, Identity(7, 3), False, 2, None, 30).after
    assert prepared is not None
    assert (prepared.status, prepared.producer_epoch, prepared.start_ms) == (S.PREPARE_ABORT, 4, 30)


def test_end_with_the_last_epoch_goes_on_with_another_id() -> None:
    worn = ONGOING._replace(producer_epoch=EPOCH_MAX - 1)
    assert end_needs_producer_id(worn, 2)
    prepared = decide_end(worn, Identity(7, EPOCH_MAX - 1), True, 2, 8, 30).after
    assert prepared is not None
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (7, EPOCH_MAX, 8)
    done = through_the_log(completed(through_the_log(prepared), 31))
    assert (done.producer_id, done.producer_epoch, done.previous_producer_id) == (8, 0, 7)
    # The retry of the end, and a recovery with the epoch that was used up.
    assert decide_end(done, Identity(7, EPOCH_MAX - 1), True, 2, None, 32).error_code is ErrorCode.NONE
    recovered = decide_init(done, "t", 1000, Identity(7, EPOCH_MAX - 1), None, 33).after
    assert recovered is not None
    assert (recovered.producer_id, recovered.producer_epoch) == (8, 0)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_fencing_aborts_and_takes_the_epoch_away(version: int) -> None:
    fenced = decide_fence(ONGOING, version, None, 30).after
    assert fenced is not None
    assert (fenced.status, fenced.producer_epoch, fenced.partitions) == (S.PREPARE_ABORT, 4, frozenset((A,)))
    assert decide_end(fenced, Identity(7, 3), True, 0, None, 31).error_code is ErrorCode.PRODUCER_FENCED
    aborted = completed(fenced, 31)
    assert decide_add_partitions(aborted, Identity(7, 3), frozenset((A,)), 0, 32).error_code is (
        ErrorCode.PRODUCER_FENCED
    )


def test_time_runs_from_the_first_partition() -> None:
    assert not has_timed_out(ONGOING, 5 + 1000)
    assert has_timed_out(ONGOING, 5 + 1001)
    assert not has_timed_out(ONGOING, 5 - 1000)
    assert has_timed_out(ONGOING, 5 - 1001), "the clock was set back"
    assert not has_timed_out(ONGOING._replace(timeout_ms=TWO_PHASE_TIMEOUT_MS), 2**40)
    assert not has_timed_out(EMPTY, 2**40)


def test_only_idle_ids_expire() -> None:
    assert has_expired(EMPTY, 100, 101)
    assert not has_expired(EMPTY, 100, 100)
    assert not has_expired(ONGOING, 100, 2**40)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("status", [status for status in S if status < S.DEAD])
def test_state_survives_its_record(status: S, version: int) -> None:
    client_version = 2 if version == 2 else 0
    partitions = frozenset() if status in (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT) else {A, B}
    state = Transaction(
        "t", 7, 3, 1000, status, frozenset(partitions), 5, 6, client_version,
        -1 if version == 0 else 7, -1 if version == 0 else 9,
    )  # fmt: skip
    record = transaction_record(state, version)
    assert record.value_version == (1 if version else 0)
    assert replayed(None, "t", record.value)._replace(last_epoch=-1) == state
