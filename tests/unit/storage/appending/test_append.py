"""Appending as the leader: offsets, epochs, duplicates, markers, and what a failing disk leaves behind."""

import pytest
from tests.unit.storage.logs import (
    NOW_MS,
    UNVERIFIED,
    append,
    append_transactional,
    batch,
    batches_of,
    disk_of,
    end_transaction,
    new_disk,
    new_log,
    offsets_of,
    open_log,
)

from ottla.model.ids import LeaderEpoch, Offset, ProducerId
from ottla.records.control import EndTxnMarker, build_end_txn_batch
from ottla.storage.appending.append_info import AppendOrigin
from ottla.storage.config import LogConfig
from ottla.storage.errors import AppendError, LogDirectoryOffline
from ottla.storage.log import Log
from ottla.wire.error_code import ErrorCode
from ottla.world.disk import Reason

EPOCH = LeaderEpoch(4)


def test_batches_get_the_next_offsets_and_the_leaders_epoch() -> None:
    log = new_log()
    first = append(log, batch(3), leader_epoch=4)
    second = append(log, batch(2), leader_epoch=4)
    assert (first.first_offset, first.last_offset) == (0, 2)
    assert (second.first_offset, second.last_offset) == (3, 4)
    assert log.log_end_offset == 5
    assert [(view.base_offset, view.leader_epoch, view.crc_is_valid()) for view in batches_of(log)] == [
        (0, 4, True),
        (3, 4, True),
    ]


def test_bytes_that_may_not_be_written_to_are_copied() -> None:
    log = new_log()
    records = bytes(batch())
    log.append_as_leader(memoryview(records), leader_epoch=EPOCH, now_ms=NOW_MS)
    assert records == bytes(batch())
    assert offsets_of(log) == [(0, 0)]


def test_a_new_epoch_starts_where_it_first_appends() -> None:
    log = new_log()
    append(log, leader_epoch=2)
    append(log, leader_epoch=2)
    append(log, leader_epoch=5)
    assert log.leader_epochs.entries == [(2, 0), (5, 2)]
    assert log.end_offset_for_epoch(LeaderEpoch(3)) == (2, 2)


def test_a_duplicate_is_answered_with_the_first_ones_offsets_and_not_written() -> None:
    log = new_log()
    append(log)
    append(log, batch(3, producer_id=9, epoch=0, sequence=0, timestamps=[NOW_MS + 5] * 3))
    size = log.size_bytes
    again = append(log, batch(3, producer_id=9, epoch=0, sequence=0, timestamps=[NOW_MS + 5] * 3))
    assert again.is_duplicate
    assert (again.first_offset, again.last_offset) == (1, 3)
    # Kafka tells the timestamp of the stored batch, whoever set it.
    assert again.log_append_time_ms == NOW_MS + 5
    assert (log.log_end_offset, log.size_bytes) == (4, size)


def test_five_requests_on_the_way_may_all_be_retried() -> None:
    log = new_log()
    for sequence in range(8):
        append(log, batch(producer_id=9, epoch=0, sequence=sequence))
    for sequence in range(3, 8):
        again = append(log, batch(producer_id=9, epoch=0, sequence=sequence))
        assert (again.is_duplicate, again.first_offset) == (True, sequence)
    with pytest.raises(AppendError) as refused:
        append(log, batch(producer_id=9, epoch=0, sequence=2))
    assert refused.value.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_refused_batch_leaves_the_producer_as_it_was() -> None:
    log = new_log()
    append(log, batch(producer_id=9, epoch=0, sequence=0))
    for sequence in (2, 5):
        with pytest.raises(AppendError):
            append(log, batch(producer_id=9, epoch=0, sequence=sequence))
    append(log, batch(producer_id=9, epoch=0, sequence=1))
    assert offsets_of(log) == [(0, 0), (1, 1)]


def test_an_open_transaction_holds_the_last_stable_offset_back() -> None:
    log = new_log()
    append(log)
    append_transactional(log, 9, 0, count=2)
    append(log)
    assert (log.high_watermark, log.last_stable_offset) == (4, 1)
    end_transaction(log, 9, is_commit=True)
    assert (log.high_watermark, log.last_stable_offset) == (5, 5)


