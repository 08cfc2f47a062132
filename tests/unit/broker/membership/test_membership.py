"""The session of a broker: it registers, keeps alive, comes back when it is lost, and leaves in order."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.broker.deferred import Deferred
from ottla.broker.membership.membership import LEAVE_MS_MAX, Membership, NotRegistered, State
from ottla.broker.node import Broker
from ottla.metadata.configs.load import load_node_config
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage
from ottla.metadata.topics import Topic, Topics
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.quorum.controller.brokers.sessions import STANDS_MS
from ottla.storage.log_dirs.directory import NO_CLEAN_STOP
from ottla.testing.simulation.simulation import Machine, Simulation
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.metadata_records.brokers import RegisterBrokerRecord
from ottla.wire.metadata_records.partitions import PartitionRecord

INCARNATION = Uuid(bytes(range(16)))
EPOCH = 7


class World:
    """A broker, and a controller that answers what the test says."""

    def __init__(
        self,
        *directories: "Directory",
        image: MetadataImage = EMPTY_IMAGE,
        offline_paths: tuple[str, ...] = (),
        has_set_records_aside: bool = False,
        lacks_a_directory: bool = False,
        settings: bytes = b"",
    ) -> None:
        self.simulation = Simulation(1)
        machine = Machine(self.simulation, "broker", "10.0.0.1")
        self.machine = machine
        self.asked: list[Any] = []
        self.timeouts_ms: list[int] = []
        self.answers: list[Deferred[Any]] = []
        self.broker = SimpleNamespace(
            node_id=1,
            cluster_id="cluster",
            config=load_node_config(settings, {}).config,
            clock=machine,
            image=image,
            broker_epoch=-1,
            metadata=SimpleNamespace(listen=lambda _listener: None),
            partitions=SimpleNamespace(
                has_set_records_aside=has_set_records_aside, lacks_a_directory=lacks_a_directory
            ),
            directory_reports=SimpleNamespace(registered=lambda: None),
            controller=SimpleNamespace(ask=self._ask),
            directories=SimpleNamespace(
                directories=directories,
                online=directories,
                cordoned=frozenset(),
                was_clean=bool(directories) and all(one.clean_stop_epoch >= 0 for one in directories),
                offline_paths=offline_paths,
                find=lambda _partition: None,
            ),
        )
        self.membership = Membership(cast(Broker, self.broker), machine, INCARNATION)
        self.joined = self.membership.join([])

    def _ask(self, ask: Any, _caller: None, timeout_ms: int) -> Deferred[Any]:
        self.asked.append(ask)
        self.timeouts_ms.append(timeout_ms)
        self.answers.append(Deferred())
        return self.answers[-1]

    def wait_for(self, count: int) -> Any:
        """Let time pass until so many requests were sent in all, and return the last."""
        self.simulation.run_until(lambda: len(self.asked) >= count)
        return self.asked[-1]

    def wait_for_more(self, seen: int, end: Deferred[None]) -> None:
        """Let time pass until there is another request, or the end of it all."""
        self.simulation.run_until(lambda: end.is_done or len(self.asked) > seen)

    def publish(self, *, fenced: bool, offset: int = EPOCH) -> None:
        record = RegisterBrokerRecord(
            broker_id=1,
            incarnation_id=INCARNATION,
            broker_epoch=self.broker.broker_epoch,
            endpoints=(),
            features=(),
            rack=None,
            fenced=fenced,
        )
        position = EMPTY_IMAGE.position._replace(offset=Offset(offset))
        self.broker.image = EMPTY_IMAGE._replace(brokers={1: record}, position=position)
        image: MetadataImage = self.broker.image
        self.membership.metadata_changed(image, MetadataDelta(EMPTY_IMAGE))

    def become_member(self) -> None:
        self.answers[-1].resolve(BrokerRegistrationResponse(broker_epoch=EPOCH))
        self.publish(fenced=True)
        self.answers[-1].resolve(beat(is_fenced=False, is_caught_up=True))
        self.publish(fenced=False)
        assert self.joined.is_done


class Directory:
    """A log directory of a broker. Without `clean` it was not stopped cleanly."""

    def __init__(self, kept_epoch: int = -1, *, clean: int = NO_CLEAN_STOP, has_lost: bool = False) -> None:
        self.clean_stop_epoch = clean
        self.has_lost_records = lambda: has_lost
        self.meta = SimpleNamespace(directory_id=None)
        self.path = "/data"
        self.is_offline = False
        self.noted: list[int] = []
        self.find_kept_epoch = lambda: kept_epoch
        self.note_epoch = self.noted.append


def beat(error: ErrorCode = ErrorCode.NONE, **fields: Any) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=error, **{"should_shut_down": False, **fields})


def test_a_broker_serves_when_its_own_metadata_says_that_it_is_unfenced() -> None:
    world = World()
    assert isinstance(world.asked[0], BrokerRegistrationRequest)
    world.answers[0].resolve(BrokerRegistrationResponse(broker_epoch=EPOCH))
    assert isinstance(world.asked[1], BrokerHeartbeatRequest)
    # It has not read its registration yet. When it has, it says so at once.
    world.answers[1].resolve(beat(is_fenced=True))
    world.publish(fenced=True)
    world.wait_for(3)
    assert world.asked[2].current_metadata_offset == EPOCH
    world.answers[2].resolve(beat(is_fenced=False))
    assert world.membership.state is State.FENCED
    world.publish(fenced=False)
    assert world.joined.is_done


def test_a_registration_is_tried_again_while_the_last_incarnation_is_taken_for_alive() -> None:
    world = World()
    refused = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    for count in (1, 2, 3):
        world.answers[-1].resolve(refused)
        assert world.wait_for(count + 1).incarnation_id == INCARNATION
    world.become_member()


def test_a_broker_of_another_cluster_gives_up_at_once() -> None:
    world = World()
    world.answers[0].resolve(BrokerRegistrationResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
    with pytest.raises(NotRegistered, match="belong to another cluster"):
        world.joined.value()


def test_a_broker_that_nobody_takes_gives_up_in_the_end() -> None:
    world = World()
    refused = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    while not world.joined.is_done:
        world.answers[-1].resolve(refused)
        seen = len(world.asked)
        world.wait_for_more(seen, world.joined)
    with pytest.raises(NotRegistered, match="the same node id"):
        world.joined.value()
    assert world.machine.monotonic_ms() >= 60_000


def test_heartbeats_come_every_interval_and_at_once_when_there_is_something_to_say() -> None:
    world = World()
    world.become_member()
    sent, started_ms = len(world.asked), world.machine.monotonic_ms()
    world.wait_for(sent + 1)
    assert world.machine.monotonic_ms() - started_ms == world.broker.config.broker_heartbeat_interval_ms
    world.answers[-1].resolve(beat())
    world.membership.report()
    assert len(world.asked) == sent + 2


def test_an_answer_to_a_heartbeat_may_take_half_of_a_session() -> None:
    # Far from the controller, the answer takes longer than two intervals. A broker that did not wait would
    # be let in and elected, and never learn of it.
    far = World(settings=b"broker.heartbeat.interval.ms=200\nbroker.session.timeout.ms=1500\n")
    far.answers[-1].resolve(BrokerRegistrationResponse(broker_epoch=EPOCH))
    assert far.timeouts_ms[-1] == 750
    near = World(settings=b"broker.heartbeat.interval.ms=2000\nbroker.session.timeout.ms=3000\n")
    near.answers[-1].resolve(BrokerRegistrationResponse(broker_epoch=EPOCH))
    assert near.timeouts_ms[-1] == 4000


def test_a_broker_that_the_controller_does_not_know_any_more_registers_again() -> None:
    world = World()
    world.become_member()
    world.wait_for(len(world.asked) + 1)
    world.answers[-1].resolve(beat(ErrorCode.STALE_BROKER_EPOCH))
    again = world.wait_for(len(world.asked) + 1)
    assert isinstance(again, BrokerRegistrationRequest)
    assert again.incarnation_id == INCARNATION
    world.answers[-1].resolve(BrokerRegistrationResponse(broker_epoch=EPOCH + 5))
    assert world.broker.broker_epoch == EPOCH + 5
    assert world.asked[-1].broker_epoch == EPOCH + 5


def test_a_broker_that_was_fenced_asks_at_once_to_be_let_in_again() -> None:
    world = World()
    world.become_member()
    world.wait_for(len(world.asked) + 1)
    sent, now_ms = len(world.asked), world.machine.monotonic_ms()
    world.answers[-1].resolve(beat(is_fenced=True))
    world.wait_for(sent + 1)
    assert world.machine.monotonic_ms() - now_ms < 100


def test_a_broker_leaves_when_the_controller_lets_it_go() -> None:
    world = World()
    world.become_member()
    left = world.membership.leave()
    for _ in range(3):
        assert world.asked[-1].want_shut_down
        seen = len(world.asked)
        world.answers[-1].resolve(beat())
        world.wait_for(seen + 1)
        assert not left.is_done
    world.answers[-1].resolve(beat(should_shut_down=True))
    assert left.is_done


def test_a_broker_leaves_all_the_same_if_nobody_lets_it_go() -> None:
    world = World()
    world.become_member()
    left = world.membership.leave()
    while not left.is_done:
        seen = len(world.asked)
        world.answers[-1].resolve(beat())
        world.wait_for_more(seen, left)
    assert world.machine.monotonic_ms() >= LEAVE_MS_MAX


def test_a_broker_without_a_controller_does_not_wait_to_leave() -> None:
    world = World()
    world.become_member()
    left = world.membership.leave()
    world.answers[-1].resolve(beat(ErrorCode.REQUEST_TIMED_OUT))
    assert left.is_done


def test_a_broker_that_stopped_cleanly_tells_the_epoch_of_its_last_run() -> None:
    world = World(Directory(clean=5), Directory(clean=5))
    assert world.asked[0].previous_broker_epoch == 5


def test_a_clean_stop_says_nothing_while_a_directory_is_offline() -> None:
    world = World(Directory(clean=5), Directory(clean=5), offline_paths=("/data2",))
    assert world.asked[0].previous_broker_epoch == -1


def test_a_clean_stop_says_nothing_of_records_that_were_damaged_since() -> None:
    world = World(Directory(clean=5), Directory(clean=5, has_lost=True))
    assert world.asked[0].previous_broker_epoch == -1


def test_a_clean_stop_says_nothing_of_records_that_the_start_has_set_aside() -> None:
    world = World(Directory(clean=5), has_set_records_aside=True)
    assert world.asked[0].previous_broker_epoch == -1


@pytest.mark.parametrize("directory", [Directory(clean=5), Directory(5)])
def test_no_epoch_says_anything_of_replicas_in_a_directory_that_is_gone(directory: Directory) -> None:
    world = World(directory, lacks_a_directory=True)
    assert world.asked[0].previous_broker_epoch == -1


def test_a_broker_that_was_killed_tells_the_epoch_that_all_its_directories_have_kept() -> None:
    directories = Directory(5), Directory(5)
    world = World(*directories)
    assert world.asked[0].previous_broker_epoch == 5
    assert [one.noted for one in directories] == [[5], [5]], "an interrupted start has lost nothing either"
    world.answers[0].resolve(BrokerRegistrationResponse(broker_epoch=EPOCH))
    assert [one.noted for one in directories] == [[5, EPOCH], [5, EPOCH]]


@pytest.mark.parametrize("epochs", [(5, -1), (5, 6), (-1, -1)])
def test_directories_that_do_not_agree_keep_no_epoch(epochs: tuple[int, ...]) -> None:
    directories = [Directory(one) for one in epochs]
    world = World(*directories)
    assert world.asked[0].previous_broker_epoch == -1
    assert [one.noted for one in directories] == [[], []]


@pytest.mark.parametrize(("isr", "eligible"), [((1,), ()), ((2,), (1,))])
def test_a_log_that_is_missing_and_counts_keeps_no_epoch(
    isr: tuple[int, ...], eligible: tuple[int, ...]
) -> None:
    partition = PartitionRecord(
        topic_id=INCARNATION,
        replicas=(1, 2),
        isr=isr,
        removing_replicas=(),
        adding_replicas=(),
        leader=2,
        leader_epoch=0,
        eligible_leader_replicas=eligible,
    )
    topics = Topics({INCARNATION: Topic("orders", INCARNATION, {0: partition})}, {"orders": INCARNATION})
    world = World(Directory(5), image=EMPTY_IMAGE._replace(topics=topics))
    assert world.asked[0].previous_broker_epoch == -1


def test_a_broker_stands_for_a_moment_after_a_heartbeat_that_says_that_it_is_caught_up() -> None:
    world = World()
    world.become_member()
    told: list[int] = []
    for is_fenced, is_caught_up in ((False, True), (False, False), (True, True)):
        asked_ms = world.machine.monotonic_ms()
        world.membership.ask_whether_it_stands(lambda: told.append(world.membership.stands_until_ms))
        world.answers[-1].resolve(beat(is_fenced=is_fenced, is_caught_up=is_caught_up))
        assert told.pop() == (asked_ms + STANDS_MS if is_caught_up and not is_fenced else 0)


def test_a_broker_that_loses_its_controller_sends_a_heartbeat_at_once() -> None:
    world = World()
    world.become_member()
    seen = len(world.asked)
    world.broker.controller.when_lost()
    assert len(world.asked) == seen + 1
