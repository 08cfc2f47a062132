"""Replication is limited only for replicas that are named, and only while more has come than allowed."""

import pytest

from ottla.broker.limits.throttles import Throttle, is_limited


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [((), False), (("*",), True), (("0:1", "3:2"), True), (("3:1", "0:2"), False)],
)
def test_a_topic_names_replicas(replicas: tuple[str, ...], expected: bool) -> None:
    assert is_limited(replicas, 3, 2) is expected


def test_a_limit_holds_until_the_rate_has_fallen() -> None:
    throttle = Throttle(11, 1000)
    throttle.record(1_000_000, 0)
    assert not throttle.is_exceeded(0), "there is no limit"
    throttle.bytes_per_second = 50_000
    assert throttle.is_exceeded(0)
    assert not throttle.is_exceeded(20_000)