def test_a_marker_above_the_high_watermark_does_not_free_the_last_stable_offset() -> None:
    log = new_log()
    append_transactional(log, 9, 0)
    end_transaction(log, 9, is_commit=True, moves_high_watermark=False)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (2, 1, 0)
    log.update_high_watermark(Offset(2))
    assert log.last_stable_offset == 2


def test_a_transaction_above_the_high_watermark_does_not_lower_the_last_stable_offset() -> None:
    log = new_log()
    append(log)
    log.append_as_leader(
        batch(producer_id=9, epoch=0, sequence=0, is_transactional=True), leader_epoch=EPOCH, now_ms=NOW_MS
    )
    assert (log.high_watermark, log.last_stable_offset) == (1, 1)


def test_only_aborted_transactions_are_in_the_index() -> None:
    log = new_log()
    append_transactional(log, 8, 0)
    append_transactional(log, 9, 0)
    end_transaction(log, 9, is_commit=False)
    end_transaction(log, 8, is_commit=True)
    assert log.active_segment.aborted() == [(9, 1, 2, 0)]


def test_a_marker_without_a_transaction_is_appended() -> None:
    log = new_log()
    end_transaction(log, 9, is_commit=False)
    assert offsets_of(log) == [(0, 0)]
    assert log.active_segment.aborted() == []


def test_a_fenced_marker_is_refused_and_not_written() -> None:
    log = new_log()
    append_transactional(log, 9, 0)
    end_transaction(log, 9, is_commit=False, coordinator_epoch=3)
    append_transactional(log, 9, 1)
    with pytest.raises(AppendError) as refused:
        end_transaction(log, 9, is_commit=True, coordinator_epoch=2)
    assert refused.value.error_code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.log_end_offset == 3


