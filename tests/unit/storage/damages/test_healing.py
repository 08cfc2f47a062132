"""Damage that is found while a log is in use, kept from readers, and healed from another replica."""

import pytest
from tests.unit.storage.damages.test_damage import COUNT, SIZE, written_log
from tests.unit.storage.loading.test_load import flip, overwrite
from tests.unit.storage.logs import NOW_MS, append, batch, disk_of, files_of, new_log, offsets_of

from ottla.model.ids import Offset
from ottla.records.batch import iter_batches
from ottla.storage.compaction.swap import finish_swap, replace_segments, stage_swap
from ottla.storage.config import LogConfig
from ottla.storage.damages.checking import check_segment, is_same_segment, plan_check
from ottla.storage.damages.damage import SUFFIX
from ottla.storage.damages.gaps import note_checked
from ottla.storage.damages.splicing import (
    Received,
    keep_damage,
    plan_splice,
    put_back,
    read_damage,
    write_again,
    write_over,
)
from ottla.storage.damages.unhealed import Unhealed
from ottla.storage.errors import DamagedRecords
from ottla.storage.log import Log
from ottla.storage.names import FileKind, segment_file_name
from ottla.storage.read import ReadLimit
from ottla.storage.truncation import takes_damage

MAGIC_AT = 16
PAYLOAD_AT = 70


def find_damage(log: Log, offset: int | None = None) -> list[Unhealed]:
    task = plan_check(log, None if offset is None else Offset(offset))
    found: list[Unhealed] = []
    for segment in task.segments:
        for step in check_segment(log.volume.disk, segment, task.epochs):
            if not isinstance(step, int):
                found += step
    assert all(is_same_segment(log, one, task.segments) for one in found)
    return found


def damage(log: Log, offset: int, at: int = PAYLOAD_AT) -> None:
    """Flip a bit of the batch at `offset`; all of them have the same size."""
    segment = next(log.segments_from(Offset(offset)))
    flip(disk_of(log), segment.file.path, (offset - segment.base_offset) * SIZE + at)


def sound_bytes(offset: int, count: int = 1) -> memoryview:
    """Return what an undamaged replica has."""
    log = written_log()
    return memoryview(log.read(Offset(offset), count * SIZE, ReadLimit.LOG_END).read())


def test_a_sound_log_has_no_damage() -> None:
    assert find_damage(written_log()) == []


@pytest.mark.parametrize("at", range(SIZE))
def test_no_damaged_byte_goes_unnoticed(at: int) -> None:
    log = written_log()
    damage(log, 4, at)
    (found,) = find_damage(log)
    assert (found.first_offset, found.next_offset) == (4, 5)
    assert (found.base_offset, found.position, found.end) == (3, SIZE, 2 * SIZE)


def test_what_is_not_synced_is_looked_at_only_if_somebody_has_met_something_strange() -> None:
    log = written_log()
    append(log)
    damage(log, COUNT)
    assert find_damage(log) == []
    assert len(find_damage(log, COUNT)) == 1
    log.flush()
    assert len(find_damage(log)) == 1


BASE_OFFSET_BYTES = range(8)


@pytest.mark.parametrize("at", BASE_OFFSET_BYTES)
@pytest.mark.parametrize("offset", [3, 4, 5, COUNT - 1, COUNT, COUNT + 1])
def test_a_wrong_base_offset_is_put_right_without_another_replica(offset: int, at: int) -> None:
    log, sound = written_log(), written_log()
    for one in (log, sound):
        # The last two are not synced.
        append(one)
        append(one)
    damage(log, offset, at)
    (found,) = log.unhealed = tuple(find_damage(log, offset))
    assert (found.first_offset, found.next_offset, found.is_displaced) == (offset, offset + 1, True)
    splice = plan_splice(log, found, put_back(log, found))
    assert splice is not None
    write_over(disk_of(log), splice)
    log.unhealed = ()
    path = next(log.segments_from(Offset(offset))).file.path
    assert disk_of(log).read_file(path) == disk_of(sound).read_file(path)
    assert offsets_of(log) == offsets_of(sound)


@pytest.mark.parametrize("at", [*range(8, SIZE)])
def test_only_a_wrong_base_offset_can_be_put_right(at: int) -> None:
    log = written_log()
    damage(log, 4, at)
    (found,) = find_damage(log)
    assert not found.is_displaced


