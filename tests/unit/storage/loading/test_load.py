"""Loading a partition's directory after a clean stop, after a crash, and after worse."""

from collections.abc import Callable

import pytest
from tests.unit.storage.logs import (
    NOW_MS,
    PATH,
    UNVERIFIED,
    append,
    append_transactional,
    batch,
    disk_of,
    end_transaction,
    files_of,
    new_disk,
    new_log,
    offsets_of,
    open_log,
)

from ottla.model.ids import Offset
from ottla.records.batch import LEADER_EPOCH_OFFSET, iter_batches
from ottla.records.builder import empty_batch
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.world.disk import Reason

SIZE = len(batch())
SMALL = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=0, verifies_transactions=False)
DAY_MS = 24 * 3_600_000


def log_of(count: int, config: LogConfig = SMALL) -> Log:
    log = new_log(config)
    for number in range(count):
        append(log, batch(timestamps=[NOW_MS + number]))
    return log


def segment_path(base_offset: int, kind: str = "log") -> str:
    return f"{PATH}/{base_offset:020d}.{kind}"


def overwrite(disk: SimulatedDisk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.write(0, [content])


def extend(disk: SimulatedDisk, path: str, content: bytes) -> None:
    file = disk.open(path)
    file.write(file.size(), [content])


def flip(disk: SimulatedDisk, path: str, position: int) -> None:
    content = bytearray(disk.read_file(path))
    content[position] ^= 0xFF
    overwrite(disk, path, bytes(content))


def test_an_empty_directory_is_an_empty_log() -> None:
    log = open_log(new_disk())
    assert (log.log_start_offset, log.log_end_offset, len(log.segments)) == (0, 0, 1)
    assert files_of(log) == ["00000000000000000000.log"]


def test_an_empty_log_starts_where_its_checkpoint_says() -> None:
    log = open_log(new_disk(), log_start_offset=70)
    assert (log.log_start_offset, log.log_end_offset) == (70, 70)
    append(log)
    assert offsets_of(log) == [(70, 70)]


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("recovery_point", [0, 4, 8])
def test_a_log_is_the_same_after_a_stop(is_clean: bool, recovery_point: int) -> None:
    log = log_of(8)
    log.flush()
    if is_clean:
        log.close()
    again = open_log(disk_of(log), SMALL, is_clean=is_clean, recovery_point=recovery_point)
    assert offsets_of(again) == offsets_of(log)
    assert again.leader_epochs.entries == log.leader_epochs.entries
    for segment, before in zip(again.segments, log.segments, strict=True):
        assert segment.largest == before.largest
        assert segment.first_timestamp == before.first_timestamp
        assert segment.size == before.size
    append(again)
    assert offsets_of(again)[-1] == (8, 8)


def test_a_recovered_log_rolls_and_indexes_as_before() -> None:
    logs = [log_of(8), log_of(8)]
    logs[1] = open_log(disk_of(logs[1]), SMALL)
    for log in logs:
        for number in range(8, 12):
            append(log, batch(timestamps=[NOW_MS + number]))
        log.close()
    first, second = logs
    for before, after in zip(first.segments, second.segments, strict=True):
        assert list(before.saved_indexes().offsets) == list(after.saved_indexes().offsets)
        assert list(before.saved_indexes().times) == list(after.saved_indexes().times)


def test_recovery_reads_next_to_nothing_below_the_recovery_point() -> None:
    large = batch(value=b"x" * 20_000)
    config = LogConfig(segment_bytes=3 * len(large))
    log = new_log(config)
    for _ in range(30):
        append(log, memoryview(bytearray(large)))
    log.flush()
    disk = disk_of(log)
    before = disk.counters.read_bytes
    open_log(disk, config, recovery_point=28)
    # Besides the last segment only headers are read, at the ends of the others.
    assert disk.counters.read_bytes - before < 12 * len(large)
    before = disk.counters.read_bytes
    open_log(disk, config, recovery_point=0)
    assert disk.counters.read_bytes - before >= 30 * len(large)


def test_the_recovery_point_is_not_moved_by_recovery() -> None:
    log = log_of(8)
    assert open_log(disk_of(log), SMALL, recovery_point=5).recovery_point == 5


def cut_batch(disk: SimulatedDisk) -> None:
    disk.open(segment_path(6)).truncate(2 * SIZE - 1)


def cut_header(disk: SimulatedDisk) -> None:
    disk.open(segment_path(6)).truncate(SIZE + 13)


def bad_checksum(disk: SimulatedDisk) -> None:
    flip(disk, segment_path(6), 2 * SIZE - 1)


def bad_length(disk: SimulatedDisk) -> None:
    flip(disk, segment_path(6), SIZE + 8)


def bad_magic(disk: SimulatedDisk) -> None:
    flip(disk, segment_path(6), SIZE + 16)


def repeated_batch(disk: SimulatedDisk) -> None:
    disk.open(segment_path(6)).truncate(SIZE)
    extend(disk, segment_path(6), disk.read_file(segment_path(6)))


@pytest.mark.parametrize(
    "damage", [cut_batch, cut_header, bad_checksum, bad_length, bad_magic, repeated_batch]
)
def test_a_damaged_tail_is_cut_off(damage: Callable[[SimulatedDisk], None]) -> None:
    log = log_of(8)
    disk = disk_of(log)
    damage(disk)
    again = open_log(disk, SMALL)
    assert again.log_end_offset == 7
    assert disk.open(segment_path(6)).size() == SIZE
    append(again)
    assert offsets_of(again) == [(number, number) for number in range(8)]


@pytest.mark.parametrize("tail", [b"\x00" * 3, b"\x00" * 4096, b"\xff" * 200, b"garbage" * 50, bytes(61)])
def test_bytes_behind_the_last_batch_are_cut_off(tail: bytes) -> None:
    log = log_of(8)
    disk = disk_of(log)
    extend(disk, segment_path(6), tail)
    again = open_log(disk, SMALL)
    assert again.log_end_offset == 8
    assert disk.open(segment_path(6)).size() == 2 * SIZE


def test_damage_in_the_middle_of_what_was_never_synced_ends_the_log() -> None:
    log = log_of(12)
    disk = disk_of(log)
    flip(disk, segment_path(3), 2 * SIZE - 1)
    again = open_log(disk, SMALL)
    assert offsets_of(again) == [(number, number) for number in range(4)]
    assert [segment.base_offset for segment in again.segments] == [0, 3]
    late = ("00000000000000000006", "00000000000000000009")
    left = [name for name in files_of(again) if name.startswith(late)]
    assert left == [f"{base}.log.0-{3 * SIZE}.damaged" for base in late]


def test_damage_below_the_recovery_point_is_not_looked_for() -> None:
    log = log_of(12)
    disk = disk_of(log)
    flip(disk, segment_path(3), 2 * SIZE - 1)
    assert open_log(disk, SMALL, recovery_point=8).log_end_offset == 12


def test_a_hole_between_segments_ends_the_log_before_it() -> None:
    log = log_of(12)
    disk = disk_of(log)
    disk.open(segment_path(3)).truncate(2 * SIZE)
    assert open_log(disk, SMALL).log_end_offset == 5


def test_a_hole_in_a_compacted_log_is_what_compaction_left() -> None:
    log = log_of(12)
    disk = disk_of(log)
    disk.open(segment_path(3)).truncate(2 * SIZE)
    compacted = LogConfig(segment_bytes=3 * SIZE, is_compacted=True)
    assert open_log(disk, compacted).log_end_offset == 12


def test_a_hole_below_what_was_compacted_stays_whatever_the_settings_say_now() -> None:
    log = log_of(12)
    disk = disk_of(log)
    disk.open(segment_path(3)).truncate(2 * SIZE)
    assert open_log(disk, SMALL, cleaned_to=6).log_end_offset == 12
    disk.open(segment_path(6)).truncate(2 * SIZE)
    assert open_log(disk, SMALL, cleaned_to=6).log_end_offset == 8


def test_a_hole_that_no_segment_could_span_is_the_leader_s() -> None:
    disk = new_disk()
    log = open_log(disk, SMALL)
    far = 1 << 33
    for base_offset in (0, far):
        log.append_as_follower(batch(base_offset=base_offset))
    assert [segment.base_offset for segment in log.segments] == [0, far]
    assert open_log(disk, SMALL).log_end_offset == far + 1


def test_a_hole_of_compaction_is_told_by_others_even_if_the_settings_changed() -> None:
    disk = new_disk()
    log = open_log(disk, SMALL)
    for base_offset in (0, 2, 5, 6):
        log.append_as_follower(batch(base_offset=base_offset))
    log.append_as_follower(batch(base_offset=20))
    # The second segment starts at 6. Offsets 1, 3, 4, 7 to 19 are missing, and so is now 5.
    disk.open(segment_path(0)).truncate(2 * SIZE)
    assert open_log(disk, SMALL).log_end_offset == 21


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("content", [b"", b"\x00" * 4800, b"\x01" * 7, b"\xff" * 240])
def test_a_damaged_index_of_the_last_segment_is_rebuilt(is_clean: bool, kind: str, content: bytes) -> None:
    log = log_of(8, LogConfig(index_interval_bytes=0))
    log.close()
    disk = disk_of(log)
    overwrite(disk, segment_path(0, kind), content)
    again = open_log(disk, LogConfig(index_interval_bytes=0), is_clean=is_clean, recovery_point=8)
    assert again.log_end_offset == 8
    assert again.active_segment.largest == (NOW_MS + 7, 7)
    again.update_high_watermark(Offset(8))
    for offset in range(8):
        assert again.read(Offset(offset), 1).position == offset * SIZE


@pytest.mark.parametrize("is_clean", [False, True])
def test_missing_indexes_are_rebuilt_for_every_segment(is_clean: bool) -> None:
    log = log_of(8)
    log.close()
    disk = disk_of(log)
    before = {name: disk.read_file(f"{PATH}/{name}") for name in files_of(log) if "index" in name}
    for name in before:
        disk.remove(f"{PATH}/{name}")
    again = open_log(disk, SMALL, is_clean=is_clean, recovery_point=8)
    assert again.log_end_offset == 8
    assert {name: disk.read_file(f"{PATH}/{name}") for name in before} == before


def test_a_damaged_index_of_an_old_segment_is_rebuilt_after_a_crash() -> None:
    log = log_of(8)
    log.close()
    disk = disk_of(log)
    before = disk.read_file(segment_path(0, "index"))
    overwrite(disk, segment_path(0, "index"), b"\x00" * 16)
    open_log(disk, SMALL, recovery_point=8)
    assert disk.read_file(segment_path(0, "index")) == before


def transactional_log() -> Log:
    log = new_log(LogConfig(segment_bytes=4 * SIZE, verifies_transactions=False))
    for sequence in range(4):
        append_transactional(log, 9, sequence)
        end_transaction(log, 9, is_commit=sequence == 2)
    append_transactional(log, 8, 0)
    append(log)
    return log


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_damaged_transaction_index_is_rebuilt(is_clean: bool) -> None:
    log = transactional_log()
    log.close()
    disk = disk_of(log)
    before = {name: disk.read_file(f"{PATH}/{name}") for name in files_of(log) if name.endswith(".txnindex")}
    assert len(before) > 1
    for name in before:
        overwrite(disk, f"{PATH}/{name}", b"\x07" * 34)
    again = open_log(disk, log.config, is_clean=is_clean, recovery_point=10)
    assert {name: disk.read_file(f"{PATH}/{name}") for name in before} == before
    again.update_high_watermark(again.log_end_offset)
    assert again.last_stable_offset == 8


def test_a_transaction_index_that_was_never_synced_is_not_believed() -> None:
    log = transactional_log()
    log.close()
    disk = disk_of(log)
    end = log.segments[1].base_offset
    before = disk.read_file(segment_path(0, "txnindex"))
    # A power cut may leave the length of a file and zeros in it.
    overwrite(disk, segment_path(0, "txnindex"), bytes(34))
    open_log(disk, log.config, recovery_point=end)
    assert disk.read_file(segment_path(0, "txnindex")) == before


def log_whose_marker_was_compacted(leaves_empty_batch: bool) -> Log:
    """Write three segments. In the second lay the marker of a transaction that began in the first."""
    config = LogConfig(
        segment_bytes=3 * SIZE, index_interval_bytes=0, is_compacted=True, verifies_transactions=False
    )
    log = new_log(config)
    append_transactional(log, 9, 0)
    for _ in range(2):
        append(log)
    end_transaction(log, 9, is_commit=True)
    for _ in range(4):
        append(log)
    assert len(log.segments) == 3
    log.close()
    path = segment_path(log.segments[1].base_offset)
    kept = bytearray()
    for view in iter_batches(memoryview(disk_of(log).read_file(path))):
        if not view.is_control:
            kept += view.view
        elif leaves_empty_batch:
            kept += empty_batch(view.header)
    overwrite(disk_of(log), path, bytes(kept))
    # So that it is recovered.
    disk_of(log).remove(segment_path(log.segments[1].base_offset, "index"))
    return log


def test_a_snapshot_knows_of_markers_that_compaction_took() -> None:
    log = log_whose_marker_was_compacted(leaves_empty_batch=False)
    end = log.segments[2].base_offset
    again = open_log(disk_of(log), log.config, recovery_point=end + 1, cleaned_to=end)
    again.update_high_watermark(again.log_end_offset)
    assert again.last_stable_offset == again.log_end_offset


def test_what_is_left_of_a_marker_ends_its_transaction() -> None:
    log = log_whose_marker_was_compacted(leaves_empty_batch=True)
    # Nothing is known to be synced, so nothing but the batches tells.
    again = open_log(disk_of(log), log.config, cleaned_to=log.segments[2].base_offset)
    again.update_high_watermark(again.log_end_offset)
    assert again.last_stable_offset == again.log_end_offset


def test_producers_come_from_the_batches_if_there_is_no_snapshot() -> None:
    for is_clean in (False, True):
        log = transactional_log()
        log.close()
        disk = disk_of(log)
        for name in files_of(log):
            if name.endswith(".snapshot"):
                disk.remove(f"{PATH}/{name}")
        again = open_log(disk, log.config, is_clean=is_clean, recovery_point=10)
        assert again.producer_state.snapshot() == log.producer_state.snapshot()


def test_a_damaged_snapshot_is_dropped_and_an_older_one_used() -> None:
    log = transactional_log()
    log.close()
    disk = disk_of(log)
    newest = max(name for name in files_of(log) if name.endswith(".snapshot"))
    flip(disk, f"{PATH}/{newest}", 8)
    again = open_log(disk, log.config, is_clean=True)
    assert again.producer_state.snapshot() == log.producer_state.snapshot()
    assert newest not in files_of(again)


def test_snapshot_and_tail_give_what_all_batches_give() -> None:
    log = transactional_log()
    log.flush()
    disk = disk_of(log)
    from_snapshot = open_log(disk.copy(), log.config, recovery_point=9)
    from_all = open_log(disk.copy(), log.config, recovery_point=0)
    assert from_snapshot.producer_state.snapshot() == from_all.producer_state.snapshot()
    assert from_all.producer_state.snapshot() == log.producer_state.snapshot()


def test_snapshots_that_no_segment_starts_at_are_removed() -> None:
    log = log_of(8)
    log.close()
    again = open_log(disk_of(log), SMALL, is_clean=True)
    append(again)
    append(again)
    again.close()
    third = open_log(disk_of(log), SMALL, is_clean=True)
    snapshots = [name for name in files_of(third) if name.endswith(".snapshot")]
    assert snapshots == [f"{offset:020d}.snapshot" for offset in (3, 6, 9, 10)]


def test_a_recovery_leaves_snapshots_between_the_segments() -> None:
    log = log_of(8)
    disk = disk_of(log)
    for name in files_of(log):
        if name.endswith(".snapshot"):
            disk.remove(f"{PATH}/{name}")
    again = open_log(disk, SMALL)
    assert [name for name in files_of(again) if name.endswith(".snapshot")] == [
        "00000000000000000003.snapshot",
        "00000000000000000006.snapshot",
    ]


def test_silent_producers_are_not_taken_from_a_snapshot() -> None:
    log = new_log()
    append(log, batch(producer_id=9, epoch=0, sequence=0))
    append_transactional(log, 8, 0)
    log.close()
    again = open_log(disk_of(log), UNVERIFIED, is_clean=True, now_ms=NOW_MS + DAY_MS)
    assert list(again.active_producers()) == [8]


def test_records_below_the_checkpointed_start_are_not_there() -> None:
    log = log_of(8)
    again = open_log(disk_of(log), SMALL, log_start_offset=4)
    # The segment at 0 lies below it as a whole. Had the files of several gone, some could have come back.
    assert (again.log_start_offset, again.segments[0].base_offset) == (4, 3)
    assert offsets_of(again)[0] == (4, 4)
    assert again.high_watermark == 4


def test_a_log_that_ends_before_its_start_is_emptied() -> None:
    log = log_of(8)
    again = open_log(disk_of(log), SMALL, log_start_offset=50)
    assert (again.log_start_offset, again.log_end_offset) == (50, 50)
    assert [name for name in files_of(again) if name.endswith(".log")] == ["00000000000000000050.log"]


def test_index_files_without_a_log_file_are_removed() -> None:
    disk = new_disk()
    overwrite(disk, segment_path(7, "index"), b"")
    overwrite(disk, segment_path(7, "timeindex"), b"")
    assert files_of(open_log(disk)) == ["00000000000000000000.log"]


def test_unknown_files_are_left_alone() -> None:
    disk = new_disk()
    overwrite(disk, f"{PATH}/notes.txt", b"hello")
    assert "notes.txt" in files_of(open_log(disk))


def test_a_damaged_epoch_checkpoint_is_rebuilt_from_the_batches() -> None:
    log = new_log(SMALL)
    for epoch in (2, 2, 5, 6):
        append(log, leader_epoch=epoch)
    log.flush()
    overwrite(disk_of(log), f"{PATH}/leader-epoch-checkpoint", b"rubbish")
    again = open_log(disk_of(log), SMALL)
    assert again.leader_epochs.entries == [(2, 0), (5, 2), (6, 3)]


def test_a_damaged_epoch_of_a_batch_is_not_taken_for_one_of_the_log() -> None:
    log = log_of(3, LogConfig(verifies_transactions=False))
    log.flush()
    # No checksum covers the epoch.
    flip(disk_of(log), segment_path(0), SIZE + LEADER_EPOCH_OFFSET + 1)
    again = open_log(disk_of(log), recovery_point=3)
    assert again.leader_epochs.entries == log.leader_epochs.entries
    assert again.log_end_offset == 3


def test_epochs_above_the_log_end_are_forgotten() -> None:
    log = new_log()
    append(log, leader_epoch=2)
    log.close()
    overwrite(disk_of(log), f"{PATH}/leader-epoch-checkpoint", b"0\n2\n2 0\n9 40\n")
    assert open_log(disk_of(log), is_clean=True).leader_epochs.entries == [(2, 0)]


def test_a_start_that_fails_takes_the_directory_offline() -> None:
    log = log_of(3)
    disk_of(log).fail("read", Reason.IO_ERROR)
    with pytest.raises(LogDirectoryOffline, match="orders-0"):
        open_log(disk_of(log), SMALL)


def test_the_topic_id_is_read() -> None:
    disk = new_disk()
    overwrite(disk, f"{PATH}/partition.metadata", b"version: 0\ntopic_id: 8yX_J5jBSMGMPYzBHOf-4Q")
    assert str(open_log(disk).topic_id) == "8yX_J5jBSMGMPYzBHOf-4Q"
    overwrite(disk, f"{PATH}/partition.metadata", b"")
    assert open_log(disk).topic_id is None


def test_what_recovery_did_is_synced_with_the_next_flush() -> None:
    log = log_of(8)
    disk = disk_of(log)
    bad_checksum(disk)
    again = open_log(disk, SMALL)
    again.flush()
    disk.cut_power()
    third = open_log(disk, SMALL, recovery_point=7)
    assert third.log_end_offset == 7


def test_garbage_behind_the_last_batch_is_cut_off_after_a_clean_stop_too() -> None:
    log = log_of(8)
    log.close()
    disk = disk_of(log)
    extend(disk, segment_path(6), b"\xff" * 100)
    again = open_log(disk, SMALL, is_clean=True)
    assert again.log_end_offset == 8
    assert disk.open(segment_path(6)).size() == 2 * SIZE


def test_a_snapshot_that_is_there_is_not_replaced_by_what_is_left_of_the_batches() -> None:
    log = new_log(LogConfig(segment_bytes=2 * len(batch(producer_id=9, epoch=0, sequence=0))))
    for sequence in range(5):
        append(log, batch(producer_id=9, epoch=0, sequence=sequence))
    log.increment_log_start_offset(Offset(2))
    log.delete_old_segments(NOW_MS)
    append(log, batch(producer_id=7, epoch=0, sequence=0))
    log.close()
    disk = disk_of(log)
    before = disk.read_file(segment_path(4, "snapshot"))
    disk.remove(segment_path(2, "index"))
    disk.remove(segment_path(2, "snapshot"))
    open_log(disk, log.config, is_clean=True)
    assert disk.read_file(segment_path(4, "snapshot")) == before
