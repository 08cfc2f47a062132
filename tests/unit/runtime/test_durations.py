"""Durations are counted in powers of two."""

import pytest

from ottla.runtime.durations import BUCKETS, Durations


@pytest.mark.parametrize(
    ("took_ns", "bucket"),
    [(0, 0), (999, 0), (1000, 1), (1999, 1), (2000, 2), (3999, 2), (4000, 3), (10**18, BUCKETS - 1)],
)
def test_a_bucket_counts_what_took_less_than_its_power_of_two(took_ns: int, bucket: int) -> None:
    durations = Durations()
    durations.add(took_ns)
    assert [number for number, count in enumerate(durations.buckets) if count] == [bucket]
    assert durations.total_ns == took_ns
