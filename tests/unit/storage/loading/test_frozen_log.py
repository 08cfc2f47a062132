"""A loaded log, carried to another process and back."""

import pickle

import pytest
from tests.unit.storage.logs import (
    NOW_MS,
    append,
    append_transactional,
    batch,
    disk_of,
    end_transaction,
    new_log,
    offsets_of,
    open_log,
)

from ottla.storage.config import LogConfig
from ottla.storage.loading.frozen_log import freeze, thaw
from ottla.storage.log import Log
from ottla.storage.volume import Volume

CONFIG = LogConfig(
    segment_bytes=4 * len(batch()), index_interval_bytes=0, segment_jitter_ms=5, verifies_transactions=False
)


def carried(log: Log) -> Log:
    """Do what a recovery worker and its parent do with a log."""
    frozen = pickle.loads(pickle.dumps(freeze(log)))
    return thaw(frozen, Volume(disk_of(log), "/data", lambda bound_ms: bound_ms - 1), CONFIG)


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_carried_log_goes_on_like_the_original(is_clean: bool) -> None:
    original = new_log(CONFIG)
    for number in range(7):
        append(original, batch(timestamps=[NOW_MS + number]), leader_epoch=number // 3)
    append_transactional(original, 9, 0)
    end_transaction(original, 9, is_commit=False)
    append_transactional(original, 8, 0)
    if is_clean:
        original.close()
    loaded = open_log(disk_of(original), CONFIG, is_clean=is_clean)
    log = carried(loaded)
    log.update_high_watermark(log.log_end_offset)
    assert offsets_of(log) == offsets_of(original)
    assert log.leader_epochs.entries == loaded.leader_epochs.entries
    assert log.producer_state.snapshot() == original.producer_state.snapshot()
    assert log.last_stable_offset == original.last_stable_offset
    assert [segment.largest for segment in log.segments] == [segment.largest for segment in loaded.segments]
    assert log.active_segment.aborted() == loaded.active_segment.aborted()
    assert log.recovery_point == loaded.recovery_point
    assert log.active_segment.roll_jitter_ms == 4
    append(log, leader_epoch=9)
    log.close()
    again = open_log(disk_of(original), CONFIG, is_clean=True)
    assert again.log_end_offset == original.log_end_offset + 1


def test_a_log_without_producers_is_small() -> None:
    log = open_log(disk_of(new_log()), LogConfig())
    assert len(pickle.dumps(freeze(log))) < 1000
