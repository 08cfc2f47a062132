"""Which brokers get new replicas."""

import random
from collections import Counter

import pytest
from tests.support.deciding import DecidingController, registration

from ottla.quorum.controller.decision import Refusal
from ottla.quorum.controller.partitions.placement import Placer, place_partitions
from ottla.wire.error_code import ErrorCode
from ottla.wire.metadata_records.brokers import RegisterBrokerRecord


def cluster(*racks: int, fenced: tuple[int, ...] = ()) -> list[RegisterBrokerRecord]:
    """Return brokers by rack: `cluster(2, 1)` has brokers 0 and 1 in rack 0, broker 2 in rack 1."""
    brokers: list[RegisterBrokerRecord] = []
    for rack, size in enumerate(racks):
        for _ in range(size):
            number = len(brokers)
            brokers.append(registration(number, rack=f"rack-{rack}", fenced=number in fenced))
    return brokers


@pytest.mark.parametrize("seed", range(20))
def test_no_broker_holds_a_partition_twice(seed: int) -> None:
    placer = Placer(cluster(2, 3, 1, 1), random.Random(seed))
    for _ in range(50):
        brokers = placer.place(5)
        assert len(set(brokers)) == 5


@pytest.mark.parametrize("seed", range(20))
def test_replicas_lie_in_different_racks_while_there_are_enough(seed: int) -> None:
    brokers = cluster(2, 2, 2)
    rack_of = {broker.broker_id: broker.rack for broker in brokers}
    placer = Placer(brokers, random.Random(seed))
    for _ in range(60):
        assert len({rack_of[one] for one in placer.place(3)}) == 3


@pytest.mark.parametrize("seed", range(20))
def test_every_broker_leads_about_as_much_as_any_other(seed: int) -> None:
    placer = Placer(cluster(3, 3), random.Random(seed))
    leaders = Counter(placer.place(2)[0] for _ in range(600))
    assert max(leaders.values()) - min(leaders.values()) <= 2


@pytest.mark.parametrize("seed", range(20))
def test_a_fenced_broker_never_leads_and_follows_only_where_it_must(seed: int) -> None:
    placer = Placer(cluster(1, 1, 1, fenced=(2,)), random.Random(seed))
    for _ in range(30):
        assert 2 not in placer.place(2)[:1]
        assert placer.place(3)[0] != 2
    placer = Placer([registration(0), registration(1), registration(2, fenced=True)], random.Random(seed))
    assert all(2 not in placer.place(2) for _ in range(30))


def test_brokers_of_one_rack_take_turns() -> None:
    placer = Placer([registration(number) for number in range(3)], random.Random(1))
    first, second, third = (placer.place(2) for _ in range(3))
    assert sorted((first[0], second[0], third[0])) == [0, 1, 2]
    assert second[0] == first[1], "each partition begins one broker further on"


@pytest.mark.parametrize(
    ("brokers", "factor"),
    [
        ([registration(0, fenced=True)], 1),
        ([registration(0)], 2),
        ([registration(0, cordoned_log_dirs=registration(0).log_dirs)], 1),
        ([registration(0, in_controlled_shutdown=True)], 1),
        ([], 1),
    ],
    ids=["all fenced", "too few", "all cordoned", "stopping", "none"],
)
def test_a_placement_that_cannot_be_is_refused(brokers: list[RegisterBrokerRecord], factor: int) -> None:
    with pytest.raises(Refusal) as refusal:
        place_partitions(DecidingController(brokers).view, 3, factor)
    assert refusal.value.error_code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_broker_with_one_directory_left_takes_partitions() -> None:
    broker = registration(0, directories=2)
    broker = registration(0, directories=2, cordoned_log_dirs=broker.log_dirs[:1])
    assert place_partitions(DecidingController([broker]).view, 2, 1) == [(0,), (0,)]
