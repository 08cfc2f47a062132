"""Where a record lies on disk: the segment by its name, the byte by walking over the batches."""

from pathlib import Path

from ottla.explain.evidence.logs import BatchFacts, RecordFacts
from ottla.explain.places import find_place
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.codec import Record

WHERE = TopicPartition("t", 3)


def _record(base_offset: int, offset: int) -> RecordFacts:
    batch = BatchFacts(WHERE, base_offset, offset, 1, 70, "none", 0, 0, False, 0, -1, 0, 0, False, False)
    return RecordFacts(WHERE, offset, 0, None, b"v", (), batch)


def test_a_batch_is_found_in_its_segment(tmp_path: Path) -> None:
    directory = tmp_path / "t-3"
    directory.mkdir()
    batches = {}
    for base in (0, 2, 10, 14):
        batches[base] = build_batch([Record(base, 0, None, b"v" * (base + 1))])
        batches[base][:8] = base.to_bytes(8)
    (directory / f"{0:020}.log").write_bytes(batches[0] + batches[2])
    (directory / f"{10:020}.log").write_bytes(batches[10] + batches[14])
    for base, name, position in ((2, 0, len(batches[0])), (10, 10, 0), (14, 10, len(batches[10]))):
        place = find_place(tmp_path, _record(base, base))
        assert place is not None
        assert (place.path.name, place.position) == (f"{name:020}.log", position)
    # Compaction has removed it, or it is not there yet, or this node has no replica.
    assert find_place(tmp_path, _record(12, 12)) is None
    assert find_place(tmp_path, _record(20, 20)) is None
    assert find_place(tmp_path / "elsewhere", _record(0, 0)) is None
