"""A rule says what is wrong with a value, or nothing."""

import pytest

from ottla.metadata.configs.rules import (
    DistinctList,
    GzipLevel,
    HostsAndPorts,
    NonEmpty,
    NonNull,
    OffsetReset,
    OneOf,
    OneOfIgnoringCase,
    Range,
    Rule,
    ThrottledReplicas,
    Voters,
)
from ottla.metadata.configs.values import ConfigValue


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (Range(1), 1),
        (Range(1), 2**63 - 1),
        (Range(0, 1), 0.5),
        (Range(None, 5), -(2**31)),
        (OneOf(("a", "b")), "b"),
        (OneOfIgnoringCase(("ES256",)), "es256"),
        (DistinctList(), ()),
        (DistinctList(("a", "b"), may_be_empty=False), ("a",)),
        (DistinctList(may_be_null=True), None),
        (NonEmpty(), "x"),
        (NonEmpty(), None),
        (NonNull(), ""),
        (GzipLevel(), -1),
        (GzipLevel(), 9),
        (ThrottledReplicas(), ()),
        (ThrottledReplicas(), ("*",)),
        (ThrottledReplicas(), ("0:1", "12:345")),
        (Voters(), ("1@localhost:9093", "2@[::1]:9093")),
        (Voters(), ()),
        (HostsAndPorts(), ("localhost:9093", "[fe80::1%eth0]:1")),
        (OffsetReset(), "latest"),
        (OffsetReset(), "by_duration:PT1H30M"),
        (OffsetReset(), "by_duration:P2DT0.5S"),
    ],
)
def test_an_allowed_value_has_no_fault(rule: Rule, value: ConfigValue) -> None:
    assert rule.find_fault(value) is None


@pytest.mark.parametrize(
    ("rule", "value", "fault"),
    [
        (Range(1), 0, "at least 1"),
        (Range(0, 1), 1.5, "no more than 1"),
        (Range(0), None, "non-null"),
        (OneOf(("a", "b")), "c", "a, b"),
        (OneOf(("a", "b")), "A", "a, b"),
        (OneOfIgnoringCase(("ES256", "RS256")), "x", "ES256, RS256"),
        (DistinctList(("a", "b")), ("a", "c"), "c is none of: a, b"),
        (DistinctList(may_be_empty=False), (), "must not be empty"),
        (DistinctList(), None, "must not be null"),
        (DistinctList(), ("a", ""), "may be empty"),
        (NonEmpty(), "", "non-empty"),
        (NonNull(), None, "non null"),
        (GzipLevel(), 0, "between 1 and 9"),
        (ThrottledReplicas(), ("0:1", "*"), "literal '*'"),
        (ThrottledReplicas(), ("0",), "literal '*'"),
        (Voters(), ("localhost:9093",), "id@host:port"),
        (HostsAndPorts(), ("localhost",), "host:port"),
        (HostsAndPorts(), ("a:b:1",), "host:port"),
        (OffsetReset(), "by_duration:P", "by_duration"),
        (OffsetReset(), "by_duration:PT", "by_duration"),
        (OffsetReset(), "by_duration:-PT1H", "by_duration"),
        (OffsetReset(), "LATEST", "by_duration"),
    ],
)
def test_another_value_has_a_fault_that_says_what_is_allowed(
    rule: Rule, value: ConfigValue, fault: str
) -> None:
    assert fault in (rule.find_fault(value) or "")


def test_a_range_describes_its_bounds() -> None:
    assert str(Range(1)) == "[1,...]"
    assert str(Range(1, 9)) == "[1,...,9]"
    assert str(Range(None, 9)) == "[...,9]"