def test_a_coordinator_may_append_several_batches_at_once() -> None:
    log = new_log()
    append(log)
    records = memoryview(bytearray(bytes(batch(2)) + bytes(batch(3))))
    info = log.append_as_leader(records, leader_epoch=EPOCH, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert (info.first_offset, info.last_offset) == (1, 5)
    assert offsets_of(log) == [(0, 0), (1, 2), (3, 5)]


def test_transactional_batches_need_a_verification() -> None:
    log = new_log(LogConfig())
    with pytest.raises(AppendError) as refused:
        append_transactional(log, 9, 0)
    assert refused.value.error_code is ErrorCode.INVALID_TXN_STATE


def test_a_verified_transaction_goes_on_without_asking_again() -> None:
    log = new_log(LogConfig())
    verification = log.start_verification(ProducerId(9), 0, 0, False, NOW_MS)
    assert verification is not None
    records = batch(producer_id=9, epoch=0, sequence=0, is_transactional=True)
    log.append_as_leader(records, leader_epoch=EPOCH, now_ms=NOW_MS, verification=verification)
    assert log.start_verification(ProducerId(9), 0, 1, False, NOW_MS) is None
    append_transactional(log, 9, 1)
    assert log.log_end_offset == 2


def test_a_marker_that_came_first_makes_a_verification_worthless() -> None:
    log = new_log(LogConfig())
    verification = log.start_verification(ProducerId(9), 0, 0, False, NOW_MS)
    end_transaction(log, 9, is_commit=False)
    records = batch(producer_id=9, epoch=0, sequence=0, is_transactional=True)
    with pytest.raises(AppendError) as refused:
        log.append_as_leader(records, leader_epoch=EPOCH, now_ms=NOW_MS, verification=verification)
    assert refused.value.error_code is ErrorCode.INVALID_TXN_STATE


def test_the_marker_of_the_transaction_before_leaves_a_verification_alone() -> None:
    log = new_log(LogConfig())
    # Transactions version 2: the marker that ends a transaction has the epoch of the next one.
    verification = log.start_verification(ProducerId(9), 1, 0, True, NOW_MS)
    end_transaction(log, 9, is_commit=False, epoch=1)
    records = batch(producer_id=9, epoch=1, sequence=0, is_transactional=True)
    log.append_as_leader(records, leader_epoch=EPOCH, now_ms=NOW_MS, verification=verification)
    assert log.log_end_offset == 2


def test_the_marker_of_a_later_instance_makes_a_verification_worthless() -> None:
    log = new_log(LogConfig())
    verification = log.start_verification(ProducerId(9), 1, 0, True, NOW_MS)
    end_transaction(log, 9, is_commit=False, epoch=2)
    records = batch(producer_id=9, epoch=1, sequence=0, is_transactional=True)
    with pytest.raises(AppendError) as refused:
        log.append_as_leader(records, leader_epoch=EPOCH, now_ms=NOW_MS, verification=verification)
    assert refused.value.error_code is ErrorCode.INVALID_TXN_STATE


def test_nobody_is_asked_about_an_older_instance() -> None:
    log = new_log(LogConfig())
    end_transaction(log, 9, is_commit=False, epoch=4)
    with pytest.raises(AppendError) as refused:
        log.start_verification(ProducerId(9), 3, 0, True, NOW_MS)
    assert refused.value.error_code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_two_who_wait_for_the_same_answer_share_a_verification() -> None:
    log = new_log(LogConfig())
    first = log.start_verification(ProducerId(9), 0, 5, False, NOW_MS)
    second = log.start_verification(ProducerId(9), 0, 3, False, NOW_MS)
    assert first is second
    assert second is not None
    assert second.lowest_sequence == 3


def test_forgotten_verifications_expire() -> None:
    log = new_log(LogConfig(producer_id_expiration_ms=1000))
    verification = log.start_verification(ProducerId(9), 0, 0, False, NOW_MS)
    log.expire_producers(NOW_MS + 1000)
    assert log.start_verification(ProducerId(9), 0, 0, False, NOW_MS) is not verification


@pytest.mark.parametrize("reason", [Reason.NO_SPACE, Reason.IO_ERROR, Reason.READ_ONLY])
def test_a_failed_write_takes_the_directory_offline_and_leaves_no_trace(reason: Reason) -> None:
    log = new_log()
    append(log)
    disk = disk_of(log)
    disk.fail("write", reason)
    with pytest.raises(LogDirectoryOffline, match="orders-0"):
        append(log)
    disk.heal()
    assert log.log_end_offset == 1
    # Nothing works any more, although the disk would.
    with pytest.raises(LogDirectoryOffline):
        append(log)
    with pytest.raises(LogDirectoryOffline):
        log.read(Offset(0), 100)
    with pytest.raises(LogDirectoryOffline):
        log.start_flush()
    again = open_log(disk)
    assert offsets_of(again) == [(0, 0)]
    append(again)
    assert offsets_of(again) == [(0, 0), (1, 1)]


def test_a_disk_that_is_full_in_the_middle_of_a_batch_leaves_no_part_of_it() -> None:
    log = new_log()
    append(log)
    disk = disk_of(log)
    disk.capacity_bytes = disk.used_bytes() + 30
    with pytest.raises(LogDirectoryOffline, match="no space"):
        append(log)
    assert log.active_segment.file.size() == log.active_segment.size


def test_a_producer_is_not_noted_if_its_batch_could_not_be_written() -> None:
    log = new_log()
    disk_of(log).fail("write", Reason.IO_ERROR)
    with pytest.raises(LogDirectoryOffline):
        append(log, batch(producer_id=9, epoch=0, sequence=0))
    assert not log.active_producers()


def test_flush_messages_says_when_a_flush_is_due() -> None:
    log = new_log(LogConfig(flush_messages=3))
    assert [append(log).flush_is_due for _ in range(4)] == [False, False, False, True]
    log.flush()
    assert not append(log).flush_is_due


def test_state_after_a_restart_is_the_state_before() -> None:
    disk = new_disk()
    log = open_log(disk)
    append(log, batch(3, producer_id=5, epoch=1, sequence=0))
    append_transactional(log, 9, 0, count=2)
    append_transactional(log, 8, 0)
    end_transaction(log, 9, is_commit=False)
    append(log, leader_epoch=3)
    for is_clean in (False, True):
        if is_clean:
            log.close()
        again = open_log(disk, UNVERIFIED, is_clean=is_clean)
        again.update_high_watermark(again.log_end_offset)
        assert again.log_end_offset == log.log_end_offset
        assert again.last_stable_offset == log.last_stable_offset == 5
        assert again.producer_state.snapshot() == log.producer_state.snapshot()
        assert again.leader_epochs.entries == log.leader_epochs.entries
        assert again.active_segment.aborted() == log.active_segment.aborted()


def test_a_leader_that_was_replaced_may_not_append() -> None:
    log = new_log()
    append(log, leader_epoch=5)
    with pytest.raises(AppendError) as refused:
        append(log, leader_epoch=4)
    assert refused.value.error_code is ErrorCode.FENCED_LEADER_EPOCH
    with pytest.raises(AppendError):
        log.append_as_leader(
            batch(), leader_epoch=LeaderEpoch(4), now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
        )
    assert log.leader_epochs.entries == [(5, 0)]
    assert offsets_of(log) == [(0, 0)]


def test_a_batch_whose_index_entry_cannot_be_saved_is_not_in_the_log() -> None:
    log = new_log(LogConfig(index_interval_bytes=0))
    for _ in range(128):
        append(log)
    disk = disk_of(log)
    # The next batch adds the entry with which enough have come together to be written.
    disk.fail("write", Reason.NO_SPACE, path=".index")
    with pytest.raises(LogDirectoryOffline, match=r"\.index"):
        append(log)
    disk.heal()
    assert open_log(disk).log_end_offset == 128


def test_several_batches_are_in_the_log_together_or_not_at_all() -> None:
    log = new_log()
    append_transactional(log, 9, 0)
    marker = build_end_txn_batch(EndTxnMarker(False, 0), timestamp=NOW_MS, producer_id=9, producer_epoch=0)
    records = memoryview(bytearray(bytes(batch(2)) + bytes(marker)))
    disk = disk_of(log)
    disk.fail("write", Reason.IO_ERROR, path=".txnindex")
    with pytest.raises(LogDirectoryOffline):
        log.append_as_leader(
            records,
            leader_epoch=EPOCH,
            now_ms=NOW_MS,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=1,
        )
    disk.heal()
    assert open_log(disk).log_end_offset == 1


def is_short(log: Log) -> bool:
    log.volume.look_at_room()
    return log.volume.is_short


def test_below_the_reserve_only_producers_are_refused() -> None:
    log = new_log()
    for _ in range(100):
        append(log)
    append(log, batch(producer_id=9, epoch=0, sequence=0))
    disk = disk_of(log)
    log.volume.reserve_bytes = 1 << 40
    disk.capacity_bytes = disk.used_bytes() * 10 // 9 - 10
    assert is_short(log)
    with pytest.raises(AppendError, match="nearly full") as refused:
        append(log, batch(producer_id=9, epoch=0, sequence=1))
    assert refused.value.error_code is ErrorCode.POLICY_VIOLATION
    assert append(log, batch(producer_id=9, epoch=0, sequence=0)).is_duplicate, "it has it already"
    log.append_as_leader(batch(), leader_epoch=EPOCH, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    disk.capacity_bytes = disk.used_bytes() * 10 // 9 + 2
    assert is_short(log), "a little more room is gone with the next batch"
    disk.capacity_bytes = disk.used_bytes() * 2
    assert not is_short(log)
    append(log, batch(producer_id=9, epoch=0, sequence=1))


def test_a_log_that_grows_fast_looks_for_room_by_itself() -> None:
    log = new_log()
    volume, disk = log.volume, disk_of(log)
    volume.reserve_bytes = 1 << 40
    log.active_segment.allocated_bytes = 0
    disk.capacity_bytes = disk.used_bytes() + 20_000

    def append_without_end() -> None:
        while True:
            append(log)

    with pytest.raises(AppendError, match="nearly full"):
        append_without_end()
    assert log.size_bytes > 10_000
    assert volume.disk.usage(volume.path).usable_bytes > disk.capacity_bytes // 20
    assert volume.error is None