def test_in_a_log_with_gaps_nobody_knows_which_base_offset_is_wrong() -> None:
    log = new_log(LogConfig(is_compacted=True))
    for base_offset in (0, 1, 6, 7, 8):
        log.append_as_follower(batch(base_offset=base_offset, value=b"%05d" % base_offset))
    log.flush()
    # 7 becomes 5, which fits behind 1: then 6 looks like the one that is wrong.
    path = log.segments[0].file.path
    content = bytearray(disk_of(log).read_file(path))
    content[3 * len(content) // 5 + 7] ^= 7 ^ 5
    overwrite(disk_of(log), path, bytes(content))
    found = find_damage(log)
    assert found
    assert not any(one.is_displaced for one in found)


@pytest.mark.parametrize("at", BASE_OFFSET_BYTES)
@pytest.mark.parametrize("offset", [3, 4, 5])
def test_nobody_is_led_past_a_wrong_base_offset(offset: int, at: int) -> None:
    log = written_log()
    told: list[int] = []
    log.when_damaged = told.append
    damage(log, offset, at)
    with pytest.raises(DamagedRecords):
        log.read(Offset(offset), 1 << 20, ReadLimit.LOG_END)
    assert told == [offset]
    note_checked(log, plan_check(log, Offset(7)).segments)
    with pytest.raises(DamagedRecords):
        log.read(Offset(offset), 1 << 20, ReadLimit.LOG_END)


def test_gaps_of_a_segment_are_checked_once() -> None:
    log = new_log()
    told: list[int] = []
    log.when_damaged = told.append
    for base_offset in (0, 5, 10, 15):
        log.append_as_follower(batch(base_offset=base_offset))
    with pytest.raises(DamagedRecords):
        log.read(Offset(1), 1 << 20, ReadLimit.LOG_END)
    assert told == [1]
    note_checked(log, plan_check(log, Offset(1)).segments)
    for offset in (1, 6, 12):
        assert log.read(Offset(offset), 1 << 20, ReadLimit.LOG_END).length > 0
    log.truncate_to(Offset(11), NOW_MS)
    with pytest.raises(DamagedRecords):
        log.read(Offset(1), 1 << 20, ReadLimit.LOG_END)


@pytest.mark.parametrize(
    ("config", "high_watermark", "is_checked"),
    [
        (LogConfig(is_mirror=True), 0, False),
        (LogConfig(is_compacted=True), 5, False),
        (LogConfig(is_compacted=True), 4, True),
        (LogConfig(), 6, True),
    ],
)
def test_gaps_that_the_settings_explain_are_not_checked(
    config: LogConfig, high_watermark: int, is_checked: bool
) -> None:
    log = new_log(config)
    told: list[int] = []
    log.when_damaged = told.append
    for base_offset in (0, 5):
        log.append_as_follower(batch(base_offset=base_offset))
    log.update_high_watermark(Offset(high_watermark))
    if is_checked:
        with pytest.raises(DamagedRecords):
            log.read(Offset(1), 1 << 20, ReadLimit.LOG_END)
    else:
        assert log.read(Offset(1), 1 << 20, ReadLimit.LOG_END).batch_offset == 5
    assert told == ([1] if is_checked else [])


def test_a_check_of_a_log_without_gaps_explains_none_that_come_later() -> None:
    log = written_log()
    log.when_damaged = lambda _offset: None
    note_checked(log, plan_check(log).segments)
    path = log.segments[1].file.path
    content = bytearray(disk_of(log).read_file(path))
    content[7] ^= 3 ^ 4
    overwrite(disk_of(log), path, bytes(content))
    with pytest.raises(DamagedRecords):
        log.read(Offset(3), 1 << 20, ReadLimit.LOG_END)


def test_only_the_segment_in_question_is_read() -> None:
    log = written_log()
    damage(log, 4)
    assert find_damage(log, 7) == []
    assert len(find_damage(log, 3)) == 1


def test_readers_see_what_is_sound_and_are_kept_away_from_the_rest() -> None:
    log = written_log()
    damage(log, 4, MAGIC_AT)
    log.unhealed = tuple(find_damage(log))
    before = log.read(Offset(3), 1 << 20, ReadLimit.LOG_END).read()
    assert [one.base_offset for one in iter_batches(memoryview(before))] == [3]
    with pytest.raises(DamagedRecords, match="offsets 4 to 4 of orders-0"):
        log.read(Offset(4), 1 << 20, ReadLimit.LOG_END)
    after = log.read(Offset(6), 1 << 20, ReadLimit.LOG_END).read()
    assert [one.base_offset for one in iter_batches(memoryview(after))] == [6, 7, 8]
    with pytest.raises(DamagedRecords):
        log.offset_for_timestamp(NOW_MS)


def test_readers_go_on_behind_damage_that_is_being_healed() -> None:
    log = written_log(LogConfig())
    log.when_damaged = lambda _offset: pytest.fail("everybody knows")
    damage(log, 3, MAGIC_AT)
    damage(log, 5, MAGIC_AT)
    log.unhealed = tuple(find_damage(log))
    for offset, sound in ((4, [4]), (6, [6, 7, 8, 9, 10, 11])):
        data = log.read(Offset(offset), 1 << 20, ReadLimit.LOG_END).read()
        assert [one.base_offset for one in iter_batches(memoryview(data))] == sound


def test_somebody_is_told_of_bytes_that_are_no_batch_and_nobody_led_past_them() -> None:
    log = written_log()
    told: list[int] = []
    log.when_damaged = told.append
    damage(log, 4, MAGIC_AT)
    with pytest.raises(DamagedRecords):
        log.read(Offset(4), 1 << 20, ReadLimit.LOG_END)
    assert told == [4]


def test_readers_are_led_past_what_no_replica_has() -> None:
    log = written_log()
    log.when_damaged = lambda _offset: pytest.fail("everybody knows")
    damage(log, 4, MAGIC_AT)
    log.lost = tuple(find_damage(log))
    after = log.read(Offset(4), 1 << 20, ReadLimit.LOG_END).read()
    assert [one.base_offset for one in iter_batches(memoryview(after))] == [5]
    log.truncate_to(Offset(4), NOW_MS)
    assert log.lost == ()


def test_the_same_bytes_are_written_over_the_damage() -> None:
    log, sound = written_log(), written_log()
    damage(log, 4)
    (found,) = log.unhealed = tuple(find_damage(log))
    received = Received(found, log.leader_epochs)
    # Another replica sends more than what is missing.
    assert received.take(sound_bytes(3, 3))
    assert received.is_complete
    splice = plan_splice(log, found, received.content)
    assert splice is not None
    assert splice.fits
    disk = disk_of(log)
    damaged = read_damage(disk, splice)
    kept = keep_damage(disk, splice)
    assert kept.endswith(SUFFIX)
    assert disk.read_file(kept) == damaged != received.content
    write_over(disk, splice)
    log.unhealed = ()
    assert find_damage(log) == []
    assert offsets_of(log) == offsets_of(sound)
    path = log.segments[1].file.path
    assert disk.read_file(path) == disk_of(sound).read_file(path)


def test_a_segment_is_written_again_where_sizes_differ() -> None:
    log = written_log()
    damage(log, 4)
    (found,) = log.unhealed = tuple(find_damage(log))
    # The other replica was compacted: it has nothing there.
    received = Received(found, log.leader_epochs)
    assert received.take(sound_bytes(5))
    assert received.is_complete
    splice = plan_splice(log, found, received.content)
    assert splice is not None
    assert not splice.fits
    disk = disk_of(log)
    cleaned = write_again(disk, splice)
    stage_swap(disk, log.path, (cleaned,))
    replacement = replace_segments(log, (cleaned,), (Offset(3),), log.truncations)
    assert replacement is not None
    finish_swap(log, replacement)
    log.unhealed = ()
    assert find_damage(log) == []
    assert [first for first, _ in offsets_of(log)] == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert not [name for name in files_of(log) if name.endswith((".cleaned", ".swap"))]


@pytest.mark.parametrize("what", ["damaged", "another epoch", "another batch"])
def test_what_was_not_here_is_not_taken(what: str) -> None:
    log = written_log()
    damage(log, 4)
    (found,) = find_damage(log)
    records = bytearray(sound_bytes(4))
    if what == "damaged":
        records[PAYLOAD_AT] ^= 1
    elif what == "another epoch":
        records[15] ^= 1
    else:
        records = bytearray(batch(2, base_offset=4, leader_epoch=0))
    assert not Received(found, log.leader_epochs).take(memoryview(records))


@pytest.mark.parametrize("at", [MAGIC_AT, PAYLOAD_AT])
def test_a_cut_takes_the_damage_below_it_in_the_same_segment_too(at: int) -> None:
    log = written_log()
    damage(log, 4, at)
    log.unhealed = tuple(find_damage(log))
    assert takes_damage(log, Offset(5))
    log.truncate_to(Offset(5), NOW_MS)
    assert log.log_end_offset == 4
    assert log.unhealed == ()
    append(log, batch(timestamps=[NOW_MS]))
    assert [first for first, _ in offsets_of(log)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("cut", [6, 8])
@pytest.mark.parametrize("at", [MAGIC_AT, PAYLOAD_AT])
def test_a_cut_leaves_the_damage_of_earlier_segments_where_it_is(at: int, cut: int) -> None:
    log = written_log()
    damage(log, 4, at)
    log.unhealed = found = tuple(find_damage(log))
    assert not takes_damage(log, Offset(cut))
    log.truncate_to(Offset(cut), NOW_MS)
    assert log.log_end_offset == cut
    assert log.unhealed == found


def test_a_cut_takes_damage_behind_which_the_producers_are_not_known() -> None:
    log = written_log()
    damage(log, 4)
    log.unhealed = tuple(find_damage(log))
    disk_of(log).remove(f"{log.path}/{segment_file_name(Offset(6), FileKind.PRODUCER_SNAPSHOT)}")
    assert takes_damage(log, Offset(8))
    log.truncate_to(Offset(8), NOW_MS)
    assert log.log_end_offset == 4


def test_a_cut_below_damage_or_at_the_log_end_takes_nothing_that_is_not_asked_for() -> None:
    log = written_log()
    damage(log, 4)
    log.unhealed = tuple(find_damage(log))
    assert not takes_damage(log, Offset(4))
    assert not takes_damage(log, Offset(2))
    assert not takes_damage(log, Offset(COUNT))


def test_a_cut_above_sound_records_forgets_the_damage_behind_it() -> None:
    log = new_log(LogConfig(verifies_transactions=False))
    for number in range(COUNT):
        append(log, batch(timestamps=[NOW_MS + number], value=b"%05d" % number))
    log.flush()
    damage(log, 6)
    log.unhealed = tuple(find_damage(log))
    log.truncate_to(Offset(5), NOW_MS)
    assert log.log_end_offset == 5
    assert log.unhealed == ()
