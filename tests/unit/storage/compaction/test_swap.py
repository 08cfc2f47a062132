"""Swapping cleaned segments in: the log reads on, and refuses what no longer fits it."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.storage.compaction.whole_round import run_round
from tests.unit.storage.logs import (
    NOW_MS,
    PARTITION,
    PATH,
    append,
    batch,
    disk_of,
    files_of,
    new_log,
    open_log,
)

from ottla.model.ids import Offset
from ottla.runtime.disk import RealDisk
from ottla.storage.compaction.candidates import find_candidate
from ottla.storage.compaction.cleaning import CleanedGroup, clean
from ottla.storage.compaction.plan import is_overtaken, plan_cleaning
from ottla.storage.compaction.swap import discard_staged, finish_swap, replace_segments, stage_swap
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.read import ReadLimit
from ottla.storage.truncation import truncate_to
from ottla.storage.volume import Volume
from ottla.world.disk import Reason

SIZE = len(batch())
CONFIG = LogConfig(
    segment_bytes=2 * SIZE,
    index_interval_bytes=0,
    is_compacted=True,
    is_deleted=False,
    verifies_transactions=False,
)


def log_of(count: int) -> Log:
    """Write a log of which every record has the same key, two to a segment."""
    log = new_log(CONFIG)
    for _ in range(count):
        append(log, batch())
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    # Room for two of the segments in one.
    log.config = replace(CONFIG, segment_bytes=4 * SIZE)
    return log


def first_group(log: Log) -> CleanedGroup:
    task = plan_cleaning(find_candidate(log, None, NOW_MS), NOW_MS)
    return next(step for step in clean(task, disk_of(log), 1 << 20) if isinstance(step, CleanedGroup))


def offsets_read(log: Log) -> list[int]:
    """Read the whole log as a follower does, and return the base offsets of its batches."""
    found: list[int] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.read(offset, 1, ReadLimit.LOG_END)
        assert result.file is not None
        header = result.file.read(result.position, 61)
        found.append(int.from_bytes(header[:8]))
        offset = Offset(found[-1] + int.from_bytes(header[23:27]) + 1)
    return found


def test_a_round_leaves_the_newest_and_no_trace_of_itself() -> None:
    log = log_of(9)
    done = run_round(find_candidate(log, None, NOW_MS), NOW_MS, 1 << 20)
    assert offsets_read(log) == [7, 8]
    assert [segment.base_offset for segment in log.segments] == [0, 4, 8]
    assert len(done.deletions) == 2
    for deletion in done.deletions:
        deletion.run(disk_of(log))
    names = files_of(log)
    assert not [name for name in names if name.endswith((".swap", ".cleaned", ".deleted"))]
    assert "00000000000000000002.index" not in names


def test_the_log_can_be_read_at_every_step_of_a_swap() -> None:
    log = log_of(9)
    group = first_group(log)
    before = offsets_read(log)
    stage_swap(disk_of(log), PATH, (group.cleaned,))
    assert offsets_read(log) == before
    replacement = replace_segments(log, (group.cleaned,), group.replaced)
    assert replacement is not None
    after = offsets_read(log)
    assert after == [4, 5, 6, 7, 8]
    disk_of(log).sync_directory(PATH)
    finish_swap(log, replacement)
    assert offsets_read(log) == after


def test_a_reader_of_a_replaced_segment_can_finish() -> None:
    log = log_of(9)
    group = first_group(log)
    reading = log.read(Offset(0), SIZE, ReadLimit.LOG_END)
    assert reading.file is not None
    content = reading.file.read(reading.position, reading.length)
    stage_swap(disk_of(log), PATH, (group.cleaned,))
    replacement = replace_segments(log, (group.cleaned,), group.replaced)
    assert replacement is not None
    assert reading.file.read(reading.position, reading.length) == content


def test_appends_go_on_while_a_log_is_cleaned() -> None:
    log = log_of(9)
    group = first_group(log)
    append(log, batch())
    stage_swap(disk_of(log), PATH, (group.cleaned,))
    append(log, batch())
    replacement = replace_segments(log, (group.cleaned,), group.replaced)
    assert replacement is not None
    append(log, batch())
    disk_of(log).sync_directory(PATH)
    finish_swap(log, replacement)
    assert offsets_read(log) == [4, 5, 6, 7, 8, 9, 10, 11]


def test_a_result_for_segments_that_are_gone_is_refused() -> None:
    log = log_of(9)
    group = first_group(log)
    stage_swap(disk_of(log), PATH, (group.cleaned,))
    # As retention does.
    log.segments[:1] = []
    log.log_start_offset = Offset(2)
    assert replace_segments(log, (group.cleaned,), group.replaced) is None
    discard_staged(disk_of(log), PATH, (group.cleaned,))
    assert not [name for name in files_of(log) if name.endswith((".swap", ".cleaned"))]
    assert offsets_read(log) == [2, 3, 4, 5, 6, 7, 8]


def test_the_active_segment_is_never_replaced() -> None:
    log = log_of(9)
    group = first_group(log)
    stage_swap(disk_of(log), PATH, (group.cleaned,))
    # As truncation does.
    del log.segments[2:]
    assert replace_segments(log, (group.cleaned,), group.replaced) is None


def test_a_segment_that_left_the_log_before_its_names_were_final_is_left_alone() -> None:
    log = log_of(9)
    group = first_group(log)
    stage_swap(disk_of(log), PATH, (group.cleaned,))
    replacement = replace_segments(log, (group.cleaned,), group.replaced)
    assert replacement is not None
    del log.segments[0]
    finish_swap(log, replacement)
    assert "00000000000000000000.log" not in files_of(log)


def test_a_stop_between_the_steps_is_finished_by_the_next_start() -> None:
    log = log_of(9)
    group = first_group(log)
    stage_swap(disk_of(log), PATH, (group.cleaned,))
    assert replace_segments(log, (group.cleaned,), group.replaced) is not None
    after = offsets_read(log)
    log.close()
    again = open_log(disk_of(log), CONFIG, is_clean=True, recovery_point=9)
    assert offsets_read(again) == after
    assert "00000000000000000000.log" in files_of(again)


@pytest.mark.parametrize("operation", ["rename"])
def test_a_disk_that_fails_takes_the_directory_offline(operation: str) -> None:
    log = log_of(9)
    group = first_group(log)
    stage_swap(disk_of(log), PATH, (group.cleaned,))
    disk_of(log).fail(operation, Reason.IO_ERROR)
    with pytest.raises(LogDirectoryOffline):
        replace_segments(log, (group.cleaned,), group.replaced)
    with pytest.raises(LogDirectoryOffline):
        append(log, batch())


def test_no_file_stays_open_after_a_round(tmp_path: Path) -> None:
    disk = RealDisk()
    path = tmp_path / "orders-0"
    path.mkdir()
    log = load_log(Volume(disk, str(tmp_path)), LoadRequest(str(path), PARTITION, CONFIG, now_ms=NOW_MS))
    for _ in range(9):
        append(log, batch())
    log.flush()
    for deletion in run_round(find_candidate(log, None, NOW_MS), NOW_MS, 1 << 20).deletions:
        deletion.run(disk)
    held = [str(_target(entry)) for entry in Path("/proc/self/fd").iterdir()]
    assert any(str(path) in name for name in held), "the log itself has files open"
    assert not [name for name in held if str(path) in name and "(deleted)" in name]


def _target(entry: Path) -> Path | None:
    try:
        return entry.readlink()
    except FileNotFoundError:
        # The one that the directory was listed by.
        return None


def test_a_result_for_a_log_that_was_truncated_since_is_refused() -> None:
    """Though all of its segments are there again: what is in them may be another history."""
    log = log_of(9)
    task = plan_cleaning(find_candidate(log, None, NOW_MS), NOW_MS)
    group = next(step for step in clean(task, disk_of(log), 1 << 20) if isinstance(step, CleanedGroup))
    assert not is_overtaken(task, log)
    truncate_to(log, Offset(3), NOW_MS)
    for _ in range(6):
        append(log, batch())
    assert [segment.base_offset for segment in log.segments][:2] == [0, 2]
    stage_swap(disk_of(log), PATH, (group.cleaned,))
    assert is_overtaken(task, log)
    assert replace_segments(log, (group.cleaned,), group.replaced, group.truncations) is None


def test_letting_go_of_segments_overtakes_a_cleaning() -> None:
    log = log_of(9)
    task = plan_cleaning(find_candidate(log, None, NOW_MS), NOW_MS)
    log.log_start_offset = Offset(2)
    assert is_overtaken(task, log)
