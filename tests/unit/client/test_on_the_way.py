"""What may follow a batch that is on its way, so that nothing is lost, doubled or out of order."""

from typing import Any

import pytest

from ottla.client.producer.batch import Batch
from ottla.client.producer.on_the_way import OnTheWay
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
ID = Uuid(b"the topic's id..")


class Identity:
    """The numbers of a producer, as far as they are asked for."""

    def __init__(self) -> None:
        self.known: set[TopicPartition] = set()
        self.complete = True
        self.begun: list[TopicPartition] = []

    def is_known_in(self, where: TopicPartition, topic_id: Uuid) -> bool:
        assert topic_id == ID
        return where in self.known

    def is_complete_in(self, _where: TopicPartition) -> bool:
        return self.complete

    def start_again(self, where: TopicPartition) -> None:
        self.begun.append(where)


class Road:
    """Batches of two partitions, between their queues and their leaders."""

    def __init__(self, *, numbers: bool = True, renews: bool = True, batches_max: int = 3) -> None:
        self.identity = Identity()
        self.queues: dict[TopicPartition, list[Batch]] = {P0: [], P1: []}
        identity: Any = self.identity
        self.dropped: list[Batch] = []
        self.way = OnTheWay(
            identity,
            self.queues.__getitem__,
            self.dropped.append,
            batches_max,
            numbers=numbers,
            renews=renews,
        )

    def send(self, where: TopicPartition = P0, sequence: int = 0) -> Batch:
        batch = _batch(where, sequence)
        self.way.left(batch)
        return batch

    def may_leave(self, where: TopicPartition = P0, sequence: int = -1) -> bool:
        return self.way.may_leave(_batch(where, sequence), ID)


def _batch(where: TopicPartition = P0, sequence: int = -1) -> Batch:
    batch = Batch(where, 0.0)
    batch.base_sequence = sequence
    return batch


@pytest.mark.parametrize("numbers", [True, False])
def test_nothing_follows_the_first_numbered_batch_until_it_is_acknowledged(numbers: bool) -> None:
    road = Road(numbers=numbers)
    assert road.may_leave()
    road.send()
    assert road.may_leave() is not numbers
    assert road.may_leave(P1)
    road.identity.known.add(P0)
    assert road.may_leave()


def test_no_more_are_on_the_way_than_a_broker_remembers() -> None:
    road = Road()
    road.identity.known.add(P0)
    sent = [road.send() for _ in range(3)]
    assert not road.may_leave()
    assert list(road.way) == sent
    road.way.came_home(sent[1])
    assert road.may_leave()
    assert [batch in road.way for batch in sent] == [True, False, True]


def test_what_is_held_back_goes_when_everything_has_come_home() -> None:
    road = Road()
    road.identity.known |= {P0, P1}
    first, second = road.send(), road.send()
    assert road.way.is_first(first)
    assert not road.way.is_first(second)
    road.way.hold_back(P0)
    assert not road.way.is_first(first), "it is among those that are sent again"
    assert road.may_leave(P1)
    road.way.came_home(first)
    assert not road.may_leave()
    road.way.came_home(second)
    assert road.may_leave()
    # One that was never on the way changes nothing.
    road.way.came_home(first)
    assert road.may_leave()


def test_a_gap_is_passed_in_the_next_epoch_when_nothing_with_a_number_is_left() -> None:
    road = Road()
    road.identity.known.add(P0)
    road.identity.complete = False
    lost, other = road.send(P0, 0), road.send(P0, 1)
    road.way.was_given_up(lost)
    road.way.came_home(lost)
    assert not road.may_leave(), "the other may be in the log already"
    assert road.may_leave(P0, 1)
    # It is sent again: it has a number that counts still.
    road.queues[P0].append(other)
    road.way.came_home(other)
    assert road.identity.begun == []
    assert not road.may_leave()
    road.queues[P0].clear()
    road.way.came_home(other)
    assert road.identity.begun == [P0]
    assert road.may_leave()


def test_a_gap_that_is_none_needs_no_other_epoch() -> None:
    road = Road()
    given_up = road.send(P0, 0)
    road.way.came_home(given_up)
    road.way.was_given_up(given_up)
    assert road.identity.begun == []
    assert road.may_leave()


@pytest.mark.parametrize(("renews", "sequence"), [(False, 3), (True, -1)])
def test_without_numbers_of_its_own_a_producer_has_no_gaps(renews: bool, sequence: int) -> None:
    road = Road(renews=renews)
    road.identity.complete = False
    road.way.was_given_up(_batch(P0, sequence))
    assert road.may_leave()
    assert road.identity.begun == []


def test_in_a_transaction_the_coordinator_begins_epochs() -> None:
    road = Road(renews=False)
    refused = road.send(P0, 5)
    road.way.was_out_of_order(P0)
    road.way.came_home(refused)
    assert road.identity.begun == []


def test_what_followed_a_number_out_of_order_is_numbered_anew() -> None:
    road = Road()
    road.identity.known.add(P0)
    refused, following = road.send(P0, 5), road.send(P0, 6)
    unsent = _batch(P0)
    for batch in (refused, following):
        batch.encoded = bytearray(b"sent")
    road.way.was_out_of_order(P0)
    road.queues[P0] += [refused, unsent]
    road.way.came_home(refused)
    assert road.identity.begun == [], "the other one is on its way"
    road.queues[P0].insert(1, following)
    road.way.came_home(following)
    assert road.identity.begun == [P0]
    assert [batch.base_sequence for batch in road.queues[P0]] == [-1, -1, -1]
    assert refused.encoded is None
    # Once.
    road.way.came_home(following)
    assert road.identity.begun == [P0]
