"""Our server-side assignors and regular expressions against those of Apache Kafka."""

import string
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.java.group_assignors import GroupAssignors
from tests.property.group_wishes import Topics, Wishes, check_complete, groups, kept, loads

from ottla.coordination.group.consumer.assignors.range import assign_ranges
from ottla.coordination.group.consumer.assignors.uniform import assign_uniformly
from ottla.coordination.group.consumer.regexes import compile_regex, find_matches
from ottla.coordination.group.refusal import Refused

NAMES = ("orders", "orders-eu", "orders.eu", "payments_2024", "a", "A", "__consumer_offsets", "x" * 249)
shared_process = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture(scope="module")
def kafka() -> Iterator[GroupAssignors]:
    """Kafka's assignors, in a process of their own."""
    running = GroupAssignors()
    yield running
    running.close()


@shared_process
@given(group=groups())
def test_range_assigns_what_kafkas_range_assigns(kafka: GroupAssignors, group: tuple[Wishes, Topics]) -> None:
    assert assign_ranges(*group) == kafka.assign("range", *group)


@shared_process
@given(group=groups(same_topics=True))
def test_uniform_is_as_even_as_kafkas_and_moves_no_more(
    kafka: GroupAssignors, group: tuple[Wishes, Topics]
) -> None:
    wishes, _ = group = (_without_leftovers(*group), group[1])
    theirs, ours = kafka.assign("uniform", *group), assign_uniformly(*group)
    if any(theirs.values()):
        check_complete(*group, theirs)
    assert loads(ours) == loads(theirs)
    assert kept(wishes, ours) >= kept(wishes, theirs)


@shared_process
@given(group=groups())
def test_uniform_is_as_even_as_kafkas_for_different_subscriptions(
    kafka: GroupAssignors, group: tuple[Wishes, Topics]
) -> None:
    group = (_without_leftovers(*group), group[1])
    theirs, ours = loads(kafka.assign("uniform", *group)), loads(assign_uniformly(*group))
    assert sum(load * load for load in ours) <= sum(load * load for load in theirs)


@pytest.mark.parametrize(
    "regex",
    [
        "orders.*", "orders", "order", "(?i)ORDERS", "[a-z]+", "^a$", r"\w+", r"orders\.eu", "orders[-.]eu",
        "", ".*", "x{249}", "x{250}", r"\Qorders.eu\E", "(?P<name>a)", "(?<name>a)", r"\p{Lu}", "[[:alpha:]]",
        "(a|A)", "a|A", r"__.*", "(a+)+", r"\d*", "[^a]", "a{0,2}", "(?s).*", "(?U)a+", r"\x61", r"\pL",
        "(", ")", "[", "a**", "*", "a{1001}", "(?=a)", "(?!a)", "(?<=a)b", r"(a)\1", r"\Z", r"\c", "[z-a]",
        "(?P<n>a", "a{2,1}", r"\p{NoSuchScript}", "++", "(?>a)", "a*+", r"\8", r"\h",
    ],
)  # fmt: skip
def test_regular_expressions_match_what_kafkas_match(kafka: GroupAssignors, regex: str) -> None:
    theirs = kafka.match(regex, NAMES)
    assert _match(regex) == theirs


@shared_process
@given(regex=st.text(string.ascii_lowercase[:3] + "()[]*+?|.^$-\\0123,", max_size=12))
def test_random_regular_expressions_match_what_kafkas_match(kafka: GroupAssignors, regex: str) -> None:
    # Without braces: Kafka's parser refuses some that stand for themselves, such as `{?`, and RE2 does not.
    assert _match(regex) == kafka.match(regex, NAMES)


def _match(regex: str) -> list[str] | None:
    try:
        compile_regex(regex)
    except Refused:
        return None
    return find_matches(regex, NAMES)


def _without_leftovers(wishes: Wishes, topics: Topics) -> Wishes:
    """Leave out what Kafka's assignor never sees: partitions that do not exist."""
    return {
        name: type(wish)(
            name,
            wish.topics,
            wish.instance_id,
            {
                topic: existing
                for topic, numbers in wish.assigned.items()
                if (existing := frozenset(number for number in numbers if number < topics.get(topic, 0)))
            },
        )
        for name, wish in wishes.items()
    }
