"""Duplicates, sequences, epochs and transactions, as the log sees its producers."""

import pytest

from ottla.model.ids import Offset, ProducerId
from ottla.storage.appending.verification import Verification
from ottla.storage.errors import AppendError
from ottla.storage.producers.producer_state import CompletedTransaction, ProducerState
from ottla.wire.error_code import ErrorCode

SEQUENCE_MAX = 2**31 - 1


def note(
    state: ProducerState,
    producer_id: int = 1,
    *,
    epoch: int = 0,
    sequence: int = 0,
    offset: int = 0,
    count: int = 1,
    is_transactional: bool = False,
    timestamp_ms: int = 0,
) -> None:
    last_sequence = (sequence + count - 1) & SEQUENCE_MAX
    state.note_batch(
        ProducerId(producer_id),
        epoch,
        last_sequence,
        Offset(offset),
        Offset(offset + count - 1),
        timestamp_ms,
        is_transactional,
    )


def check(
    state: ProducerState,
    sequence: int,
    *,
    epoch: int = 0,
    is_transactional: bool = False,
    verification: Verification | None = None,
) -> None:
    state.check_batch(ProducerId(1), epoch, sequence, is_transactional, verification)


def end(
    state: ProducerState,
    producer_id: int,
    offset: int,
    *,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    is_abort: bool = False,
) -> CompletedTransaction | None:
    return state.note_marker(ProducerId(producer_id), epoch, coordinator_epoch, Offset(offset), 0, is_abort)


def test_any_sequence_is_accepted_of_an_unknown_producer() -> None:
    check(ProducerState(), 17)


def test_the_next_sequence_is_accepted() -> None:
    state = ProducerState()
    note(state, sequence=0, count=3)
    check(state, 3)


@pytest.mark.parametrize("sequence", [0, 2, 4])
def test_a_sequence_out_of_order_is_refused(sequence: int) -> None:
    state = ProducerState()
    note(state, sequence=0, count=3)
    with pytest.raises(AppendError) as refused:
        check(state, sequence)
    assert refused.value.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_after_the_largest_sequence_comes_zero() -> None:
    state = ProducerState()
    note(state, sequence=SEQUENCE_MAX, count=1)
    check(state, 0)


def test_a_batch_that_wraps_is_found_as_duplicate() -> None:
    state = ProducerState()
    note(state, sequence=SEQUENCE_MAX - 1, count=4, offset=10)
    producer = state.producers[ProducerId(1)]
    assert producer.find_duplicate(0, SEQUENCE_MAX - 1, 1, False) == (1, 13, 3, 0)
    check(state, 2)


def test_the_last_five_batches_are_found_as_duplicates_and_the_sixth_is_not() -> None:
    state = ProducerState()
    for number in range(6):
        note(state, sequence=number, offset=number)
    producer = state.producers[ProducerId(1)]
    assert producer.find_duplicate(0, 0, 0, False) is None
    for number in range(1, 6):
        assert producer.find_duplicate(0, number, number, False) == (number, number, 0, 0)


def test_a_batch_of_the_same_end_but_other_start_is_no_duplicate() -> None:
    state = ProducerState()
    note(state, sequence=0, count=3)
    assert state.producers[ProducerId(1)].find_duplicate(0, 1, 2, False) is None


def test_a_batch_of_a_transaction_that_has_ended_is_not_repeated_by_another_one() -> None:
    """It is another record, with a sequence that the producer has used twice."""
    state = ProducerState()
    note(state, sequence=0, offset=10, is_transactional=True)
    producer = state.producers[ProducerId(1)]
    assert producer.find_duplicate(0, 0, 0, True) == (0, 10, 0, 0)
    end(state, 1, 11, is_abort=True)
    assert producer.find_duplicate(0, 0, 0, True) is None
    note(state, sequence=1, offset=12, is_transactional=True)
    assert producer.find_duplicate(0, 0, 0, True) is None
    assert producer.find_duplicate(0, 1, 1, True) == (1, 12, 0, 0)


