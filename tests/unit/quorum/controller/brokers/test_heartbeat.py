"""What a heartbeat is answered: whether the broker is in, and whether it knows what it leads."""

from tests.support.deciding import DecidingController, registration

from ottla.quorum.controller.brokers.fencing import fence
from ottla.quorum.controller.brokers.heartbeat import decide_heartbeat
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


def beat(controller: DecidingController, offset: int) -> BrokerHeartbeatResponse:
    request = BrokerHeartbeatRequest(
        broker_id=1, broker_epoch=101, current_metadata_offset=offset, want_fence=False, want_shut_down=False
    )
    return controller.ask(decide_heartbeat, request)


def test_a_broker_that_was_fenced_is_let_in_when_it_has_read_so() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("orders", (1, 0))
    known = controller.image.offset
    assert beat(controller, known).is_caught_up
    controller.replay(*fence(controller.view, controller.image.brokers[1]))
    assert controller.partition("orders").leader == 0

    answer = beat(controller, known)
    assert (answer.is_fenced, answer.is_caught_up) == (True, False), "it would take itself for the leader"
    answer = beat(controller, controller.image.offset)
    assert (answer.is_fenced, answer.is_caught_up) == (False, True)


def test_a_broker_that_has_not_read_what_was_taken_from_it_is_not_caught_up() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.sessions.deposed(controller.image.brokers[1], 40)
    assert not beat(controller, 39).is_caught_up
    assert not beat(controller, 39).is_fenced
    assert beat(controller, 40).is_caught_up


def test_nobody_is_caught_up_while_leaders_are_about_to_be_moved() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.sessions.hold(0)
    answer = beat(controller, controller.image.offset)
    assert (answer.is_fenced, answer.is_caught_up) == (False, False)
    controller.sessions.release()
    assert beat(controller, controller.image.offset).is_caught_up


def test_a_controller_that_takes_over_waits_until_brokers_have_read_what_was_before() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.sessions.begin(controller.image.brokers, 50, 0)
    assert not beat(controller, 49).is_caught_up
    assert beat(controller, 50).is_caught_up
