"""The active controller is asked wherever it is, and asked again until one decides."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.quorum.controller_channel import ChannelWorld, ClusterController, LocalController
from ottla.quorum.controller.deciders import NOT_CONTROLLER, find_decider
from ottla.quorum.controller.decision import Caller
from ottla.quorum.quorum_protocols import KnownLeader
from ottla.quorum.voters import Endpoint
from ottla.runtime.connections.link import Link, new_peer_memory
from ottla.runtime.connections.peer import PeerSettings
from ottla.security.principal import Principal
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Machine, Simulation
from ottla.testing.simulation.workers import SimulatedSyncs, SimulatedWorkers
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.world.world import World

CONTROLLER = Endpoint("CONTROLLER", "10.0.0.1", 9093)
ALICE = Caller(Principal("User", "alice"), "a-client", "192.0.2.7", 7)


class Watch:
    """Who leads, as the test says."""

    def __init__(self) -> None:
        self.leader = KnownLeader()
        self.is_active = False
        self._listeners: list[Callable[[KnownLeader], None]] = []

    def when_leader_changes(self, listener: Callable[[KnownLeader], None]) -> None:
        self._listeners.append(listener)

    def change(self, leader: KnownLeader) -> None:
        self.leader = leader
        for listener in self._listeners:
            listener(leader)


class Channel:
    """A broker's channel, and a node with the controller to ask."""

    def __init__(self) -> None:
        self.simulation = Simulation(1)
        network = SimulatedNetwork(self.simulation)
        settings = {"listeners": "PLAINTEXT://10.0.0.1:9092,CONTROLLER://10.0.0.1:9093"}
        self.node = SimulatedNode(self.simulation, network, settings=settings)
        self.machine = machine = Machine(self.simulation, "me", "10.0.0.8")
        world = World(
            clock=machine,
            scheduler=machine,
            workers=SimulatedWorkers(machine),
            openers=SimulatedWorkers(machine),
            make_syncs=lambda deliver: SimulatedSyncs(machine, deliver),
            network=network.plug_in(machine),
            disk=SimulatedDisk(),
            random=machine.rng,
            connections_max=100,
        )
        memory = new_peer_memory()
        self.watch = Watch()
        self.decides: Callable[[Any, Callable[[Any], None]], None] = refuse

        def local(ask: Any, _caller: Caller | None, answer: Callable[[Any], None]) -> None:
            self.decides(ask, answer)

        self.channel = ClusterController(
            self.watch,
            LocalController(local),
            ChannelWorld(
                machine, machine, lambda to: Link(world, memory, lambda: (to.host, to.port), PeerSettings())
            ),
        )
        self.answers: list[Any] = []

    def ask(self, ask: Any, caller: Caller | None = None, timeout_ms: int = 60_000) -> None:
        self.channel.ask(ask, caller, timeout_ms).when_done(self.answers.append)

    def wait(self) -> Any:
        self.simulation.run_until(lambda: bool(self.answers))
        (answer,) = self.answers
        return answer


def refuse(ask: Any, answer: Callable[[Any], None]) -> None:
    answer(find_decider(type(ask)).refuse(ask, NOT_CONTROLLER))


def creation(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1, assignments=(), configs=())
    return CreateTopicsRequest(topics=(topic,))


@pytest.mark.parametrize("caller", [None, ALICE])
def test_a_request_goes_to_the_node_that_leads(caller: Caller | None) -> None:
    channel = Channel()
    channel.node.start()
    channel.watch.change(KnownLeader(1, 1, CONTROLLER))
    channel.ask(creation("orders"), caller)
    assert [topic.error_code for topic in channel.wait().topics] == [ErrorCode.NONE]
    assert channel.node.node is not None
    assert channel.node.node.broker.image.topics.find("orders") is not None


def test_a_request_waits_until_a_leader_is_known() -> None:
    channel = Channel()
    channel.node.start()
    channel.ask(creation("orders"), ALICE)
    channel.simulation.run_for(1000)
    assert channel.answers == []
    channel.watch.change(KnownLeader(1, 1, CONTROLLER))
    assert [topic.error_code for topic in channel.wait().topics] == [ErrorCode.NONE]


def test_a_request_survives_a_controller_that_is_gone_for_a_while() -> None:
    channel = Channel()
    channel.watch.change(KnownLeader(1, 1, CONTROLLER))
    channel.ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=3))
    channel.simulation.run_for(2000)
    assert channel.answers == []
    channel.node.start()
    # The epoch is another one, which only the controller can know.
    assert channel.wait().error_code is ErrorCode.STALE_BROKER_EPOCH


def test_a_request_goes_on_when_the_controller_of_this_node_loses_its_leadership() -> None:
    channel = Channel()
    channel.node.start()
    channel.watch.is_active = True
    waiting: list[Callable[[Any], None]] = []
    channel.decides = lambda _ask, answer: waiting.append(answer)
    ask = creation("orders")
    channel.ask(ask, ALICE)
    assert waiting
    channel.watch.is_active = False
    channel.watch.change(KnownLeader(1, 2, CONTROLLER))
    refuse(ask, waiting[0])
    assert [topic.error_code for topic in channel.wait().topics] == [ErrorCode.NONE]


def test_what_a_silent_controller_was_asked_goes_to_the_next_one_which_may_be_here() -> None:
    channel = Channel()
    channel.node.start()
    channel.watch.change(KnownLeader(1, 1, CONTROLLER))
    channel.ask(creation("orders"), ALICE)
    channel.simulation.run_for(1)
    channel.node.cut_power(is_silent=True)
    channel.simulation.run_for(1000)
    assert channel.answers == []
    decided: list[Any] = []
    channel.decides = lambda ask, answer: decided.append((ask, answer))
    channel.watch.is_active = True
    channel.watch.change(KnownLeader(2, 2, Endpoint("CONTROLLER", "10.0.0.8", 9093)))
    channel.simulation.run_for(100)
    assert [ask for ask, _ in decided] == [creation("orders")]


def test_a_request_that_no_controller_decides_about_is_refused_in_the_end() -> None:
    channel = Channel()
    channel.ask(creation("orders"), ALICE, timeout_ms=3000)
    assert [topic.error_code for topic in channel.wait().topics] == [ErrorCode.REQUEST_TIMED_OUT]


def test_a_channel_that_is_closed_refuses_what_waits_and_what_comes() -> None:
    channel = Channel()
    channel.ask(creation("orders"), ALICE)
    channel.channel.close()
    assert [topic.error_code for topic in channel.wait().topics] == [ErrorCode.NOT_CONTROLLER]
    channel.answers.clear()
    channel.ask(creation("orders"), ALICE)
    assert [topic.error_code for topic in channel.wait().topics] == [ErrorCode.NOT_CONTROLLER]
