"""How dirty a log is, how far it may be cleaned, and which of several goes first."""

from dataclasses import replace

import pytest
from tests.unit.storage.logs import NOW_MS, append, append_transactional, batch, new_log

from ottla.model.ids import Offset
from ottla.storage.compaction.candidates import Candidate, choose_dirtiest, find_candidate
from ottla.storage.config import LogConfig
from ottla.storage.log import Log

SIZE = len(batch())
CONFIG = LogConfig(
    segment_bytes=2 * SIZE,
    is_compacted=True,
    is_deleted=False,
    verifies_transactions=False,
    segment_ms=1 << 40,
)
DAY_MS = 24 * 3_600_000


def log_of(count: int, config: LogConfig = CONFIG, hours_apart: int = 0) -> Log:
    """Write a log of two batches to a segment, each an hour or so after the other."""
    log = new_log(config)
    for number in range(count):
        append(
            log, batch(timestamps=[NOW_MS + number * hours_apart * 3_600_000]), now_ms=NOW_MS + 100 * DAY_MS
        )
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    return log


def test_everything_but_the_active_segment_is_dirty_at_first() -> None:
    candidate = find_candidate(log_of(7), None, NOW_MS)
    assert (candidate.first_dirty_offset, candidate.end_offset) == (0, 6)
    assert (candidate.clean_bytes, candidate.cleanable_bytes) == (0, 6 * SIZE)
    assert candidate.dirty_ratio == 1.0
    assert candidate.is_worth_cleaning


def test_what_was_cleaned_counts_as_clean() -> None:
    candidate = find_candidate(log_of(11), Offset(8), NOW_MS)
    assert (candidate.first_dirty_offset, candidate.end_offset) == (8, 10)
    assert (candidate.clean_bytes, candidate.cleanable_bytes) == (8 * SIZE, 2 * SIZE)
    assert not candidate.is_worth_cleaning


def test_a_log_without_inactive_segments_has_nothing_to_clean() -> None:
    candidate = find_candidate(log_of(1), None, NOW_MS)
    assert candidate.cleanable_bytes == 0
    assert not candidate.is_worth_cleaning


def test_an_empty_log_has_nothing_to_clean() -> None:
    candidate = find_candidate(log_of(0), None, NOW_MS)
    assert candidate.dirty_ratio == 0.0
    assert not candidate.is_worth_cleaning


@pytest.mark.parametrize(("high_watermark", "end"), [(7, 6), (5, 4), (4, 4), (1, 0)])
def test_nothing_is_cleaned_above_the_high_watermark(high_watermark: int, end: int) -> None:
    log = log_of(7)
    log.update_high_watermark(Offset(high_watermark))
    assert find_candidate(log, None, NOW_MS).end_offset == end


def test_nothing_is_cleaned_above_an_open_transaction() -> None:
    log = log_of(3)
    append_transactional(log, 7, 0)
    for _ in range(4):
        append(log, batch())
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 3
    assert find_candidate(log, None, NOW_MS).end_offset == 2


def test_nothing_is_cleaned_that_was_not_synced() -> None:
    log = log_of(5)
    for _ in range(4):
        append(log, batch())
    log.update_high_watermark(log.log_end_offset)
    assert log.recovery_point == 5
    assert find_candidate(log, None, NOW_MS).end_offset == 4


def test_young_records_are_left_alone() -> None:
    config = replace(CONFIG, min_compaction_lag_ms=10 * 3_600_000)
    log = log_of(9, config, hours_apart=1)
    # Eight hours after the first: records of the last eight are too young, which leaves none.
    assert find_candidate(log, None, NOW_MS + 8 * 3_600_000).end_offset == 0
    assert find_candidate(log, None, NOW_MS + 14 * 3_600_000).end_offset == 4


def test_an_old_record_makes_a_log_overdue() -> None:
    config = replace(CONFIG, max_compaction_lag_ms=DAY_MS)
    log = log_of(11, config)
    young = find_candidate(log, Offset(8), NOW_MS + DAY_MS)
    assert not young.is_overdue
    old = find_candidate(log, Offset(8), NOW_MS + DAY_MS + 1)
    assert old.is_overdue
    assert old.is_worth_cleaning


@pytest.mark.parametrize("checkpoint", [99, 1])
def test_a_checkpoint_that_does_not_fit_is_dropped(checkpoint: int) -> None:
    log = log_of(7)
    log.log_start_offset = Offset(2)
    candidate = find_candidate(log, Offset(checkpoint), NOW_MS)
    assert candidate.checkpoint_is_stale
    assert candidate.first_dirty_offset == 2


def test_the_dirtiest_goes_first() -> None:
    logs = [log_of(11), log_of(11), log_of(11)]
    candidates = [
        find_candidate(log, Offset(checkpoint), NOW_MS)
        for log, checkpoint in zip(logs, (4, 2, 8), strict=True)
    ]
    chosen = choose_dirtiest(candidates)
    assert isinstance(chosen, Candidate)
    assert chosen.first_dirty_offset == 2
    assert choose_dirtiest([candidates[2]]) is None
    assert choose_dirtiest([]) is None
