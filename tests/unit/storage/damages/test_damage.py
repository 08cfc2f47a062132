"""Damage at rest: nothing that may be good is destroyed, and nothing goes in silence."""

from collections.abc import Callable

import pytest
from tests.unit.storage.loading.test_load import extend, flip, overwrite, segment_path
from tests.unit.storage.logs import (
    NOW_MS,
    PARTITION,
    PATH,
    ROOT,
    append,
    append_transactional,
    batch,
    disk_of,
    end_transaction,
    files_of,
    new_disk,
    new_log,
    offsets_of,
)

from ottla.model.ids import NO_OFFSET, Offset
from ottla.records.batch import iter_batches
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.storage.config import LogConfig
from ottla.storage.damages.damage import SUFFIX, Damage
from ottla.storage.damages.stopped_files import StoppedLog, state_of
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.names import find_segment_file
from ottla.storage.read import ReadLimit
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import SimulatedDisk

SIZE = len(batch())
SMALL = LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=0, verifies_transactions=False)
COUNT = 12


def written_log(config: LogConfig = SMALL) -> Log:
    """Write four segments of three batches each."""
    log = new_log(config)
    for number in range(COUNT):
        append(log, batch(timestamps=[NOW_MS + number], value=b"%05d" % number))
    log.flush()
    return log


def load(
    disk: SimulatedDisk,
    config: LogConfig = SMALL,
    *,
    synced: int = NO_OFFSET,
    recovery_point: int = 0,
    is_clean: bool = False,
    stopped: StoppedLog | None = None,
) -> Log:
    request = LoadRequest(
        PATH,
        PARTITION,
        config,
        Offset(recovery_point),
        is_clean=is_clean,
        now_ms=NOW_MS,
        synced_offset=Offset(synced),
        stopped=stopped,
    )
    log = load_log(Volume(disk, ROOT), request)
    log.update_high_watermark(log.log_end_offset)
    return log


def values_of(log: Log) -> dict[int, bytes]:
    """Return the values of all records by offset, as a reader gets them."""
    values: dict[int, bytes] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        content = log.read(offset, 1 << 20, ReadLimit.LOG_END).read()
        assert content, f"nothing can be read at {offset}"
        for view in iter_batches(memoryview(content)):
            assert view.crc_is_valid()
            if view.count and not view.is_control:
                values[view.base_offset] = bytes(view.records_bytes)[-6:-1]
            offset = Offset(view.last_offset + 1)
    return values


def all_but(*lost: int) -> dict[int, bytes]:
    return {number: b"%05d" % number for number in range(COUNT) if number not in lost}


def kept_files(disk: SimulatedDisk) -> dict[str, bytes]:
    names = [entry.name for entry in disk.list(PATH)]
    return {name: disk.read_file(f"{PATH}/{name}") for name in names if name.endswith(SUFFIX)}


def bad_checksum(disk: SimulatedDisk, base: int, number: int) -> None:
    flip(disk, segment_path(base), (number + 1) * SIZE - 2)


def bad_length(disk: SimulatedDisk, base: int, number: int) -> None:
    flip(disk, segment_path(base), number * SIZE + 8)


def bad_magic(disk: SimulatedDisk, base: int, number: int) -> None:
    flip(disk, segment_path(base), number * SIZE + 16)


def offset_too_large(disk: SimulatedDisk, base: int, number: int) -> None:
    content = bytearray(disk.read_file(segment_path(base)))
    content[number * SIZE + 6] ^= 0x40
    overwrite(disk, segment_path(base), bytes(content))


def offset_far_too_large(disk: SimulatedDisk, base: int, number: int) -> None:
    content = bytearray(disk.read_file(segment_path(base)))
    content[number * SIZE + 2] ^= 0x40
    overwrite(disk, segment_path(base), bytes(content))


def zeros(disk: SimulatedDisk, base: int, number: int) -> None:
    content = bytearray(disk.read_file(segment_path(base)))
    content[number * SIZE : (number + 1) * SIZE] = bytes(SIZE)
    overwrite(disk, segment_path(base), bytes(content))


