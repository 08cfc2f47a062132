"""Appending as a follower: batches as the leader has them."""

import pytest
from tests.unit.storage.logs import (
    append,
    append_transactional,
    batch,
    batches_of,
    end_transaction,
    new_log,
    offsets_of,
)

from ottla.model.ids import LeaderEpoch, Offset
from ottla.records.batch import BatchView
from ottla.storage.config import LogConfig
from ottla.storage.errors import AppendError
from ottla.storage.log import Log
from ottla.wire.error_code import ErrorCode


def content_of(log: Log) -> memoryview:
    return memoryview(bytearray(b"".join([bytes(view.view) for view in batches_of(log)])))


def leader_log() -> Log:
    leader = new_log()
    append(leader, batch(3), leader_epoch=1)
    append(leader, batch(2, producer_id=7, epoch=0, sequence=0), leader_epoch=1)
    append_transactional(leader, 9, 0)
    end_transaction(leader, 9, is_commit=False)
    append(leader, batch(4), leader_epoch=2)
    return leader


def test_a_follower_has_the_bytes_and_the_state_of_its_leader() -> None:
    leader, follower = leader_log(), new_log()
    info = follower.append_as_follower(content_of(leader))
    assert info is not None
    assert (info.first_offset, info.last_offset) == (0, 10)
    assert content_of(follower) == content_of(leader)
    assert follower.leader_epochs.entries == leader.leader_epochs.entries
    assert follower.producer_state.snapshot() == leader.producer_state.snapshot()
    assert follower.active_segment.aborted() == leader.active_segment.aborted()


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    leader, follower = leader_log(), new_log()
    content = content_of(leader)
    follower.append_as_follower(content[:-1])
    assert follower.log_end_offset == 7
    whole = batches_of(leader)[-1].view
    follower.append_as_follower(memoryview(bytearray(whole)))
    assert content_of(follower) == content


def test_nothing_whole_is_nothing_appended() -> None:
    follower = new_log()
    assert follower.append_as_follower(batch()[:40]) is None
    assert follower.append_as_follower(memoryview(b"")) is None


def test_gaps_of_a_compacted_leader_are_kept() -> None:
    follower = new_log()
    follower.append_as_follower(batch(2, base_offset=5))
    follower.append_as_follower(batch(1, base_offset=20))
    assert offsets_of(follower) == [(5, 6), (20, 20)]
    assert follower.log_end_offset == 21


def test_what_comes_after_a_gap_that_cannot_be_is_left_for_the_next_fetch() -> None:
    follower = new_log()
    records = memoryview(bytearray(batch(2)) + batch(1, base_offset=20) + batch(1, base_offset=21))
    follower.append_as_follower(records, gaps_end=19)
    assert offsets_of(follower) == [(0, 1)]


@pytest.mark.parametrize("gaps_end", [20, 1 << 62])
def test_what_comes_after_a_gap_that_may_be_is_appended(gaps_end: int) -> None:
    follower = new_log()
    records = memoryview(bytearray(batch(2)) + batch(1, base_offset=20))
    follower.append_as_follower(records, gaps_end=gaps_end)
    assert offsets_of(follower) == [(0, 1), (20, 20)]


def test_a_gap_that_the_leader_answers_with_is_kept() -> None:
    follower = new_log()
    follower.append_as_follower(batch(1, base_offset=20), gaps_end=0)
    assert offsets_of(follower) == [(20, 20)]


def test_batches_that_go_back_are_damaged() -> None:
    follower = new_log()
    records = memoryview(bytearray(batch(2)) + batch(1, base_offset=20) + batch(1, base_offset=2))
    with pytest.raises(AppendError) as refused:
        follower.append_as_follower(records)
    assert refused.value.error_code is ErrorCode.CORRUPT_MESSAGE
    assert follower.log_end_offset == 0


def test_offsets_that_are_there_already_are_refused() -> None:
    follower = new_log()
    follower.append_as_follower(batch(3))
    with pytest.raises(AppendError):
        follower.append_as_follower(batch(1, base_offset=2))
    assert follower.log_end_offset == 3


def test_a_wrong_checksum_is_refused_and_nothing_is_appended() -> None:
    follower = new_log()
    records = batch(3)
    records[-1] ^= 1
    with pytest.raises(AppendError) as refused:
        follower.append_as_follower(records)
    assert refused.value.error_code is ErrorCode.CORRUPT_MESSAGE
    assert follower.size_bytes == 0


def test_batches_of_a_later_epoch_than_the_leaders_are_left_out() -> None:
    leader, follower = leader_log(), new_log()
    follower.append_as_follower(content_of(leader), LeaderEpoch(1))
    assert follower.log_end_offset == 7


def test_more_than_a_segment_holds_goes_into_several() -> None:
    leader = new_log()
    for _ in range(10):
        append(leader)
    size = len(batch())
    follower = new_log(LogConfig(segment_bytes=3 * size))
    info = follower.append_as_follower(content_of(leader))
    assert info is not None
    assert (info.first_offset, info.last_offset, info.flush_is_due) == (0, 9, True)
    assert [segment.base_offset for segment in follower.segments] == [0, 3, 6, 9]
    assert offsets_of(follower) == offsets_of(leader)


def test_the_high_watermark_of_a_follower_stays_below_its_log_end() -> None:
    follower = new_log()
    follower.append_as_follower(batch(3))
    follower.update_high_watermark(Offset(100))
    assert follower.high_watermark == 3


def test_a_batch_that_ends_before_it_starts_is_refused() -> None:
    follower = new_log()
    records = batch(3)
    records[23:27] = (-2).to_bytes(4, signed=True)
    view = BatchView(records)
    view.patch_max_timestamp(view.max_timestamp)
    with pytest.raises(AppendError):
        follower.append_as_follower(records)
    assert follower.log_end_offset == 0
