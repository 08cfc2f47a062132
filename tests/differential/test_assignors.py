"""Our server-side assignors and regular expressions against those of Apache Kafka."""

import json
import string

import pytest
from hypothesis import strategies as st
from tests.java.group_assignors import GROUP_TEXT, GroupAssignors
from tests.java.oracle import Oracle, Text
from tests.property.group_wishes import Topics, Wishes, check_complete, groups, kept, loads

from ottla.coordination.group.consumer.assignors.range import assign_ranges
from ottla.coordination.group.consumer.assignors.uniform import assign_uniformly
from ottla.coordination.group.consumer.regexes import compile_regex, find_matches
from ottla.coordination.group.refusal import Refused

NAMES = ("orders", "orders-eu", "orders.eu", "payments_2024", "a", "A", "__consumer_offsets", "x" * 249)
EXAMPLES = 100


@pytest.fixture
def kafka(oracle: Oracle) -> GroupAssignors:
    return GroupAssignors(oracle)


def test_range_assigns_what_kafkas_range_assigns(oracle: Oracle, kafka: GroupAssignors) -> None:
    for group in oracle.examples(groups(), EXAMPLES, GROUP_TEXT):
        assert assign_ranges(*group) == kafka.assign("range", *group)


def test_uniform_is_as_even_as_kafkas_and_moves_no_more(oracle: Oracle, kafka: GroupAssignors) -> None:
    for wishes, topics in oracle.examples(groups(same_topics=True), EXAMPLES, GROUP_TEXT):
        group = (_without_leftovers(wishes, topics), topics)
        theirs, ours = kafka.assign("uniform", *group), assign_uniformly(*group)
        if any(theirs.values()):
            check_complete(*group, theirs)
        assert loads(ours) == loads(theirs)
        assert kept(group[0], ours) >= kept(group[0], theirs)


def test_uniform_is_as_even_as_kafkas_for_different_subscriptions(
    oracle: Oracle, kafka: GroupAssignors
) -> None:
    for wishes, topics in oracle.examples(groups(), EXAMPLES, GROUP_TEXT):
        group = (_without_leftovers(wishes, topics), topics)
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


def test_random_regular_expressions_match_what_kafkas_match(oracle: Oracle, kafka: GroupAssignors) -> None:
    # Without braces: Kafka's parser refuses some that stand for themselves, such as `{?`, and RE2 does not.
    expressions = st.text(string.ascii_lowercase[:3] + "()[]*+?|.^$-\\0123,", max_size=12)
    for regex in oracle.examples(expressions, EXAMPLES, Text(json.dumps, json.loads)):
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
