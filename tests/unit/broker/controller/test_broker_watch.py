"""Whether the process of another broker is there."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.support.deciding import registration

from ottla.broker.controller.broker_watch import (
    ANSWER_MS_MAX,
    LOOK_AGAIN_MS_MAX,
    LOOK_AGAIN_MS_MIN,
    SECOND_LOOK_MS,
    TAKE_OVER_MS,
    BrokerWatch,
)
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage
from ottla.quorum.controller.brokers.sessions import Incarnation
from ottla.wire.metadata_records.brokers import BrokerEndpoint

ONE, TWO = Incarnation(1, 101), Incarnation(2, 102)


class Timer(NamedTuple):
    at_ms: int
    callback: Callable[..., None]
    args: tuple[Any, ...]
    cancelled: list[bool]

    def cancel(self) -> None:
        self.cancelled.append(True)


class Transport:
    is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Connecting:
    is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class World:
    """A network on which each port does what it was told, and a clock that does so too."""

    def __init__(self) -> None:
        self.network = self.scheduler = self.workers = self
        self.now_ms = 0
        self.timers: list[Timer] = []
        self.ports: dict[int, Any] = {}
        self.tried: list[int] = []

    def resolve(self, host: str) -> str:
        if host == "unknown":
            raise OSError("no such host")
        return "10.0.0.1"

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        try:
            work()
        except OSError as error:
            done(error)
        else:
            done(None)

    def connect(
        self, host: str, port: int, connected: Callable[[Any], None], failed: Callable[[OSError], None]
    ) -> Connecting:
        assert host == "10.0.0.1"
        self.tried.append(port)
        outcome = self.ports.get(port)
        if isinstance(outcome, OSError):
            self.call_later(0, failed, outcome)
        elif outcome is not None:
            self.call_later(0, connected, outcome)
        return Connecting()

    def call_later(self, delay_ms: int, callback: Callable[..., None], *args: Any) -> Timer:
        timer = Timer(self.now_ms + delay_ms, callback, args, [])
        self.timers.append(timer)
        return timer

    def advance(self, milliseconds: int) -> None:
        end_ms = self.now_ms + milliseconds
        while due := [one for one in self.timers if one.at_ms <= end_ms]:
            first = min(due, key=lambda one: one.at_ms)
            self.timers.remove(first)
            self.now_ms = max(self.now_ms, first.at_ms)
            if not first.cancelled:
                first.callback(*first.args)
        self.now_ms = end_ms


def image_of(*broker_ids: int, **changes: Any) -> MetadataImage:
    brokers = {}
    for broker_id in broker_ids:
        ports = (9000 + broker_id, 9100 + broker_id)
        endpoints = tuple(
            BrokerEndpoint(name=f"L{port}", host="host", port=port, security_protocol=0) for port in ports
        )
        brokers[broker_id] = registration(broker_id, **{"endpoints": endpoints, **changes})
    return EMPTY_IMAGE._replace(brokers=brokers)


class Watching:
    def __init__(self, image: MetadataImage | None = None) -> None:
        self.world = World()
        self.image = image_of(1, 2) if image is None else image
        self.is_active = True
        self.gone: list[Incarnation] = []
        world: Any = self.world
        self.watch = BrokerWatch(9, world, lambda: self.image, lambda: self.is_active, self.gone.append)

    def refuse(self, *ports: int) -> None:
        for port in ports:
            self.world.ports[port] = ConnectionRefusedError()


def test_a_process_is_gone_if_all_its_listeners_refuse_twice() -> None:
    watching = Watching()
    watching.refuse(9001, 9101)
    watching.watch.connection_closed(ONE)
    watching.world.advance(SECOND_LOOK_MS - 1)
    assert watching.gone == [], "a firewall may refuse for a live broker"
    watching.world.advance(1)
    assert watching.gone == [ONE]


def test_a_broker_behind_a_firewall_that_refuses_is_there_if_it_is_heard_from() -> None:
    watching = Watching()
    watching.refuse(9001, 9101)
    watching.watch.connection_closed(ONE)
    watching.world.advance(SECOND_LOOK_MS - 1)
    watching.watch.heard(ONE)
    watching.world.advance(2 * SECOND_LOOK_MS)
    assert watching.gone == []


def test_a_broker_that_is_heard_from_during_the_second_look_is_there() -> None:
    watching = Watching()
    watching.refuse(9001, 9101)
    watching.watch.connection_closed(ONE)
    watching.world.advance(SECOND_LOOK_MS - 1)
    # The first listener has not refused yet then.
    watching.world.call_later(1, watching.watch.heard, ONE)
    watching.world.advance(2 * SECOND_LOOK_MS)
    assert watching.gone == []


def test_a_controller_that_takes_over_does_not_fence_a_broker_that_it_hears_from() -> None:
    watching = Watching()
    watching.refuse(9001, 9101, 9002, 9102)
    watching.watch.took_over()
    watching.world.advance(SECOND_LOOK_MS - 1)
    watching.watch.heard(TWO)
    watching.world.advance(2 * SECOND_LOOK_MS)
    assert watching.gone == [ONE]


def test_a_broker_that_accepts_at_the_second_look_is_there() -> None:
    watching = Watching()
    watching.refuse(9001, 9101)
    watching.watch.connection_closed(ONE)
    watching.world.advance(SECOND_LOOK_MS - 1)
    watching.world.ports[9101] = Transport()
    watching.world.advance(2 * SECOND_LOOK_MS)
    assert watching.gone == []


def test_a_broker_that_accepts_on_any_listener_is_there() -> None:
    watching = Watching()
    watching.refuse(9001)
    watching.world.ports[9101] = transport = Transport()
    watching.watch.connection_closed(ONE)
    watching.world.advance(ANSWER_MS_MAX)
    assert watching.gone == []
    assert transport.is_closed


@pytest.mark.parametrize("outcome", [None, TimeoutError(), OSError("no route to host")])
def test_a_machine_that_does_not_answer_says_nothing(outcome: OSError | None) -> None:
    watching = Watching()
    watching.world.ports[9001] = outcome
    watching.refuse(9101)
    watching.watch.connection_closed(ONE)
    watching.world.advance(2 * ANSWER_MS_MAX)
    assert watching.gone == []


def test_a_host_that_cannot_be_found_says_nothing() -> None:
    endpoint = BrokerEndpoint(name="L", host="unknown", port=9001, security_protocol=0)
    watching = Watching(image_of(1, endpoints=(endpoint,)))
    watching.watch.connection_closed(ONE)
    watching.world.advance(ANSWER_MS_MAX)
    assert watching.gone == []


@pytest.mark.parametrize(
    "image", [image_of(1, fenced=True), image_of(1, broker_epoch=500), image_of(1, endpoints=()), image_of(2)]
)
def test_nobody_looks_for_a_broker_that_is_out_already(image: MetadataImage) -> None:
    watching = Watching(image)
    watching.refuse(9001, 9101)
    watching.watch.connection_closed(ONE)
    watching.world.advance(ANSWER_MS_MAX)
    assert watching.world.tried == []
    assert watching.gone == []


def test_only_the_active_controller_looks() -> None:
    watching = Watching()
    watching.refuse(9001, 9101)
    watching.is_active = False
    watching.watch.connection_closed(ONE)
    assert watching.world.tried == []
    watching.is_active = True
    watching.watch.connection_closed(ONE)
    watching.is_active = False
    watching.world.advance(ANSWER_MS_MAX)
    assert watching.gone == [], "it has resigned meanwhile"


def test_a_broker_that_is_heard_from_meanwhile_is_there() -> None:
    watching = Watching()
    watching.refuse(9001, 9101)
    watching.watch.connection_closed(ONE)
    watching.watch.heard(ONE)
    watching.world.advance(ANSWER_MS_MAX)
    assert watching.gone == []


def test_what_is_said_in_the_name_of_an_unknown_broker_is_not_kept() -> None:
    watching = Watching(image_of(2))
    watching.watch.heard(ONE)
    watching.image = image_of(1)
    watching.refuse(9001, 9101)
    watching.watch.took_over()
    watching.watch.heard(Incarnation(1, 500))
    watching.world.advance(SECOND_LOOK_MS)
    assert watching.gone == [ONE], "it was another incarnation that was heard from"


def test_a_listener_that_is_closed_a_moment_after_the_connection_is_found_closed() -> None:
    watching = Watching()
    watching.world.ports[9001] = Transport()
    watching.refuse(9101)
    watching.watch.connection_closed(ONE)
    watching.world.advance(LOOK_AGAIN_MS_MIN - 1)
    assert watching.gone == [], "the kernel has not come to the listener yet"
    watching.refuse(9001)
    watching.world.advance(1 + SECOND_LOOK_MS)
    assert watching.gone == [ONE]


def test_a_broker_is_looked_at_until_it_is_heard_from() -> None:
    watching = Watching()
    watching.world.ports[9001] = Transport()
    watching.watch.connection_closed(ONE)
    watching.watch.connection_closed(ONE)
    watching.world.advance(10 * LOOK_AGAIN_MS_MAX)
    assert 10 < len(watching.world.tried) < 20, "not twice at a time, and the less often the longer it takes"
    watching.watch.heard(ONE)
    watching.world.tried.clear()
    watching.world.advance(LOOK_AGAIN_MS_MAX)
    assert watching.world.tried == []
    watching.refuse(9001, 9101)
    watching.watch.connection_closed(ONE)
    watching.world.advance(SECOND_LOOK_MS)
    assert watching.gone == [ONE], "it was there all the time, and ended later"


def test_a_broker_that_is_fenced_meanwhile_is_not_looked_at_again() -> None:
    watching = Watching()
    watching.world.ports[9001] = Transport()
    watching.watch.connection_closed(ONE)
    watching.world.advance(1)
    watching.image = image_of(1, fenced=True)
    watching.world.tried.clear()
    watching.world.advance(LOOK_AGAIN_MS_MAX)
    assert watching.world.tried == []


def test_a_controller_that_takes_over_looks_at_all_it_has_not_heard_from() -> None:
    watching = Watching(image_of(1, 2, 9))
    watching.refuse(9001, 9101, 9009, 9109)
    watching.world.ports[9002] = Transport()
    watching.is_active = False
    watching.watch.heard(ONE)
    watching.watch.took_over()
    watching.world.advance(TAKE_OVER_MS)
    assert watching.world.tried == [], "the controller has not begun"
    watching.is_active = True
    watching.world.advance(TAKE_OVER_MS + SECOND_LOOK_MS)
    assert watching.gone == [ONE], "that it was heard from was before"
    watching.image = image_of(2, 9)
    watching.watch.heard(TWO)
    watching.world.tried.clear()
    watching.world.advance(LOOK_AGAIN_MS_MAX)
    assert watching.world.tried == []
