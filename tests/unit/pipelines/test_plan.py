"""How much a batch reads, and in what pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import TopicPartition
from ottla.pipelines.source.plan import (
    OffsetRange,
    admit,
    available,
    beginning_to_json,
    fault_of,
    first_end_to_json,
    from_json,
    is_beginning,
    ranges_between,
    split,
    start_of,
    to_json,
)

PARTITIONS = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 4))
SIZES = st.dictionaries(PARTITIONS, st.tuples(st.integers(0, 1000), st.integers(0, 5000)), min_size=1)


def starts_and_ends(
    sizes: dict[TopicPartition, tuple[int, int]],
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    start = {where: first for where, (first, _) in sizes.items()}
    return start, {where: first + size for where, (first, size) in sizes.items()}


def test_offsets_are_written_as_spark_writes_them() -> None:
    offsets = {TopicPartition("b", 10): 5, TopicPartition("a", 0): 23, TopicPartition("b", 2): 7}

    assert to_json(offsets) == {"a": {"0": 23}, "b": {"2": 7, "10": 5}}
    assert from_json(to_json(offsets)) == offsets


@given(SIZES, st.integers(1, 3000))
def test_batch_reads_about_what_is_allowed_and_goes_on(
    sizes: dict[TopicPartition, tuple[int, int]], offsets_max: int
) -> None:
    start, latest = starts_and_ends(sizes)
    stops = admit(start, latest, offsets_max)

    assert all(start[where] <= stops[where] <= latest[where] for where in latest)
    # Each partition that has something gives one at least, or it could be starved.
    assert all(stops[where] > start[where] for where in latest if latest[where] > start[where])
    assert available(start, stops) <= max(offsets_max, 0) + len(sizes)


@given(SIZES, st.integers(0, 30), st.none() | st.integers(50, 500))
def test_pieces_cover_the_ranges_without_gap_or_overlap(
    sizes: dict[TopicPartition, tuple[int, int]], partitions_min: int, records_max: int | None
) -> None:
    ranges = ranges_between(*starts_and_ends(sizes))
    pieces = split(ranges, partitions_min, records_max)

    covered = {
        where: [(p.start_offset, p.stop_offset) for p in pieces if p.where == where] for where in sizes
    }
    for whole in ranges:
        spans = covered[whole.where]
        assert spans[0][0] == whole.start_offset
        assert spans[-1][1] == whole.stop_offset
        assert all(first[1] == second[0] for first, second in pairwise(spans))
    if records_max is not None:
        assert all(piece.size <= records_max for piece in pieces)
    assert pieces == split(ranges, partitions_min, records_max)


def test_large_partitions_are_cut_into_more_pieces() -> None:
    large, small = TopicPartition("a", 0), TopicPartition("a", 1)
    ranges = [OffsetRange(large, 0, 900), OffsetRange(small, 0, 100)]
    pieces = split(ranges, 10)

    assert sum(piece.where == large for piece in pieces) == 9
    assert sum(piece.where == small for piece in pieces) == 1


def test_the_first_batch_says_where_it_began_and_the_others_do_not() -> None:
    begin, later = {TopicPartition("a", 0): 3}, {TopicPartition("a", 0): 0, TopicPartition("a", 1): 0}
    first = beginning_to_json(begin)
    assert is_beginning(first)
    assert from_json(first) == begin
    end = first_end_to_json(begin, {TopicPartition("a", 0): 9})
    assert not is_beginning(end)
    assert from_json(end) == {TopicPartition("a", 0): 9}
    # Asked again, a query that starts its first batch again would begin elsewhere.
    assert start_of(beginning_to_json(later), end) == begin
    assert start_of(end, to_json({TopicPartition("a", 0): 12})) == {TopicPartition("a", 0): 9}
    # Another input had records, and this one none.
    assert start_of(beginning_to_json(later), first) == begin


def test_why_it_is_unknown_where_a_query_begins_is_kept() -> None:
    assert fault_of(beginning_to_json({}, "no such partition")) == "no such partition"
    assert fault_of(beginning_to_json({})) is None
