"""Which segments are cleaned into one."""

from ottla.model.ids import Offset
from ottla.storage.compaction.grouping import group_segments
from ottla.storage.compaction.source import SourceSegment
from ottla.testing.simulated_disk import SimulatedDisk

FILE = SimulatedDisk().open("unused")
GIB = 1 << 30


def segment(base_offset: int, size_bytes: int, index_bytes: int = 8) -> SourceSegment:
    return SourceSegment(Offset(base_offset), FILE, size_bytes, index_bytes, index_bytes, False, 0)


def grouped(
    segments: list[SourceSegment], end_offset: int, segment_bytes: int = 100, index_bytes: int = 1000
) -> list[list[int]]:
    groups = group_segments(
        segments,
        segment_bytes=segment_bytes,
        segment_index_bytes=index_bytes,
        end_offset=Offset(end_offset),
    )
    return [[member.base_offset for member in group] for group in groups]


def test_neighbours_come_together_up_to_the_size_of_a_segment() -> None:
    sizes = [40, 60, 10, 90, 1, 100, 30, 30, 30, 30]
    segments = [segment(at * 10, size) for at, size in enumerate(sizes)]
    assert grouped(segments, 100) == [[0, 10], [20, 30], [40], [50], [60, 70, 80], [90]]


def test_a_segment_that_is_too_large_stays_alone() -> None:
    assert grouped([segment(0, 500), segment(10, 1)], 20) == [[0], [10]]


def test_indexes_have_to_fit_as_well() -> None:
    assert grouped([segment(0, 1, 600), segment(10, 1, 400), segment(20, 1, 1)], 30) == [[0, 10], [20]]


def test_offsets_have_to_fit_into_an_index() -> None:
    far = (1 << 31) - 1
    assert grouped([segment(0, 1), segment(10, 1)], far + 1) == [[0, 10]]
    assert grouped([segment(0, 1), segment(10, 1)], far + 2) == [[0], [10]]
    # The second one ends where the third begins, at the latest.
    assert grouped([segment(0, 1), segment(10, 1), segment(far + 2, 1)], far + 3) == [[0], [10, far + 2]]


def test_an_empty_segment_joins_however_far_away_it_is() -> None:
    assert grouped([segment(0, 1), segment(1 << 40, 0)], (1 << 40) + 1) == [[0, 1 << 40]]


def test_nothing_makes_no_group() -> None:
    assert grouped([], 0) == []
