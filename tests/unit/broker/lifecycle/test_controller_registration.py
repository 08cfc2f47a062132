"""A controller makes itself known, and tries until the active one has taken it."""

from typing import Any

from tests.support.group_world import ManualClock
from tests.support.replicas import ManualScheduler

from ottla.broker.deferred import Deferred
from ottla.broker.lifecycle.controller_registration import RETRY_MS_MAX, ControllerRegistration
from ottla.metadata.configs.load import load_node_config
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)

INCARNATION = Uuid(b"this incarnation")
CONTROLLER = {
    "process.roles": "controller",
    "node.id": "7",
    "controller.quorum.voters": "7@10.0.0.7:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://10.0.0.7:9093",
    "log.dirs": "/data",
}


class World:
    """A controller, and an active one that answers as the test says."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self.clock = ManualClock()
        self.scheduler = ManualScheduler(self.clock)
        self.asked: list[ControllerRegistrationRequest] = []
        self.answers: list[Deferred[Any]] = []
        channel: Any = self
        self.registration = ControllerRegistration(
            load_node_config(b"", settings or CONTROLLER).configs.node, channel, self.scheduler, INCARNATION
        )
        self.registration.start()

    def ask(self, ask: ControllerRegistrationRequest) -> Deferred[Any]:
        self.asked.append(ask)
        self.answers.append(Deferred())
        return self.answers[-1]

    def answer(self, error_code: ErrorCode) -> None:
        self.answers.pop().resolve(ControllerRegistrationResponse(error_code=error_code, error_message=None))

    def wait_until_asked(self, ms_max: int) -> int:
        """Let time pass, and tell how much it was."""
        count = len(self.asked)
        for ms in range(ms_max + 1):
            self.scheduler.run_once()
            if len(self.asked) > count:
                return ms
            self.clock.advance(1)
        raise AssertionError("it does not ask again")

    def rests(self) -> bool:
        self.clock.advance(3_600_000)
        return not self.scheduler.run_once()


def test_it_says_who_it_is_and_where_it_listens() -> None:
    world = World()
    (ask,) = world.asked
    assert (ask.controller_id, ask.incarnation_id, ask.zk_migration_ready) == (7, INCARNATION, False)
    assert [(one.name, one.host, one.port) for one in ask.listeners] == [("CONTROLLER", "10.0.0.7", 9093)]
    assert "metadata.version" in {feature.name for feature in ask.features}
    assert all(one.min_supported_version <= one.max_supported_version for one in ask.features)


def test_who_was_taken_asks_no_more() -> None:
    world = World()
    world.answer(ErrorCode.NONE)
    assert world.rests()


def test_a_cluster_that_knows_no_such_registrations_is_left_alone() -> None:
    world = World()
    world.answer(ErrorCode.UNSUPPORTED_VERSION)
    assert world.rests()


def test_who_was_refused_asks_again_after_pauses_that_grow() -> None:
    world = World()
    pauses = []
    for _ in range(8):
        world.answer(ErrorCode.NOT_CONTROLLER)
        pauses.append(world.wait_until_asked(2 * RETRY_MS_MAX))
    assert pauses == [100, 200, 400, 800, 1600, 3200, 5000, 5000]
    assert world.asked.count(world.asked[0]) == 9


def test_a_channel_that_fails_is_tried_again() -> None:
    world = World()
    world.answers.pop().fail(RuntimeError("a bug of the controller"))
    assert world.wait_until_asked(RETRY_MS_MAX) == 100
    world.answer(ErrorCode.NONE)
    assert world.rests()


def test_who_is_stopped_asks_no_more_whatever_it_waits_for() -> None:
    asking = World()
    asking.registration.stop()
    asking.answer(ErrorCode.NOT_CONTROLLER)
    assert asking.rests()
    resting = World()
    resting.answer(ErrorCode.NOT_CONTROLLER)
    resting.registration.stop()
    resting.clock.advance(3_600_000)
    resting.scheduler.run_once()
    assert len(resting.asked) == 1
