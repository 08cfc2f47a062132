"""A mirror's leader keeps everything of a batch but the leader epoch."""

import pytest
from tests.unit.storage.logs import append, append_transactional, batch, batches_of, end_transaction, new_log

from ottla.model.ids import LeaderEpoch
from ottla.records.batch import LEADER_EPOCH_OFFSET
from ottla.storage.appending.append_mirrored import append_mirrored
from ottla.storage.errors import AppendError
from ottla.storage.log import Log
from ottla.wire.error_code import ErrorCode

NOW_MS = 1_000_000


def _source() -> Log:
    log = new_log()
    append(log, batch(3), leader_epoch=7)
    append(log, batch(2, producer_id=7, epoch=0, sequence=0), leader_epoch=7)
    append_transactional(log, 9, 0)
    end_transaction(log, 9, is_commit=False)
    append(log, batch(4), leader_epoch=8)
    return log


def _content(log: Log) -> memoryview:
    return memoryview(bytearray(b"".join(bytes(view.view) for view in batches_of(log))))


def _without_epoch(log: Log) -> list[bytes]:
    return [
        bytes(view.view[:LEADER_EPOCH_OFFSET]) + bytes(view.view[LEADER_EPOCH_OFFSET + 4 :])
        for view in batches_of(log)
    ]


def test_a_mirror_has_the_bytes_of_its_source_and_its_own_epoch() -> None:
    source, mirror = _source(), new_log()
    info = append_mirrored(mirror, _content(source), LeaderEpoch(2), NOW_MS)
    assert (info.first_offset, info.last_offset) == (0, 10)
    assert _without_epoch(mirror) == _without_epoch(source)
    assert {view.leader_epoch for view in batches_of(mirror)} == {2}
    assert mirror.leader_epochs.latest == 2
    assert mirror.producer_state.snapshot() == source.producer_state.snapshot()
    assert mirror.active_segment.aborted() == source.active_segment.aborted()


def test_a_gap_of_the_source_is_kept() -> None:
    mirror = new_log()
    append_mirrored(mirror, batch(2, base_offset=5), LeaderEpoch(0), NOW_MS)
    append_mirrored(mirror, batch(1, base_offset=20), LeaderEpoch(0), NOW_MS)
    assert mirror.log_end_offset == 21


def test_what_is_there_already_is_refused() -> None:
    source, mirror = _source(), new_log()
    append_mirrored(mirror, _content(source), LeaderEpoch(0), NOW_MS)
    with pytest.raises(AppendError) as refused:
        append_mirrored(mirror, _content(source), LeaderEpoch(0), NOW_MS)
    assert refused.value.error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert mirror.log_end_offset == 11


@pytest.mark.parametrize("size", [0, 10, -1])
def test_only_whole_batches_are_taken(size: int) -> None:
    mirror = new_log()
    with pytest.raises(AppendError) as refused:
        append_mirrored(mirror, _content(_source())[:size], LeaderEpoch(0), NOW_MS)
    assert refused.value.error_code is ErrorCode.CORRUPT_MESSAGE
    assert mirror.log_end_offset == 0


def test_damaged_batches_are_refused() -> None:
    mirror, content = new_log(), _content(_source())
    content[-1] ^= 1
    with pytest.raises(AppendError) as refused:
        append_mirrored(mirror, content, LeaderEpoch(0), NOW_MS)
    assert refused.value.error_code is ErrorCode.CORRUPT_MESSAGE
    assert mirror.log_end_offset == 0


def test_a_mirror_keeps_the_reserve_of_its_disk() -> None:
    source, mirror = _source(), new_log()
    mirror.volume.is_short = True
    with pytest.raises(AppendError, match="nearly full"):
        append_mirrored(mirror, _content(source), LeaderEpoch(0), NOW_MS)
    assert mirror.log_end_offset == 0
