"""Producer ids come out of blocks, and one block that is not to be had keeps nobody waiting for ever."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.coordinators.producer_ids import ProducerIds
from ottla.broker.deferred import Deferred
from ottla.quorum.controller.producer_ids import OWN_RANGE_START
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse

BLOCK = AllocateProducerIdsResponse(producer_id_start=2000, producer_id_len=3)


class Controller:
    """Keeps the requests for a block, for the test to answer."""

    def __init__(self) -> None:
        self.asked: list[Deferred[Any]] = []

    def ask(self, _ask: object, _caller: object = None) -> Deferred[Any]:
        self.asked.append(Deferred())
        return self.asked[-1]


def make_world() -> tuple[ProducerIds, Controller]:
    controller = Controller()
    image = SimpleNamespace(next_producer_id=3000)
    broker = SimpleNamespace(node_id=0, broker_epoch=0, controller=controller, image=image)
    return ProducerIds(broker), controller


def values(answers: list[Deferred[int | ErrorCode]]) -> list[int | ErrorCode]:
    return [answer.value() for answer in answers]


def test_all_who_wait_share_one_question() -> None:
    ids, controller = make_world()
    answers = [ids.next() for _ in range(3)]
    (asked,) = controller.asked
    asked.resolve(BLOCK)
    assert values(answers) == [2000, 2001, 2002]


def test_a_block_that_is_too_small_is_followed_by_another() -> None:
    ids, controller = make_world()
    answers = [ids.next() for _ in range(4)]
    controller.asked[0].resolve(BLOCK)
    controller.asked[1].resolve(replace(BLOCK, producer_id_start=5000))
    assert values(answers) == [2000, 2001, 2002, 5000]


def test_a_refusal_is_told_to_all_and_the_next_one_asks_again() -> None:
    ids, controller = make_world()
    answers = [ids.next() for _ in range(2)]
    controller.asked[0].resolve(
        AllocateProducerIdsResponse(
            error_code=ErrorCode.STALE_BROKER_EPOCH, producer_id_start=-1, producer_id_len=0
        )
    )
    assert values(answers) == [ErrorCode.STALE_BROKER_EPOCH] * 2
    later = ids.next()
    controller.asked[1].resolve(BLOCK)
    assert later.value() == 2000


def test_without_a_controller_clients_are_to_ask_again() -> None:
    ids, controller = make_world()
    answer = ids.next()
    controller.asked[0].resolve(
        AllocateProducerIdsResponse(
            error_code=ErrorCode.NOT_CONTROLLER, producer_id_start=-1, producer_id_len=0
        )
    )
    assert answer.value() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_after_a_failure_of_the_controller_the_next_one_asks() -> None:
    ids, controller = make_world()
    answer = ids.next()
    controller.asked[0].fail(ZeroDivisionError())
    assert answer.value() is ErrorCode.UNKNOWN_SERVER_ERROR
    later = ids.next()
    controller.asked[1].resolve(BLOCK)
    assert later.value() == 2000


def test_whoever_fails_with_its_id_keeps_nothing_from_those_to_come() -> None:
    ids, controller = make_world()

    def fail(_: object) -> None:
        raise ZeroDivisionError

    ids.next().when_done(fail)
    waiting = ids.next()
    with pytest.raises(ZeroDivisionError):
        controller.asked[0].resolve(BLOCK)
    later = ids.next()
    assert values([waiting, later]) == [2001, 2002]


def test_a_block_ends_when_the_cluster_gets_a_range_of_its_own() -> None:
    ids, controller = make_world()
    first = ids.next()
    controller.asked[0].resolve(BLOCK)
    assert first.value() == 2000
    ids._broker.image.next_producer_id = OWN_RANGE_START + 5  # type: ignore[misc]
    second = ids.next()
    controller.asked[1].resolve(replace(BLOCK, producer_id_start=OWN_RANGE_START))
    assert second.value() == OWN_RANGE_START