DAMAGES = [bad_checksum, bad_length, bad_magic, offset_too_large, offset_far_too_large, zeros]
DamageOne = Callable[[SimulatedDisk, int, int], None]


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("damage", DAMAGES)
def test_only_the_damaged_batch_is_lost(damage: DamageOne, number: int) -> None:
    disk = disk_of(written_log())
    before = disk.read_file(segment_path(3))
    damage(disk, 3, number)
    damaged = disk.read_file(segment_path(3))[number * SIZE : (number + 1) * SIZE]
    log = load(disk, synced=COUNT)
    assert values_of(log) == all_but(3 + number)
    assert log.log_end_offset == COUNT
    (found,) = log.damages
    assert (found.first_offset, found.next_offset, found.was_synced) == (3 + number, 4 + number, True)
    assert (found.position, found.size_bytes) == (number * SIZE, SIZE)
    if any(damaged):
        assert list(kept_files(disk).values()) == [damaged]
        assert found.kept == f"{PATH}/{next(iter(kept_files(disk)))}"
    # The others are to the byte what they were.
    after = disk.read_file(segment_path(3))
    for other in {0, 1, 2} - {number}:
        assert before[other * SIZE : (other + 1) * SIZE] in after
    # New records get new offsets, and the next start has nothing to say, but knows what is to be fetched.
    append(log)
    assert offsets_of(log)[-1] == (COUNT, COUNT)
    log.flush()
    again = load(disk, synced=COUNT + 1)
    assert (again.damages, again.bridged) == ((), ((3 + number, 4 + number),))
    assert values_of(again).keys() - {COUNT} == all_but(3 + number).keys()


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_end_of_the_log_does_not_move_if_its_last_batch_is_damaged(damage: DamageOne) -> None:
    disk = disk_of(written_log())
    damage(disk, 9, 2)
    log = load(disk, synced=COUNT)
    assert values_of(log) == all_but(11)
    assert log.log_end_offset == COUNT
    assert log.damages[0].words.startswith("orders-0 is damaged: offsets 11 to 11 are lost, ")
    append(log)
    assert offsets_of(log)[-1] == (COUNT, COUNT)


def test_several_damages_in_several_segments_are_each_reported() -> None:
    disk = disk_of(written_log())
    for base, number in ((0, 0), (0, 2), (6, 1), (9, 0)):
        bad_checksum(disk, base, number)
    log = load(disk, synced=COUNT)
    assert values_of(log) == all_but(0, 2, 7, 9)
    assert [damage.first_offset for damage in log.damages] == [0, 2, 7, 9]
    assert len(kept_files(disk)) == 4


def test_what_was_never_synced_is_cut_but_kept_aside() -> None:
    """Batches behind a hole may be there after a power cut, and a retry of the lost one is no duplicate."""
    disk = disk_of(written_log())
    before = disk.read_file(segment_path(3))
    later = disk.read_file(segment_path(6))
    bad_checksum(disk, 3, 1)
    damaged = disk.read_file(segment_path(3))[SIZE:]
    log = load(disk, synced=2)
    assert values_of(log) == {number: b"%05d" % number for number in range(4)}
    assert log.log_end_offset == 4
    kept = kept_files(disk)
    assert damaged in kept.values()
    assert later in kept.values()
    assert before[2 * SIZE :] in damaged
    assert [damage.was_synced for damage in log.damages] == [False] * 3
    assert all(damage.holds_batches for damage in log.damages)
    assert load(disk, synced=2).damages == ()


def test_a_torn_tail_is_cut_and_told() -> None:
    disk = disk_of(written_log())
    extend(disk, segment_path(9), bytes(batch())[:40])
    log = load(disk, synced=COUNT)
    assert values_of(log) == all_but()
    (damage,) = log.damages
    assert (damage.was_synced, damage.holds_batches, damage.size_bytes) == (False, False, 40)
    assert "never synced" in damage.words


