"""Power may go at any moment of a round of compaction: what readers see afterwards is never wrong.

The disk loses any of the names and bytes that were not synced. Whatever is left, a start must find a log in
which every key has its newest committed value, no aborted record shows, and no offset occurs twice.
"""

from random import Random
from typing import NamedTuple

import pytest
from tests.differential.random_log import RandomLog
from tests.unit.storage.compaction.whole_round import run_round

from ottla.model.ids import Offset, ProducerId, TopicPartition
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.control import ControlType, decode_control_type
from ottla.storage.compaction.candidates import find_candidate
from ottla.storage.config import LogConfig
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.names import FileState, find_segment_file
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import PowerCut, SimulatedDisk

PATH = "data/orders-0"
CONFIG = LogConfig(
    is_compacted=True, is_deleted=False, segment_bytes=4000, index_interval_bytes=300, delete_retention_ms=100
)
MEMORY_BYTES = 1 << 20
SEEDS = range(12)

Seen = tuple[int, bytes | None, bytes | None]


class View(NamedTuple):
    """What a reader with read_committed sees, and what the log knows beside it."""

    records: list[Seen]
    log_end_offset: int
    last_sequences: dict[ProducerId, tuple[int, int]]

    @property
    def newest(self) -> dict[bytes | None, Seen]:
        return {seen[1]: seen for seen in self.records}


def load(disk: SimulatedDisk, end_offset: int, now_ms: int) -> Log:
    request = LoadRequest(PATH, TopicPartition("orders", 0), CONFIG, Offset(end_offset), now_ms=now_ms)
    log = load_log(Volume(disk, "data"), request)
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    return log


def view_of(log: Log) -> View:
    """Read as a consumer does: producers are left out from where they aborted until their marker."""
    content = b"".join(segment.file.read(0, segment.size) for segment in log.segments)
    pending = sorted(
        (entry for segment in log.segments for entry in segment.aborted()), key=lambda e: e.first_offset
    )
    aborting: set[int] = set()
    seen: list[Seen] = []
    for batch in iter_batches(memoryview(content)):
        while pending and pending[0].first_offset <= batch.last_offset:
            aborting.add(pending.pop(0).producer_id)
        records = list(iter_batch_records(batch))
        if batch.is_control:
            if records and decode_control_type(records[0].key) is ControlType.ABORT:
                aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            seen += [(record.offset, record.key, record.value) for record in records]
    sequences = {
        producer_id: (producer.epoch, producer.last_sequence)
        for producer_id, producer in log.producer_state.producers.items()
    }
    stable = [record for record in seen if record[0] < log.last_stable_offset]
    return View(stable, log.log_end_offset, sequences)


def check(before: View, after: View, log: Log) -> None:
    assert after.log_end_offset == before.log_end_offset
    offsets = [offset for offset, _, _ in after.records]
    assert offsets == sorted(set(offsets)), "an offset occurs twice or out of order"
    assert set(after.records) <= set(before.records), "something shows that did not"
    newest = after.newest
    for key, (offset, _, value) in before.newest.items():
        if key is None:
            continue
        if value is not None:
            assert newest.get(key) == (offset, key, value), "the newest value of a key is gone"
        else:
            assert key not in newest or newest[key][2] is None, "a deleted value is back"
    for producer_id, known in before.last_sequences.items():
        assert after.last_sequences.get(producer_id) == known, "a producer's last sequence is forgotten"
    states = [find_segment_file(entry.name) for entry in log.volume.disk.list(PATH)]
    assert all(file is None or file.state is FileState.CURRENT for file in states), "something is half done"


def prepare(seed: int) -> tuple[SimulatedDisk, RandomLog, Offset | None]:
    """Write a log that was synced. Some have been through a round already, and wait for their horizons."""
    random_log = RandomLog(seed)
    disk = SimulatedDisk(seed)
    disk.make_directory(PATH)
    for name, content in random_log.make_segments(ends_transactions=True).items():
        file = disk.open(f"{PATH}/{name}", create=True)
        file.write(0, (content,))
        file.sync()
    for path in ("", "data", PATH):
        disk.sync_directory(path)
    checkpoint: Offset | None = None
    log = load(disk, 0, random_log.now_ms)
    for _ in range(seed % 3):
        done = run_round(find_candidate(log, checkpoint, random_log.now_ms), random_log.now_ms, MEMORY_BYTES)
        checkpoint = done.cleaned.first_dirty_offset
        random_log.now_ms += 150
    log.close()
    return disk, random_log, None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_power_cut_at_any_moment_leaves_a_log_that_reads_right(seed: int) -> None:
    original, random_log, checkpoint = prepare(seed)
    before = view_of(load(original.copy(), random_log.end_offset, random_log.now_ms))
    changes = 0
    is_cut = True
    while is_cut:
        changes += 1
        disk = original.copy()
        log = load(disk, random_log.end_offset, random_log.now_ms)
        candidate = find_candidate(log, checkpoint, random_log.now_ms)
        disk.cut_power_after(changes)
        try:
            run_round(candidate, random_log.now_ms, MEMORY_BYTES)
            is_cut = False
        except PowerCut:
            pass
        disk.cut_power(Random(seed * 1000 + changes))
        again = load(disk, random_log.end_offset, random_log.now_ms)
        check(before, view_of(again), again)
    assert changes > 20, "the power was never cut"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_power_cut_early_in_the_next_round_leaves_a_log_that_reads_right(seed: int) -> None:
    """Then the names of what the last round has swapped in may not be on the disk yet."""
    original, random_log, checkpoint = prepare(seed)
    before = view_of(load(original.copy(), random_log.end_offset, random_log.now_ms))
    for attempt in range(60):
        disk = original.copy()
        log = load(disk, random_log.end_offset, random_log.now_ms)
        run_round(find_candidate(log, checkpoint, random_log.now_ms), random_log.now_ms, MEMORY_BYTES)
        disk.cut_power_after(1 + attempt % 6)
        with pytest.raises(PowerCut):
            run_round(find_candidate(log, None, random_log.now_ms), random_log.now_ms, MEMORY_BYTES)
        disk.cut_power(Random(seed * 1000 + attempt))
        again = load(disk, random_log.end_offset, random_log.now_ms)
        check(before, view_of(again), again)