def test_an_older_epoch_is_refused() -> None:
    state = ProducerState()
    note(state, epoch=5)
    with pytest.raises(AppendError) as refused:
        check(state, 1, epoch=4)
    assert refused.value.error_code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_must_start_at_zero() -> None:
    state = ProducerState()
    note(state, epoch=5)
    check(state, 0, epoch=6)
    with pytest.raises(AppendError) as refused:
        check(state, 1, epoch=6)
    assert refused.value.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_forgets_the_batches_of_the_old_one() -> None:
    state = ProducerState()
    note(state, epoch=5, sequence=9)
    note(state, epoch=6, sequence=0)
    assert state.producers[ProducerId(1)].find_duplicate(5, 9, 9, False) is None


def test_a_plain_batch_is_refused_while_a_transaction_is_open() -> None:
    state = ProducerState()
    note(state, is_transactional=True)
    with pytest.raises(AppendError) as refused:
        check(state, 1)
    assert refused.value.error_code is ErrorCode.INVALID_TXN_STATE


def test_after_a_marker_a_transaction_goes_on_with_the_next_sequence() -> None:
    state = ProducerState()
    note(state, is_transactional=True)
    end(state, 1, 1)
    check(state, 1, is_transactional=True)


def test_after_a_marker_of_the_next_epoch_sequences_start_again() -> None:
    state = ProducerState()
    note(state, sequence=0, is_transactional=True)
    end(state, 1, 1, epoch=1)
    check(state, 0, epoch=1, is_transactional=True)
    with pytest.raises(AppendError):
        check(state, 1, epoch=1, is_transactional=True)