@pytest.mark.parametrize("tail", [b"\xff" * 100, b"garbage" * 9, bytes(70), b"x"])
@pytest.mark.parametrize("recovery_point", [0, 2, 6])
def test_extra_bytes_behind_an_old_segment_take_nothing(tail: bytes, recovery_point: int) -> None:
    disk = disk_of(written_log())
    extend(disk, segment_path(3), tail)
    log = load(disk, synced=COUNT, recovery_point=recovery_point)
    assert values_of(log) == all_but()
    (damage,) = log.damages
    assert "no offset is lost" in damage.words
    assert list(kept_files(disk).values()) == ([tail] if any(tail) else [])


def test_a_start_that_cuts_before_old_segments_does_not_look_for_their_snapshots() -> None:
    disk = disk_of(written_log())
    extend(disk, segment_path(3), b"garbage")
    log = load(disk)
    assert log.log_end_offset == 6
    assert len(kept_files(disk)) == 3


def test_a_missing_segment_is_noticed_and_its_offsets_are_not_used_again() -> None:
    disk = disk_of(written_log())
    disk.remove(segment_path(6))
    log = load(disk, synced=COUNT)
    assert values_of(log) == all_but(6, 7, 8)
    assert [(damage.first_offset, damage.next_offset) for damage in log.damages] == [(6, 9)]
    disk.remove(segment_path(9))
    log = load(disk, synced=COUNT)
    assert log.log_end_offset == COUNT
    assert [(damage.first_offset, damage.next_offset) for damage in log.damages] == [(9, 12)]


def test_a_log_without_any_segment_goes_on_where_it_was() -> None:
    disk = disk_of(written_log())
    for base in (0, 3, 6, 9):
        disk.remove(segment_path(base))
    log = load(disk, synced=COUNT)
    assert (log.log_start_offset, log.log_end_offset) == (COUNT, COUNT)
    assert [(damage.first_offset, damage.next_offset) for damage in log.damages] == [(0, 12)]


def test_a_batch_within_a_damaged_batch_is_not_taken_for_one() -> None:
    """A record may hold a whole batch, and somebody may hope that it comes to light."""
    inner = bytes(build_batch([Record(4, NOW_MS, None, b"inner")], base_offset=4))
    config = LogConfig(verifies_transactions=False)
    log = new_log(config)
    append(log, batch())
    append(log, batch(3, value=inner))
    append(log, batch())
    log.flush()
    disk = disk_of(log)
    flip(disk, segment_path(0), SIZE + 70)
    again = load(disk, config, synced=5)
    assert offsets_of(again) == [(0, 0), (1, 3), (4, 4)]
    assert b"inner" not in disk.read_file(segment_path(0))


