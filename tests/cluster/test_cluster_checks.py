"""The checks after each test of a cluster find what is wrong in a log."""

import pytest
from tests.support.cluster_checks import account_for

from ottla.records.builder import build_batch
from ottla.records.codec import Record


def log_of(*batches: tuple[int, int, int]) -> bytes:
    """Return a log of batches, of each its first offset, its number of records and its leader epoch."""
    return b"".join(
        build_batch(
            [Record(first + at, 0, None, b"x") for at in range(count)], base_offset=first, leader_epoch=epoch
        )
        for first, count, epoch in batches
    )


def test_a_log_without_gaps_is_accounted_for() -> None:
    assert account_for("t-0", log_of((5, 2, 0), (7, 1, 0), (8, 3, 4))) == (5, 11)
    assert account_for("t-0", b"") == (0, 0)


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (log_of((0, 2, 0), (3, 1, 0)), "t-0: 3 follows 1"),
        (log_of((0, 2, 0), (1, 1, 0)), "t-0: 1 follows 1"),
        (log_of((0, 2, 4), (2, 1, 3)), "t-0: epoch 3 follows 4"),
    ],
)
def test_a_gap_is_found(log: bytes, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        account_for("t-0", log)
