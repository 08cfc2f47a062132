"""Balancing by itself: brokers that join get their share, and those that have left are emptied."""

from collections import Counter
from typing import Any

import pytest
from tests.support.deciding import DecidingController, registration

from ottla.quorum.controller.partitions.auto_balance import decide_balance
from ottla.wire.declare import replace
from ottla.wire.metadata_records.brokers import UnregisterBrokerRecord

MOVES_MAX = 2


def cluster(brokers: int, partitions: int, *replicas: int) -> DecidingController:
    """Return a cluster with a topic whose partitions all have the same replicas, in turns."""
    controller = DecidingController([registration(number) for number in range(brokers)])
    turns = [(*replicas[n:], *replicas[:n]) for n in range(len(replicas))]
    controller.have("t", *(turns[number % len(turns)] for number in range(partitions)))
    return controller


def held(controller: DecidingController) -> Counter[int]:
    topic = controller.image.topics.find("t")
    assert topic is not None
    return Counter(one for record in topic.partitions.values() for one in record.replicas)


def finish(controller: DecidingController) -> None:
    """Let the moves under way complete, as they do when new replicas are in sync."""
    topic = controller.image.topics.find("t")
    assert topic is not None
    done = []
    for record in topic.partitions.values():
        places = zip(record.replicas, record.directories, strict=True)
        kept = [place for place in places if place[0] not in record.removing_replicas]
        replicas = tuple(replica for replica, _ in kept)
        done.append(
            replace(
                record,
                replicas=replicas,
                isr=replicas,
                directories=tuple(directory for _, directory in kept),
                adding_replicas=(),
                removing_replicas=(),
            )
        )
    controller.replay(*done)


def balance(controller: DecidingController, left: tuple[int, ...] = (), rounds_max: int = 50) -> list[int]:
    """Balance until there is nothing to do. Returns how many partitions moved at a time."""
    sizes: list[int] = []
    for _ in range(rounds_max):
        records = decide_balance(controller.view, left, MOVES_MAX)
        if not records:
            return sizes
        sizes.append(len(records))
        controller.replay(*records)
        finish(controller)
    raise AssertionError("it does not come to an end")


def fence(controller: DecidingController, broker_id: int, **changes: Any) -> None:
    controller.replay(replace(controller.image.brokers[broker_id], **{"fenced": True, **changes}))


def test_a_cluster_in_balance_stays_as_it_is() -> None:
    assert decide_balance(cluster(2, 6, 0, 1).view, (), MOVES_MAX) == []


def test_a_broker_that_joins_gets_its_share_by_few_moves_at_a_time() -> None:
    controller = cluster(2, 9, 0, 1)
    controller.replay(registration(2))
    sizes = balance(controller)
    assert max(sizes) <= MOVES_MAX
    assert held(controller) == {0: 6, 1: 6, 2: 6}


def test_nothing_begins_while_something_moves() -> None:
    controller = cluster(2, 9, 0, 1)
    controller.replay(registration(2))
    controller.replay(*decide_balance(controller.view, (), MOVES_MAX))
    assert decide_balance(controller.view, (), MOVES_MAX) == []


@pytest.mark.parametrize("is_unregistered", [True, False])
def test_a_broker_that_has_left_is_emptied(is_unregistered: bool) -> None:
    controller = cluster(4, 8, 0, 1, 2)
    fence(controller, 2)
    if is_unregistered:
        broker = controller.image.brokers[2]
        controller.replay(UnregisterBrokerRecord(broker_id=2, broker_epoch=broker.broker_epoch))
    balance(controller, () if is_unregistered else (2,))
    assert held(controller) == {0: 8, 1: 8, 3: 8}


@pytest.mark.parametrize("state", [{"fenced": True}, {"fenced": False, "in_controlled_shutdown": True}])
def test_a_restart_moves_nothing(state: dict[str, bool]) -> None:
    controller = cluster(3, 9, 0, 1)
    fence(controller, 2, **state)
    assert decide_balance(controller.view, (), MOVES_MAX) == []
    fence(controller, 1, **state)
    assert decide_balance(controller.view, (), MOVES_MAX) == []


def test_what_could_have_no_other_place_stays() -> None:
    controller = cluster(3, 4, 0, 1, 2)
    fence(controller, 2)
    assert decide_balance(controller.view, (2,), MOVES_MAX) == []


def test_a_broker_with_cordoned_directories_gets_nothing() -> None:
    controller = cluster(2, 9, 0, 1)
    joined = registration(2)
    controller.replay(replace(joined, cordoned_log_dirs=joined.log_dirs))
    assert decide_balance(controller.view, (), MOVES_MAX) == []
