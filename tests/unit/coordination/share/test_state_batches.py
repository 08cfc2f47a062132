"""Combining state batches is the same as to look at each offset by itself."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.share.state_batches import StateBatch, combine

batches = st.builds(
    lambda first, length, state, count: StateBatch(first, first + length, state, count),
    st.integers(0, 30),
    st.integers(0, 6),
    st.sampled_from((0, 2, 4)),
    st.integers(1, 3),
)


def by_offset(some: list[StateBatch], start_offset: int) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for one in some:
        for offset in range(max(one.first_offset, start_offset), one.last_offset + 1):
            found[offset] = max(found.get(offset, (0, 0)), one.rank)
    return found


@given(st.lists(batches, max_size=12), st.lists(batches, max_size=6), st.integers(-1, 20))
def test_the_greater_one_counts_for_each_record(
    before: list[StateBatch], added: list[StateBatch], start_offset: int
) -> None:
    known = combine((), before, -1)
    combined = combine(known, added, start_offset)
    assert by_offset(list(combined), -1) == by_offset([*before, *added], start_offset)
    for one, following in pairwise(combined):
        assert one.last_offset < following.first_offset, "in order, and none overlap"
        assert one.last_offset + 1 < following.first_offset or one.rank != following.rank, (
            "as few as possible"
        )
