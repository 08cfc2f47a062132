"""Cleaning a log of which records were deleted, up to an offset within a segment."""

from tests.unit.storage.compaction.whole_round import run_round
from tests.unit.storage.logs import (
    NOW_MS,
    PATH,
    append,
    append_transactional,
    batch,
    disk_of,
    end_transaction,
    files_of,
    new_log,
    open_log,
)

from ottla.model.ids import Offset
from ottla.storage.compaction.candidates import find_candidate
from ottla.storage.config import LogConfig

CONFIG = LogConfig(
    segment_bytes=4 * len(batch()), is_compacted=True, delete_retention_ms=0, verifies_transactions=False
)


def test_an_aborted_transaction_below_the_log_start_does_not_open_again() -> None:
    log = new_log(CONFIG)
    append_transactional(log, 9, 0)
    end_transaction(log, 9, is_commit=False)
    for _ in range(6):
        append(log)
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    log.increment_log_start_offset(Offset(2))
    # The first round gives markers their horizons, and the second takes those that have passed.
    for later_ms in (1, 1000):
        run_round(find_candidate(log, None, NOW_MS + later_ms), NOW_MS + later_ms, 1 << 20)
    log.flush()
    disk = disk_of(log)
    disk.kill()
    for name in files_of(log):
        if name.endswith(".snapshot"):
            disk.remove(f"{PATH}/{name}")

    again = open_log(disk, CONFIG)

    again.update_high_watermark(again.log_end_offset)
    assert again.last_stable_offset == again.log_end_offset
