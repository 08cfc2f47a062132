"""When a new target assignment is computed."""

import pytest

from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.consumer.target import is_due


@pytest.mark.parametrize(
    ("now_ms", "interval_ms", "expected"),
    [
        (10_000, 1_000, False),
        (10_999, 1_000, False),
        (11_000, 1_000, True),
        (10_000, 0, True),
        # The wall clock was set back. Nobody knows how long ago it was, so it is long enough.
        (9_999, 1_000, True),
        (1, 1_000, True),
    ],
)
def test_a_target_is_computed_at_most_once_in_an_interval(
    now_ms: int, interval_ms: int, expected: bool
) -> None:
    group = ConsumerGroup("g")
    group.assignment_timestamp_ms = 10_000
    assert is_due(group, group.assignment_epoch + 1, interval_ms, now_ms) is expected
    assert not is_due(group, group.assignment_epoch, interval_ms, now_ms)