@pytest.mark.parametrize("kind", ["log", "index", "timeindex", "snapshot"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_files_of_any_content_never_stop_a_start(kind: str, is_clean: bool) -> None:
    for content in (b"", b"\x00" * 100, b"\xff" * 300, b"garbage" * 30):
        log = written_log()
        log.close()
        disk = disk_of(log)
        names = [name for name in files_of(log) if name.endswith(f".{kind}")]
        for name in names:
            copy = disk.copy()
            overwrite(copy, f"{PATH}/{name}", content)
            again = load(copy, synced=COUNT, recovery_point=COUNT, is_clean=is_clean)
            assert again.log_end_offset == COUNT
            if kind != "log":
                assert values_of(again) == all_but()


def stop(log: Log) -> StoppedLog:
    log.close()
    return state_of(log)


def test_a_clean_start_that_finds_everything_reads_no_old_segment() -> None:
    log = written_log()
    stopped = stop(log)
    disk = disk_of(log)
    before = disk.counters.read_bytes
    load(disk, recovery_point=COUNT, is_clean=True, stopped=stopped)
    with_list = disk.counters.read_bytes - before
    before = disk.counters.read_bytes
    load(disk, recovery_point=COUNT, is_clean=True)
    assert with_list == disk.counters.read_bytes - before


@pytest.mark.parametrize("base", [0, 3, 9])
def test_a_segment_that_is_missing_after_a_clean_stop_is_told(base: int) -> None:
    log = written_log()
    stopped = stop(log)
    disk = disk_of(log)
    disk.remove(segment_path(base))
    again = load(disk, recovery_point=COUNT, is_clean=True, stopped=stopped)
    assert values_of(again) == all_but(base, base + 1, base + 2)
    assert [(damage.first_offset, damage.next_offset) for damage in again.damages] == [(base, base + 3)]
    assert again.log_end_offset == COUNT


def test_a_segment_that_was_cut_after_a_clean_stop_is_told() -> None:
    log = written_log()
    stopped = stop(log)
    disk = disk_of(log)
    disk.open(segment_path(3)).truncate(2 * SIZE)
    again = load(disk, recovery_point=COUNT, is_clean=True, stopped=stopped)
    assert values_of(again) == all_but(5)
    assert [(damage.first_offset, damage.next_offset) for damage in again.damages] == [(5, 6)]


def test_bytes_behind_the_last_batch_after_a_clean_stop_are_kept() -> None:
    log = written_log()
    log.close()
    disk = disk_of(log)
    extend(disk, segment_path(9), b"garbage")
    again = load(disk, recovery_point=COUNT, is_clean=True)
    assert values_of(again) == all_but()
    assert list(kept_files(disk).values()) == [b"garbage"]


# Transactions.

TRANSACTIONAL = LogConfig(segment_bytes=6 * SIZE, index_interval_bytes=0, verifies_transactions=False)


def aborted_of(log: Log) -> list[tuple[int, int]]:
    result = log.read(log.log_start_offset, 1 << 20, ReadLimit.LAST_STABLE)
    return [(ranged.producer_id, ranged.first_offset) for ranged in result.aborted or ()]


def place_of(disk: SimulatedDisk, offset: int) -> tuple[str, int]:
    """Return the path of the segment that holds an offset, and the position behind its batch."""
    for entry in disk.list(PATH):
        file = find_segment_file(entry.name)
        if file is None or not entry.name.endswith(".log"):
            continue
        position = 0
        for view in iter_batches(memoryview(disk.read_file(f"{PATH}/{entry.name}"))):
            position += view.size_bytes
            if view.base_offset == offset:
                return f"{PATH}/{entry.name}", position
    raise AssertionError(offset)


def damage_offset(disk: SimulatedDisk, offset: int) -> None:
    path, end = place_of(disk, offset)
    flip(disk, path, end - 1)


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_lost_marker_aborts_its_transaction_and_no_other(is_commit: bool) -> None:
    log = new_log(TRANSACTIONAL)
    append_transactional(log, 9, 0)
    append_transactional(log, 8, 0)
    end_transaction(log, 9, is_commit=is_commit)
    append_transactional(log, 9, 1)
    end_transaction(log, 9, is_commit=True)
    log.flush()
    disk = disk_of(log)
    damage_offset(disk, 2)
    again = load(disk, TRANSACTIONAL, synced=5)
    assert again.damages[0].aborted == (9,)
    assert list(again.producer_state.open_transactions.items()) == [(1, 8)]
    end_transaction(again, 8, is_commit=True)
    # Only what came before the lost marker is hidden. What was committed after it is not.
    assert aborted_of(again) == [(9, 0)]
    assert again.last_stable_offset == again.log_end_offset
    views = list(iter_batches(memoryview(again.read(Offset(0), 1 << 20).read())))
    assert [(view.base_offset, view.is_control) for view in views][2] == (2, True)


def test_lost_data_of_a_transaction_does_not_end_it() -> None:
    log = new_log(TRANSACTIONAL)
    append_transactional(log, 9, 0)
    append_transactional(log, 9, 1)
    end_transaction(log, 9, is_commit=True)
    log.flush()
    disk = disk_of(log)
    damage_offset(disk, 1)
    again = load(disk, TRANSACTIONAL, synced=3)
    assert again.damages[0].aborted == ()
    assert aborted_of(again) == []
    assert again.last_stable_offset == 3


@pytest.mark.parametrize("is_commit", [True, False])
def test_intact_files_around_it_tell_how_a_lost_transaction_ended(is_commit: bool) -> None:
    log = new_log(TRANSACTIONAL)
    append_transactional(log, 9, 0)
    end_transaction(log, 9, is_commit=is_commit)
    for _ in range(10):
        append(log)
    log.close()
    disk = disk_of(log)
    damage_offset(disk, 1)
    disk.remove(segment_path(0, "index"))
    again = load(disk, TRANSACTIONAL, recovery_point=12, is_clean=True)
    assert again.damages[0].aborted == (() if is_commit else (9,))
    assert aborted_of(again) == ([] if is_commit else [(9, 0)])


def test_a_missing_transaction_index_is_made_again_after_a_clean_stop() -> None:
    log = new_log(TRANSACTIONAL)
    append_transactional(log, 9, 0)
    end_transaction(log, 9, is_commit=False)
    for _ in range(10):
        append(log)
    stopped = stop(log)
    disk = disk_of(log)
    before = disk.read_file(segment_path(0, "txnindex"))
    disk.remove(segment_path(0, "txnindex"))
    again = load(disk, TRANSACTIONAL, recovery_point=12, is_clean=True, stopped=stopped)
    assert aborted_of(again) == [(9, 0)]
    assert disk.read_file(segment_path(0, "txnindex")) == before
    assert again.damages == ()


def test_a_repair_survives_a_power_cut_at_any_step() -> None:
    damaged = disk_of(written_log())
    bad_checksum(damaged, 3, 1)
    bad_checksum(damaged, 9, 2)
    for entry in damaged.list(PATH):
        damaged.open(f"{PATH}/{entry.name}").sync()
    damaged.sync_directory(PATH)
    _repair_with_power_cuts(damaged)


def _repair_with_power_cuts(damaged: SimulatedDisk) -> None:
    from random import Random

    from ottla.testing.simulated_disk import PowerCut

    for seed in range(120):
        disk = damaged.copy()
        disk.cut_power_after(1 + seed % 40)
        try:
            load(disk, synced=COUNT)
        except PowerCut:
            disk.cut_power(Random(seed))
        else:
            disk.cut_power(Random(seed))
        log = load(disk, synced=COUNT)
        assert values_of(log) == all_but(4, 11), seed
        assert log.log_end_offset == COUNT
        assert len(set(kept_files(disk).values())) == 2, seed


def test_nothing_that_is_kept_is_ever_overwritten() -> None:
    disk = disk_of(written_log())
    for _ in range(3):
        path, end = place_of(disk, 4)
        content = bytearray(disk.read_file(path))
        content[end - 2] ^= 0xFF
        overwrite(disk, path, bytes(content))
        load(disk, synced=COUNT)
    # The second time it is the empty batch in the place of the first that is damaged.
    assert sum(1 for _ in kept_files(disk)) >= 2


def test_an_empty_directory_stays_an_empty_log() -> None:
    assert load(new_disk()).damages == ()


# While serving.


def test_a_reader_gets_past_damage_that_a_clean_start_did_not_see() -> None:
    log = written_log()
    log.close()
    disk = disk_of(log)
    bad_length(disk, 3, 1)
    again = load(disk, recovery_point=COUNT, is_clean=True)
    assert again.damages == ()
    told: list[Damage] = []
    again.volume.tell = told.append
    last = disk.read_file(segment_path(3))[2 * SIZE :]
    for offset in (4, 5, 4):
        assert again.read(Offset(offset), 1).read() == last
    assert [(damage.first_offset, damage.next_offset, damage.size_bytes) for damage in told] == [(4, 5, SIZE)]
    assert again.damages == tuple(told)
