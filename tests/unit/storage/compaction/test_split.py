"""Segments whose offsets reach too far are split, with all that belongs to them."""

import pytest
from tests.unit.storage.compaction.cleaned_log import aborted, data_batch, marker
from tests.unit.storage.logs import PATH, files_of, new_disk, open_log

from ottla.model.ids import Offset
from ottla.records.errors import CorruptBatch
from ottla.storage.compaction.source import SourceSegment
from ottla.storage.compaction.split import split_segment
from ottla.storage.config import LogConfig
from ottla.storage.indexes.transaction_index import encode_transaction_index
from ottla.storage.log import Log
from ottla.testing.simulated_disk import SimulatedDisk

FAR = 1 << 31
LIMIT = FAR - 1
COMPACTED = LogConfig(is_compacted=True, is_deleted=False)


def disk_with(batches: list[bytes], base_offset: int = 0) -> SimulatedDisk:
    disk = new_disk()
    disk.make_directory(PATH)
    file = disk.open(f"{PATH}/{base_offset:020d}.log", create=True)
    file.write(0, batches)
    file.sync()
    disk.sync_directory(PATH)
    return disk


def offsets_of(log: Log) -> dict[int, list[int]]:
    """Return the base offsets of the batches, by segment."""
    found: dict[int, list[int]] = {}
    for segment in log.segments:
        content = segment.file.read(0, segment.size)
        at = 0
        found[segment.base_offset] = []
        while at < len(content):
            found[segment.base_offset].append(int.from_bytes(content[at : at + 8]))
            at += 12 + int.from_bytes(content[at + 8 : at + 12])
    return found


def test_loading_splits_a_segment_that_reaches_too_far() -> None:
    offsets = [0, 7, LIMIT, FAR, FAR + LIMIT, 5 * FAR]
    disk = disk_with([data_batch(offset, [("a", "1")]) for offset in offsets])
    log = open_log(disk, COMPACTED)
    assert offsets_of(log) == {0: [0, 7, LIMIT], FAR: [FAR, FAR + LIMIT], 5 * FAR: [5 * FAR]}
    assert log.log_end_offset == 5 * FAR + 1
    assert not [name for name in files_of(log) if name.endswith((".cleaned", ".swap", ".deleted"))]


def test_a_segment_that_fits_is_not_split() -> None:
    disk = disk_with([data_batch(offset, [("a", "1")]) for offset in (0, LIMIT)])
    assert offsets_of(open_log(disk, COMPACTED)) == {0: [0, LIMIT]}


def test_the_first_part_starts_where_the_segment_did() -> None:
    """Else a start that finishes the swap would not know that the segment was replaced."""
    disk = disk_with([data_batch(offset, [("a", "1")]) for offset in (FAR, FAR + 1)])
    assert offsets_of(open_log(disk, COMPACTED)) == {0: [], FAR: [FAR, FAR + 1]}


def test_each_part_gets_the_aborted_transactions_of_its_markers() -> None:
    batches = [
        data_batch(0, [("a", "1")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True),
        marker(1, 7, is_commit=False),
        data_batch(2, [("b", "1")], producer_id=7, producer_epoch=0, base_sequence=1, is_transactional=True),
        marker(FAR, 7, is_commit=False),
    ]
    disk = disk_with(batches)
    entries = [aborted(7, 0, 1), aborted(7, 2, FAR)]
    index = disk.open(f"{PATH}/{0:020d}.txnindex", create=True)
    index.write(0, (encode_transaction_index(entries),))
    log = open_log(disk, COMPACTED)
    assert [segment.aborted() for segment in log.segments] == [[entries[0]], [entries[1]]]


def test_a_split_that_fails_leaves_nothing_behind() -> None:
    damaged = bytearray(data_batch(FAR, [("a", "1")]))
    damaged[-1] ^= 1
    disk = disk_with([data_batch(0, [("a", "1")]), bytes(damaged)])
    file = disk.open(f"{PATH}/{0:020d}.log")
    segment = SourceSegment(Offset(0), file, file.size(), 0, 0, False, 0)
    with pytest.raises(CorruptBatch):
        list(split_segment(segment, [], disk, PATH, 4096))
    assert [entry.name for entry in disk.list(PATH)] == ["00000000000000000000.log"]
