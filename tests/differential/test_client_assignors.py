"""Our client-side assignors and their blobs, against those of Apache Kafka's Java client."""

import pytest
from tests.java.consumer_assignors import GROUP_TEXT, ConsumerAssignors
from tests.java.oracle import Oracle
from tests.property.consumer_members import groups, kept, loads

from ottla.client.consumer.assignors import ASSIGNORS
from ottla.model.ids import TopicPartition

EXAMPLES = 100


@pytest.fixture
def kafka(oracle: Oracle) -> ConsumerAssignors:
    return ConsumerAssignors(oracle)


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_the_simple_ones_share_out_just_as_kafkas_do(
    oracle: Oracle, kafka: ConsumerAssignors, strategy: str
) -> None:
    for group in oracle.examples(groups(), EXAMPLES, GROUP_TEXT):
        ours, theirs = ASSIGNORS[strategy].assign(*group), kafka.assign(strategy, *group)
        assert {name: sorted(share) for name, share in ours.items()} == {
            name: sorted(share) for name, share in theirs.items()
        }


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_the_sticky_ones_are_as_even_as_kafkas_and_move_no_more(
    oracle: Oracle, kafka: ConsumerAssignors, strategy: str
) -> None:
    for members, partitions in oracle.examples(groups(same_topics=True), EXAMPLES, GROUP_TEXT):
        ours = ASSIGNORS[strategy].assign(members, partitions)
        theirs = kafka.assign(strategy, members, partitions)
        assert kept(members, ours) >= kept(members, theirs)
        if strategy == "sticky":
            assert loads(ours) == loads(theirs)


def test_sticky_is_as_even_as_kafkas_for_different_subscriptions(
    oracle: Oracle, kafka: ConsumerAssignors
) -> None:
    for group in oracle.examples(groups(), EXAMPLES, GROUP_TEXT):
        ours, theirs = loads(ASSIGNORS["sticky"].assign(*group)), loads(kafka.assign("sticky", *group))
        assert sum(load * load for load in ours) <= sum(load * load for load in theirs)


@pytest.mark.parametrize("strategy", list(ASSIGNORS))
@pytest.mark.parametrize("numbers", [(), (0,), (0, 1, 5)])
def test_the_notes_in_the_user_data_are_those_of_kafka(
    kafka: ConsumerAssignors, strategy: str, numbers: tuple[int, ...]
) -> None:
    assigned = tuple(TopicPartition("orders", number) for number in numbers)
    assert ASSIGNORS[strategy].note(assigned, 7) == kafka.note(strategy, assigned, 7)
