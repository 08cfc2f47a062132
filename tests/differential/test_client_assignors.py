"""Our client-side assignors and their blobs, against those of Apache Kafka's Java client."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from tests.java.consumer_assignors import ConsumerAssignors
from tests.property.consumer_members import groups, kept, loads

from ottla.client.consumer.assignors import ASSIGNORS
from ottla.client.consumer.assignors.assignor import Members, PartitionCounts
from ottla.model.ids import TopicPartition

shared_process = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture(scope="module")
def kafka() -> Iterator[ConsumerAssignors]:
    """Kafka's assignors, in a process of their own."""
    running = ConsumerAssignors()
    yield running
    running.close()


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
@shared_process
@given(group=groups())
def test_the_simple_ones_share_out_just_as_kafkas_do(
    kafka: ConsumerAssignors, strategy: str, group: tuple[Members, PartitionCounts]
) -> None:
    ours, theirs = ASSIGNORS[strategy].assign(*group), kafka.assign(strategy, *group)
    assert {name: sorted(share) for name, share in ours.items()} == {
        name: sorted(share) for name, share in theirs.items()
    }


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
@shared_process
@given(group=groups(same_topics=True))
def test_the_sticky_ones_are_as_even_as_kafkas_and_move_no_more(
    kafka: ConsumerAssignors, strategy: str, group: tuple[Members, PartitionCounts]
) -> None:
    members, _ = group
    ours, theirs = ASSIGNORS[strategy].assign(*group), kafka.assign(strategy, *group)
    assert kept(members, ours) >= kept(members, theirs)
    if strategy == "sticky":
        assert loads(ours) == loads(theirs)


@shared_process
@given(group=groups())
def test_sticky_is_as_even_as_kafkas_for_different_subscriptions(
    kafka: ConsumerAssignors, group: tuple[Members, PartitionCounts]
) -> None:
    ours, theirs = loads(ASSIGNORS["sticky"].assign(*group)), loads(kafka.assign("sticky", *group))
    assert sum(load * load for load in ours) <= sum(load * load for load in theirs)


@pytest.mark.parametrize("strategy", list(ASSIGNORS))
@pytest.mark.parametrize("numbers", [(), (0,), (0, 1, 5)])
def test_the_notes_in_the_user_data_are_those_of_kafka(
    kafka: ConsumerAssignors, strategy: str, numbers: tuple[int, ...]
) -> None:
    assigned = tuple(TopicPartition("orders", number) for number in numbers)
    assert ASSIGNORS[strategy].note(assigned, 7) == kafka.note(strategy, assigned, 7)