def test_a_verified_batch_may_not_overtake_the_first_of_its_transaction() -> None:
    verification = Verification(ProducerId(1), 0, 5, supports_epoch_bump=False, started_ms=0)
    check(ProducerState(), 5, is_transactional=True, verification=verification)
    with pytest.raises(AppendError) as refused:
        check(ProducerState(), 6, is_transactional=True, verification=verification)
    assert refused.value.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_of_transactions_version_2_must_start_at_zero() -> None:
    verification = Verification(ProducerId(1), 0, 3, supports_epoch_bump=True, started_ms=0)
    with pytest.raises(AppendError) as refused:
        check(ProducerState(), 3, is_transactional=True, verification=verification)
    assert refused.value.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_marker_of_an_older_coordinator_is_refused() -> None:
    state = ProducerState()
    note(state, is_transactional=True)
    end(state, 1, 1, coordinator_epoch=7)
    state.check_marker(ProducerId(1), 0, 7, 1)
    with pytest.raises(AppendError) as refused:
        state.check_marker(ProducerId(1), 0, 6, 1)
    assert refused.value.error_code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "error_code"),
    [
        (-1, 0, ErrorCode.INVALID_PRODUCER_EPOCH),
        (-2, 0, ErrorCode.INVALID_PRODUCER_EPOCH),
        (0, -2, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_a_first_marker_with_numbers_that_nobody_has_is_refused(
    epoch: int, coordinator_epoch: int, error_code: ErrorCode
) -> None:
    state = ProducerState()
    with pytest.raises(AppendError) as refused:
        state.check_marker(ProducerId(1), epoch, coordinator_epoch, 1)
    assert refused.value.error_code is error_code
    state.check_marker(ProducerId(1), 0, -1, 1)


def test_a_marker_of_no_transaction_version_is_refused() -> None:
    with pytest.raises(AppendError) as refused:
        ProducerState().check_marker(ProducerId(1), 0, 0, -1)
    assert refused.value.error_code is ErrorCode.INVALID_REQUEST


def test_a_marker_of_an_older_epoch_is_refused() -> None:
    state = ProducerState()
    note(state, epoch=3, is_transactional=True)
    with pytest.raises(AppendError) as refused:
        state.check_marker(ProducerId(1), 2, 0, 1)
    assert refused.value.error_code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_in_version_2_a_marker_needs_a_newer_epoch_while_its_transaction_is_open() -> None:
    state = ProducerState()
    note(state, epoch=3, is_transactional=True)
    state.check_marker(ProducerId(1), 3, 0, 1)
    state.check_marker(ProducerId(1), 4, 0, 2)
    with pytest.raises(AppendError) as refused:
        state.check_marker(ProducerId(1), 3, 0, 2)
    assert refused.value.error_code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_in_version_2_a_marker_of_the_same_epoch_is_a_retry_if_nothing_is_open() -> None:
    state = ProducerState()
    note(state, epoch=3, is_transactional=True)
    end(state, 1, 1, epoch=4)
    state.check_marker(ProducerId(1), 4, 0, 2)


def test_in_version_2_the_last_epoch_of_all_may_end_its_own_transaction() -> None:
    state = ProducerState()
    note(state, epoch=32767, is_transactional=True)
    state.check_marker(ProducerId(1), 32767, 0, 2)


def test_a_marker_without_a_transaction_ends_none() -> None:
    assert end(ProducerState(), 1, 0) is None


def test_an_open_transaction_is_unstable_until_its_marker_is_replicated() -> None:
    state = ProducerState()
    note(state, offset=3, is_transactional=True)
    assert state.first_unstable_offset == 3
    end(state, 1, 8)
    assert state.first_unstable_offset == 3
    state.note_high_watermark(Offset(8))
    assert state.first_unstable_offset == 3
    state.note_high_watermark(Offset(9))
    assert state.first_unstable_offset is None


def test_the_earliest_of_several_transactions_counts() -> None:
    state = ProducerState()
    note(state, 1, offset=3, is_transactional=True)
    note(state, 2, offset=5, is_transactional=True)
    end(state, 1, 8)
    state.note_high_watermark(Offset(9))
    assert state.first_unstable_offset == 5


def test_an_ended_transaction_knows_what_was_decided_when_it_ended() -> None:
    state = ProducerState()
    note(state, 1, offset=3, is_transactional=True)
    note(state, 2, offset=5, is_transactional=True)
    assert end(state, 2, 8, is_abort=True) == (2, 5, 8, True, 3)
    assert end(state, 1, 9, is_abort=True) == (1, 3, 9, True, 10)


def test_a_snapshot_keeps_the_newest_batch_and_the_open_transaction() -> None:
    state = ProducerState()
    note(state, 1, sequence=0, count=2, offset=0, timestamp_ms=5)
    note(state, 1, sequence=2, count=3, offset=2, timestamp_ms=6, is_transactional=True)
    note(state, 2, offset=9, is_transactional=True)
    end(state, 2, 10, coordinator_epoch=4)
    again = ProducerState(state.snapshot())
    assert again.snapshot() == state.snapshot()
    producer = again.producers[ProducerId(1)]
    assert producer.batches == [(4, 4, 2, 6)]
    assert producer.transaction_first_offset == 2
    assert again.producers[ProducerId(2)].coordinator_epoch == 4
    assert again.first_unstable_offset == 2


def test_open_transactions_of_a_snapshot_are_in_the_order_of_their_offsets() -> None:
    state = ProducerState()
    note(state, 1, offset=3, is_transactional=True)
    note(state, 2, offset=5, is_transactional=True)
    again = ProducerState(reversed(state.snapshot()))
    assert list(again.open_transactions) == [3, 5]


def test_a_silent_producer_is_forgotten_after_a_while() -> None:
    state = ProducerState()
    note(state, 1, timestamp_ms=100)
    note(state, 2, timestamp_ms=200)
    assert state.expire(1100, 1000) == [1]
    assert list(state.producers) == [2]


def test_a_producer_with_an_open_transaction_is_never_forgotten() -> None:
    state = ProducerState()
    note(state, 1, timestamp_ms=100, is_transactional=True)
    assert state.expire(10_000, 1000) == []


def test_deleted_records_let_go_of_ended_transactions_but_not_of_open_ones() -> None:
    state = ProducerState()
    note(state, 1, offset=0, is_transactional=True)
    end(state, 1, 2)
    note(state, 2, offset=3, is_transactional=True)
    state.note_log_start(Offset(5))
    assert state.first_unstable_offset == 3
    assert set(state.producers) == {1, 2}


def test_a_state_that_is_cleared_knows_no_producer_no_transaction_and_nothing_unreplicated() -> None:
    state = ProducerState()
    note(state, 1, sequence=7, is_transactional=True)
    note(state, 2, offset=1, is_transactional=True)
    assert end(state, 2, 2) is not None
    assert state.open_transactions
    state.clear()
    assert not state.producers
    assert not state.open_transactions
    assert not state.unreplicated
    assert state.snapshot() == []
    check(state, 3)  # The sequence of a producer that is not known.
